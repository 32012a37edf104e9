package db_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/dbtest"
	"posthorn/db/migrations"
	"posthorn/domain/fault"
)

// standIn is Citus as far as `migrate distribute` meets it: functions of the documented names and arguments, which refuse
// what Citus refuses and note what they were asked.
const standIn = `
CREATE TABLE posthorn.pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char" NOT NULL, beside text NOT NULL);
CREATE TABLE posthorn.truncated (t regclass);
CREATE TYPE posthorn.distribution_type AS ENUM ('hash', 'range', 'append');
CREATE FUNCTION posthorn.create_distributed_table(table_name regclass, distribution_column text, distribution_type posthorn.distribution_type DEFAULT 'hash',
	colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM posthorn.pg_dist_partition WHERE logicalrelid = table_name) THEN
		RAISE 'table % is already distributed', table_name;
	END IF;
	IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = table_name AND contype = 'f') THEN
		RAISE 'cannot create a foreign key constraint from a distributed to a local table: %', table_name;
	END IF;
	IF EXISTS (SELECT FROM pg_index i WHERE i.indrelid = table_name AND i.indisunique
		AND NOT (SELECT attnum FROM pg_attribute WHERE attrelid = table_name AND attname = distribution_column) = ANY(i.indkey::int2[])) THEN
		RAISE 'a unique index of % lacks its distribution column', table_name;
	END IF;
	IF colocate_with <> 'none' AND NOT EXISTS (SELECT FROM posthorn.pg_dist_partition WHERE logicalrelid = colocate_with::regclass) THEN
		RAISE 'relation % is not distributed', colocate_with;
	END IF;
	INSERT INTO posthorn.pg_dist_partition VALUES (table_name, 'h', colocate_with);
END $$;
CREATE FUNCTION posthorn.truncate_local_data_after_distributing_table(function_name regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT FROM posthorn.pg_dist_partition WHERE logicalrelid = function_name) THEN
		RAISE 'supplied parameter is not a distributed relation';
	END IF;
	INSERT INTO posthorn.truncated VALUES (function_name);
END $$;`

func TestDistributeAsksForEveryBulkTableOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.Clone(t, migrations.Fingerprint(), db.MigrateUp)
	if _, err := db.Distribute(t.Context(), url); !fault.Is(err, "citus_missing") {
		t.Fatalf("without the extension: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), standIn+"; SET search_path = pg_catalog"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[{events true} {deliveries true} {attempts true}]",
		"[{events false} {deliveries false} {attempts false}]",
	} {
		got, err := db.Distribute(t.Context(), url)
		if err != nil || fmt.Sprint(got) != want {
			t.Fatalf("%v %v, want %s", got, err, want)
		}
	}
	var asked, truncated string
	if err := conn.QueryRow(t.Context(), `SELECT (SELECT string_agg(format('%s beside %s', logicalrelid, beside), ', ' ORDER BY ctid) FROM posthorn.pg_dist_partition),
		(SELECT string_agg(t::text, ', ' ORDER BY ctid) FROM posthorn.truncated)`).Scan(&asked, &truncated); err != nil {
		t.Fatal(err)
	}
	if want := `posthorn.events beside none, posthorn.deliveries beside "posthorn"."events", posthorn.attempts beside "posthorn"."events"`; asked != want {
		t.Errorf("asked for %s", asked)
	}
	if truncated != "posthorn.events, posthorn.deliveries, posthorn.attempts" {
		t.Errorf("truncated %s", truncated)
	}
}
