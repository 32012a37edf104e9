-- Deliveries that are created with an event have its moment, so the primary key finds them: only later ones need an
-- index on the event.

-- +goose Up

-- An index over all days would block the storing of deliveries while it is built. Days with deliveries keep the old
-- index, which finds all of theirs; empty and future days get the new one. The old index is dropped as soon as every
-- day has the new one: at once in a new database, else after retention has dropped the older days.
CREATE INDEX deliveries_later ON ONLY deliveries (event_id) WHERE substring(uuid_send(id), 1, 6) <> substring(uuid_send(event_id), 1, 6);
-- +goose StatementBegin
DO $$
DECLARE
	day text;
BEGIN
	FOR day IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'deliveries'::regclass AND pg_relation_size(c.oid) = 0
	LOOP
		EXECUTE format('CREATE INDEX %I ON %I (event_id) WHERE substring(uuid_send(id), 1, 6) <> substring(uuid_send(event_id), 1, 6)', day || '_later', day);
		EXECUTE format('ALTER INDEX deliveries_later ATTACH PARTITION %I', day || '_later');
	END LOOP;
END $$;
-- +goose StatementEnd

-- Drops the old index if every day has the new one. The caller sets a lock_timeout.
-- +goose StatementBegin
CREATE FUNCTION posthorn.drop_deliveries_event() RETURNS boolean LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
BEGIN
	IF to_regclass('deliveries_event') IS NULL OR EXISTS (
		SELECT FROM pg_inherits i WHERE i.inhparent = 'deliveries'::regclass AND NOT EXISTS (
			SELECT FROM pg_index x JOIN pg_inherits h ON h.inhrelid = x.indexrelid
			WHERE x.indrelid = i.inhrelid AND x.indisvalid AND h.inhparent = 'deliveries_later'::regclass))
	THEN
		RETURN false;
	END IF;
	DROP INDEX deliveries_event;
	RETURN true;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.drop_deliveries_event() FROM PUBLIC;
SELECT posthorn.drop_deliveries_event();

-- +goose Down

DROP FUNCTION posthorn.drop_deliveries_event();
CREATE INDEX IF NOT EXISTS deliveries_event ON deliveries (event_id);
DROP INDEX deliveries_later;
