"""Reads the open tables of history with Spark and prints what they hold as JSON.

The arguments are the path of the store's folder and the file of Iceberg's runtime for Spark. The tables are read as
Iceberg, through a catalog that is a folder, and their files as Parquet, without the metadata.
"""

import json
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

root, jar = sys.argv[1].rstrip("/"), sys.argv[2]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jar)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.local.dir", os.environ["SPARK_SCRATCH"])
    .config("spark.sql.catalog.posthorn", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.posthorn.type", "hadoop")
    .config("spark.sql.catalog.posthorn.warehouse", root)
    .getOrCreate()
)
out = {}
for way in ("iceberg", "parquet"):
    read = {}
    for table in ("events", "deliveries", "attempts"):
        if way == "iceberg":
            rows = spark.table("posthorn.tables." + table)
        else:
            rows = spark.read.option("recursiveFileLookup", "true").parquet(root + "/tables/" + table + "/data")
        key = f.concat_ws(" ", "tenant_id", f.col("day").cast("string")).alias("key")
        read[table] = {r["key"]: r["count"] for r in rows.groupBy(key).count().collect()}
        if table == "events":
            sums = rows.groupBy(key).agg(f.sum("data_bytes").alias("said"), f.sum(f.length("data")).alias("real")).collect()
            read["bytes"] = {r["key"]: r["said"] for r in sums}
            read["data"] = {r["key"]: r["real"] for r in sums}
    out[way] = read
print("RESULT " + json.dumps(out))
spark.stop()
