-- What one row of the queue waits for, given the state of its lane from lane_states.
CREATE OR REPLACE FUNCTION posthorn.row_waits(row_state smallint, due_at timestamptz, asked boolean, condition text, waits text, not_before timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
	SELECT CASE
		WHEN condition NOT IN ('active', 'waiting_for_worker', 'failing', 'asked_to_wait', 'disconnected') THEN waits
		WHEN row_state = 3 AND due_at > now() THEN 'deferred'
		WHEN waits IN ('listener', 'no_worker') THEN waits
		WHEN condition IN ('failing', 'asked_to_wait') AND asked THEN 'next'
		WHEN condition = 'failing' THEN 'breaker'
		WHEN row_state = 2 THEN 'order'
		WHEN row_state = 1 AND due_at > now() + interval '100 years' THEN 'transformation'
		WHEN row_state = 1 AND due_at > now() AND due_at > coalesce(not_before, '-infinity') THEN 'retry'
		WHEN not_before > now() THEN 'retry_after'
		WHEN row_state = 0 THEN waits
		ELSE 'next'
	END
$$;
REVOKE ALL ON FUNCTION posthorn.row_waits(smallint, timestamptz, boolean, text, text, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.row_waits(smallint, timestamptz, boolean, text, text, timestamptz) TO posthorn_console, posthorn_tenant, posthorn_worker;
