"""Reads the open tables of history without Posthorn and prints what they hold as JSON.

The arguments are the address of the store's folder, a tenant, and an S3 endpoint with its key, or nothing.
"""

import json
import sys

import duckdb
from pyiceberg.expressions import EqualTo
from pyiceberg.io import load_file_io
from pyiceberg.table import StaticTable

root, tenant = sys.argv[1], sys.argv[2]
properties = {}
if len(sys.argv) > 3:
    properties = {"s3.endpoint": sys.argv[3], "s3.access-key-id": sys.argv[4], "s3.secret-access-key": sys.argv[5], "s3.region": "us-east-1"}

tables = {}
for name in ("events", "deliveries", "attempts"):
    folder = root + "tables/" + name
    io = load_file_io(properties, folder)
    version = io.new_input(folder + "/metadata/version-hint.text").open().read().decode()
    tables[name] = StaticTable.from_metadata(folder + "/metadata/v" + version + ".metadata.json", properties)

out = {"iceberg": {}, "duckdb": {}, "files": {}}
arrow = {}
for name, table in tables.items():
    arrow[name] = table.scan().to_arrow()
    rows = arrow[name].group_by(["tenant_id", "day"]).aggregate([("id", "count")]).to_pylist()
    out["iceberg"][name] = {r["tenant_id"] + " " + r["day"].isoformat(): r["id_count"] for r in rows}
    out["files"][name] = {
        "all": len(list(table.scan().plan_files())),
        "day": len(list(table.scan(row_filter=EqualTo("day", rows[0]["day"])).plan_files())) if rows else 0,
        "other tenant": len(list(table.scan(row_filter=EqualTo("tenant_id", "zzz")).plan_files())),
    }
    one = table.scan(row_filter=EqualTo("tenant_id", tenant)).to_arrow()
    out["iceberg"][name + " of tenant"] = one.num_rows
    sorted_ids = one["id"].to_pylist()
    out["iceberg"][name + " ids"] = sorted(sorted_ids)[:3]

deliveries, attempts, events = arrow["deliveries"], arrow["attempts"], arrow["events"]
con = duckdb.connect()
out["duckdb"]["by status"] = con.sql("SELECT tenant_id || ' ' || status, count(*) FROM deliveries GROUP BY 1").fetchall()
out["duckdb"]["attempts"] = con.sql("SELECT d.tenant_id, count(*) FROM deliveries d JOIN attempts a ON a.delivery_id = d.id GROUP BY 1").fetchall()
out["duckdb"]["bytes"] = con.sql("SELECT tenant_id, sum(data_bytes)::BIGINT, sum(octet_length(data))::BIGINT FROM events GROUP BY 1").fetchall()
out["duckdb"]["data"] = con.sql("SELECT decode(data) FROM events WHERE tenant_id = ? AND data IS NOT NULL ORDER BY id LIMIT 1", params=[tenant]).fetchall()
if root.startswith("file://"):  # the files themselves, without their metadata
    path = root.removeprefix("file://")
    out["duckdb"]["files"] = con.sql(
        "SELECT count(*), count(DISTINCT tenant_id), min(day)::VARCHAR FROM read_parquet('" + path + "tables/deliveries/data/*/*.parquet')"
    ).fetchall()
print(json.dumps(out))
