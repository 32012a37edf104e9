-- The trigger of a tenant that moves. Its arguments are the tenant, the table and a mode: 'track' records the row,
-- 'fence' rejects changes while the move is in its last step, 'both' does both. The lock is shared with everything
-- that changes the tenant. The move takes it exclusively before the last step, and so waits for open transactions.
-- Deletions by workers pass: retention removes the same rows in the next home. 00065_homes.sql grants it to the owner.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.on_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
DECLARE
	r record;
BEGIN
	IF current_setting('posthorn.mover', true) = 'on' THEN
		RETURN NULL;
	END IF;
	PERFORM pg_advisory_xact_lock_shared(hashtextextended(TG_ARGV[0], 18));
	IF TG_ARGV[2] <> 'track' AND NOT (TG_OP = 'DELETE' AND current_setting('role', true) = 'posthorn_worker')
		AND EXISTS (SELECT FROM tenants t WHERE t.id = TG_ARGV[0]::uuid AND t.moving) THEN
		RAISE EXCEPTION 'tenant % moves to another home', TG_ARGV[0] USING ERRCODE = 'PH001';
	END IF;
	IF TG_ARGV[2] = 'fence' THEN
		RETURN NULL;
	END IF;
	IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
	CASE TG_ARGV[1]
	WHEN 'events', 'deliveries' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.created_at, r.id);
	WHEN 'attempts' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.created_at, r.delivery_id);
	WHEN 'dead_letters', 'cancellations' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.delivery_id);
	WHEN 'replays' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.replay_of);
	WHEN 'audit_log' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k1) VALUES (r.tenant_id, TG_ARGV[1], r.id);
	WHEN 'idempotency_keys' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k2) VALUES (r.tenant_id, TG_ARGV[1], r.key);
	WHEN 'event_log' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, k2) VALUES (r.tenant_id, TG_ARGV[1], r.position::text);
	WHEN 'endpoint_stats', 'endpoint_failures' THEN
		INSERT INTO tenant_move_changes (tenant_id, tbl, at, k1) VALUES (r.tenant_id, TG_ARGV[1], r.bucket, r.endpoint_id);
	END CASE;
	RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION posthorn.on_move() FROM PUBLIC;
