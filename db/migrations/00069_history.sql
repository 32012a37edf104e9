-- History elsewhere (docs/adr/0023-history-elsewhere.md): the closed days of a tenant in an object store, with their
-- objects and counts.

-- +goose Up

-- A row for each day of a tenant that is on its way to the store, in it, or back from it.
CREATE TABLE history_days (
	tenant_id uuid NOT NULL,
	day       date NOT NULL,
	-- exporting: objects are being written. leaving: all are written and verified, rows are being deleted. stored: no row is left.
	-- returning: rows are being brought back. back: they are there until back_at lies long enough ago.
	state     text NOT NULL DEFAULT 'exporting' CHECK (state IN ('exporting', 'leaving', 'stored', 'returning', 'back')),
	counts    jsonb NOT NULL DEFAULT '{}',
	bytes     bigint NOT NULL DEFAULT 0,  -- of all objects
	stored_at timestamptz,
	back_at   timestamptz,                -- when it was last asked for
	failed_at timestamptz,                -- of the last try, where that failed
	failure   text NOT NULL DEFAULT '',
	PRIMARY KEY (tenant_id, day)
);
CREATE INDEX history_days_at_work ON history_days (day) WHERE state <> 'stored';
SELECT posthorn.guard('history_days');
GRANT SELECT ON history_days TO posthorn_tenant, posthorn_worker;
GRANT UPDATE (state, back_at) ON history_days TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON history_days TO posthorn_console;

-- One object each: the deliveries and events of an interval, with everything that belongs to them. The digests are the
-- database's own, so that a changed object is never read back.
CREATE TABLE history_parts (
	tenant_id uuid NOT NULL,
	day       date NOT NULL,
	low       timestamptz NOT NULL,
	high      timestamptz NOT NULL,
	object    text NOT NULL,             -- its name below the tenant and the day
	digest    bytea NOT NULL,            -- SHA-256 of the object
	lines     bytea NOT NULL,            -- SHA-256 of its lines
	n         bigint NOT NULL,           -- lines
	bytes     bigint NOT NULL,           -- of the object
	size      bigint NOT NULL,           -- of its lines
	counts    jsonb NOT NULL,
	others    uuid[] NOT NULL,           -- events of other days that were replayed here: expunging them must reach this object
	gone      boolean NOT NULL DEFAULT false, -- its rows have left the tables
	PRIMARY KEY (tenant_id, day, low)
);
SELECT posthorn.guard('history_parts');
GRANT SELECT ON history_parts TO posthorn_tenant, posthorn_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON history_parts TO posthorn_console;

-- Brings lines of an object back into a table. Only rows of the tenant and of the time are taken; how many there were is returned.
-- +goose StatementBegin
CREATE FUNCTION posthorn.history_in(name text, lines text[], of_tenant uuid, low timestamptz, high timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	n bigint;
	key text := CASE WHEN name IN ('events', 'deliveries') THEN 'r.created_at' ELSE 'posthorn.created_at(r.delivery_id)' END;
BEGIN
	IF name NOT IN ('events', 'deliveries', 'attempts', 'dead_letters', 'cancellations') THEN
		RAISE EXCEPTION 'no table of history: %', name;
	END IF;
	EXECUTE format('INSERT INTO %I SELECT r.* FROM unnest($1) AS u(line), json_populate_record(NULL::%I, u.line::json) AS r
		WHERE r.tenant_id = $2 AND %s >= $3 AND %s < $4', name, name, key, key) USING lines, of_tenant, low, high;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.history_in(text, text[], uuid, timestamptz, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.history_in(text, text[], uuid, timestamptz, timestamptz) TO posthorn_console;

-- +goose Down

DROP FUNCTION posthorn.history_in(text, text[], uuid, timestamptz, timestamptz);
REVOKE INSERT ON replays FROM posthorn_console;
DROP TABLE history_parts, history_days;
