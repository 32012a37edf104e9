-- The first day that must exist: days that retention dropped are expected to be missing, any other missing day is a
-- loss, and the reconciliation reports it. And attempts of a deleted tenant without a delivery.

-- +goose Up

ALTER TABLE platform ADD COLUMN days_from date; -- the first day whose partitions must be there
UPDATE platform SET days_from = (SELECT min(d) FROM posthorn.partition_days() AS d);

-- The days that have partitions or must have them, oldest first.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.partition_days() RETURNS SETOF date LANGUAGE sql STABLE SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
	SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
	UNION SELECT g::date FROM platform p, generate_series(p.days_from::timestamp, now()::timestamp, '1 day') g
	ORDER BY 1
$$;
-- +goose StatementEnd

-- Drops one day of one table. The caller has settled what pointed into it, and sets a lock_timeout.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.drop_partition(parent text, day date) RETURNS boolean LANGUAGE plpgsql SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
DECLARE
	name text := parent || '_y' || to_char(day, 'YYYYMMDD');
BEGIN
	IF parent = 'deliveries' AND day <= now()::date THEN
		UPDATE platform SET days_from = day + 1 WHERE days_from <= day;
	END IF;
	IF to_regclass(name) IS NULL THEN
		RETURN false;
	END IF;
	EXECUTE format('DROP TABLE IF EXISTS %I', name); -- another worker may be at it
	RETURN true;
END $$;
-- +goose StatementEnd

-- Erases the attempts of a deleted tenant on some pages of a day, and says where the next ones begin; null: the day has no more. Attempts
-- are found by their delivery; where that went with a day of its own, only a look at all of them finds what is left.
-- +goose StatementBegin
CREATE FUNCTION posthorn.erase_strays(of_tenant uuid, of_day date, from_page bigint, pages int, OUT n bigint, OUT next_page bigint)
LANGUAGE plpgsql SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
DECLARE
	part regclass := to_regclass('attempts_y' || to_char(of_day, 'YYYYMMDD'));
BEGIN
	n := 0;
	IF part IS NULL OR from_page * current_setting('block_size')::bigint >= pg_relation_size(part) THEN
		RETURN;
	END IF;
	EXECUTE format('DELETE FROM attempts WHERE tenant_id = %L AND created_at >= %L AND created_at < %L AND ctid >= ''(%s,0)'' AND ctid < ''(%s,0)''',
		of_tenant, of_day::timestamptz, (of_day + 1)::timestamptz, from_page, from_page + pages);
	GET DIAGNOSTICS n = ROW_COUNT;
	next_page := from_page + pages;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.erase_strays(uuid, date, bigint, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.erase_strays(uuid, date, bigint, int) TO posthorn_console;

-- +goose Down

DROP FUNCTION posthorn.erase_strays(uuid, date, bigint, int);
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.drop_partition(parent text, day date) RETURNS boolean LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
DECLARE
	name text := parent || '_y' || to_char(day, 'YYYYMMDD');
BEGIN
	IF to_regclass(name) IS NULL THEN
		RETURN false;
	END IF;
	EXECUTE format('DROP TABLE %I', name);
	RETURN true;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION posthorn.partition_days() RETURNS SETOF date LANGUAGE sql STABLE SET search_path = posthorn, pg_temp AS $$
	SELECT DISTINCT to_date(right(c.relname, 8), 'YYYYMMDD')
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
	ORDER BY 1
$$;
-- +goose StatementEnd
ALTER TABLE platform DROP COLUMN days_from;
