-- The trigger of a tenant that moves, from shortly before the last step on. Its argument is the tenant. In the last step it
-- rejects every change. The lock is shared with everything that changes the tenant. The move takes it exclusively before
-- the last step, and so waits for open transactions. Deletions by workers pass: retention removes the same rows in the
-- next home. 00065_homes.sql grants it to the owner.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.on_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
BEGIN
	IF current_setting('posthorn.mover', true) = 'on' THEN
		RETURN NULL;
	END IF;
	PERFORM pg_advisory_xact_lock_shared(hashtextextended(TG_ARGV[0], 18));
	IF NOT (TG_OP = 'DELETE' AND current_setting('role', true) = 'posthorn_worker')
		AND EXISTS (SELECT FROM tenants t WHERE t.id = TG_ARGV[0]::uuid AND t.moving) THEN
		RAISE EXCEPTION 'tenant % moves to another home', TG_ARGV[0] USING ERRCODE = 'PH001';
	END IF;
	RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION posthorn.on_move() FROM PUBLIC;
