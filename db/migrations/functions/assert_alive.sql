-- Fails the transaction unless the worker is alive. The worker then stays alive until the transaction ends: a process
-- that marks it dead first locks its row FOR UPDATE. The updates of beat_at do not conflict with this lock.
CREATE OR REPLACE FUNCTION posthorn.assert_alive(worker uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM workers WHERE id = worker AND NOT dead FOR KEY SHARE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'worker % is dead', worker USING ERRCODE = 'PH002';
	END IF;
END $$;
REVOKE ALL ON FUNCTION posthorn.assert_alive(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.assert_alive(uuid) TO posthorn_worker;
