-- History as an open table (docs/adr/0033-open-history.md): closed days of many tenants share Parquet files, which Iceberg
-- metadata lists.

-- +goose Up

-- A row for each set of files: an object of one name for each table. The parts that name the set say which of its rows
-- are whose.
CREATE TABLE history_files (
	id      uuid PRIMARY KEY,
	day     date NOT NULL,
	objects jsonb NOT NULL,                -- rows, bytes and bounds of each table's object
	version bigint NOT NULL,               -- of the table, when the set was added
	dirty   boolean NOT NULL DEFAULT true  -- not written completely, or has rows that belong to no part
);
CREATE INDEX history_files_dirty ON history_files (id) WHERE dirty;
GRANT SELECT, INSERT, UPDATE, DELETE ON history_files TO posthorn_console;

-- The one row of what is published. changes counts how often the files changed; published is the count that the newest
-- metadata have.
CREATE TABLE history_table (
	id        boolean PRIMARY KEY DEFAULT true CHECK (id),
	uuids     uuid[] NOT NULL DEFAULT ARRAY[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()], -- of the Iceberg tables
	version   bigint NOT NULL DEFAULT 0,
	changes   bigint NOT NULL DEFAULT 0,
	published bigint NOT NULL DEFAULT 0
);
INSERT INTO history_table DEFAULT VALUES;
GRANT SELECT, UPDATE ON history_table TO posthorn_console;

-- Parts that were written before have no file: their object holds lines.
ALTER TABLE history_parts
	ADD COLUMN file_id uuid REFERENCES history_files,
	ADD COLUMN places  bigint[] NOT NULL DEFAULT '{}'; -- first row and number of rows in each table's object
CREATE INDEX history_parts_file ON history_parts (file_id) WHERE file_id IS NOT NULL;

-- +goose Down

ALTER TABLE history_parts DROP COLUMN file_id, DROP COLUMN places;
DROP TABLE history_table;
DROP TABLE history_files;
