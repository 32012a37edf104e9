-- Drops the old index if every day has the new one. The caller sets a lock_timeout.
CREATE OR REPLACE FUNCTION posthorn.drop_deliveries_event() RETURNS boolean LANGUAGE plpgsql SET search_path = posthorn, pg_temp AS $$
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
REVOKE ALL ON FUNCTION posthorn.drop_deliveries_event() FROM PUBLIC;
