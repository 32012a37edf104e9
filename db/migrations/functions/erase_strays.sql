-- Erases the attempts of a deleted tenant on some pages of a day, and returns the next page, or null at the end of the
-- day. Attempts are usually found by their delivery. If the delivery was in a day that is dropped already, only a scan
-- finds them.
CREATE OR REPLACE FUNCTION posthorn.erase_strays(of_tenant uuid, of_day date, from_page bigint, pages int, OUT n bigint, OUT next_page bigint)
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
REVOKE ALL ON FUNCTION posthorn.erase_strays(uuid, date, bigint, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.erase_strays(uuid, date, bigint, int) TO posthorn_console;
