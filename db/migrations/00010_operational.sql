-- Operational webhooks: what happens in tenants, as events of a tenant of the platform.

-- +goose Up

-- The relay emits in the transaction that marks the rows. Only the function's owner can grant it.
SET LOCAL ROLE posthorn_lookup;
GRANT EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) TO posthorn_worker;
RESET ROLE;

-- A dead letter becomes a delivery.failed of the platform's tenant, if it subscribes to that; otherwise it is only
-- marked. Older dead letters are not announced.
ALTER TABLE dead_letters ADD COLUMN announced boolean NOT NULL DEFAULT true;
ALTER TABLE dead_letters ALTER COLUMN announced SET DEFAULT false;
CREATE INDEX dead_letters_unannounced ON dead_letters (failed_at) WHERE NOT announced;

-- +goose Down

DROP INDEX dead_letters_unannounced;
ALTER TABLE dead_letters DROP COLUMN announced;
SET LOCAL ROLE posthorn_lookup;
REVOKE EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) FROM posthorn_worker;
RESET ROLE;
