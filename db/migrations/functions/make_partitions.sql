-- Creates the partitions of some days. Names are table_yYYYYMMDD; the day is UTC.
CREATE OR REPLACE FUNCTION posthorn.make_partitions(first date, last date) RETURNS int LANGUAGE plpgsql SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
DECLARE
	t text;
	d date;
	made int := 0;
	name text;
BEGIN
	FOREACH t IN ARRAY ARRAY['events', 'deliveries', 'attempts'] LOOP
		FOR d IN SELECT g::date FROM generate_series(first::timestamp, last::timestamp, '1 day') g LOOP
			name := t || '_y' || to_char(d, 'YYYYMMDD');
			CONTINUE WHEN to_regclass(name) IS NOT NULL;
			-- A day grows from nothing to millions: by the server's own measure it would be vacuumed and analysed every few
			-- seconds of its first minutes, for rows that are inserted, changed once within their page, and left alone.
			EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = %s,
				autovacuum_vacuum_threshold = 200000, autovacuum_vacuum_insert_threshold = 500000,
				autovacuum_analyze_threshold = 50000, autovacuum_analyze_scale_factor = 0.5)', name, t,
				CASE WHEN t = 'deliveries' THEN 45 ELSE 100 END);
			EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', t, name,
				d::timestamptz, (d + 1)::timestamptz);
			made := made + 1;
		END LOOP;
	END LOOP;
	RETURN made;
END $$;
REVOKE ALL ON FUNCTION posthorn.make_partitions(date, date) FROM PUBLIC;
