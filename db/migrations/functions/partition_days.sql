-- The days that have partitions or must have them, oldest first.
CREATE OR REPLACE FUNCTION posthorn.partition_days() RETURNS SETOF date LANGUAGE sql STABLE SET timezone = 'UTC' SET search_path = posthorn, pg_temp AS $$
	SELECT to_date(right(c.relname, 8), 'YYYYMMDD')
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
	UNION SELECT g::date FROM platform p, generate_series(p.days_from::timestamp, now()::timestamp, '1 day') g
	ORDER BY 1
$$;
REVOKE ALL ON FUNCTION posthorn.partition_days() FROM PUBLIC;
