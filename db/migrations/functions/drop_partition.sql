-- Drops one day of one table. The caller first removes references to its rows, and sets a lock_timeout.
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
REVOKE ALL ON FUNCTION posthorn.drop_partition(text, date) FROM PUBLIC;
