-- Operational webhooks: what the platform hears of its tenants as events of a tenant of its own.

-- +goose Up

-- The relay emits in the transaction that marks what it took. The function's owner alone may let it.
SET LOCAL ROLE posthorn_lookup;
GRANT EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) TO posthorn_worker;
RESET ROLE;

-- A dead letter becomes a delivery.failed of the platform's tenant, where that subscribes to it, and is announced then; or is
-- marked so, since nobody wants to hear of it. Those of before are history.
ALTER TABLE dead_letters ADD COLUMN announced boolean NOT NULL DEFAULT true;
ALTER TABLE dead_letters ALTER COLUMN announced SET DEFAULT false;
CREATE INDEX dead_letters_unannounced ON dead_letters (failed_at) WHERE NOT announced;

-- +goose Down

DROP INDEX dead_letters_unannounced;
ALTER TABLE dead_letters DROP COLUMN announced;
SET LOCAL ROLE posthorn_lookup;
REVOKE EXECUTE ON FUNCTION posthorn.emit(text, text, json, text, text[], text, text, timestamptz, timestamptz) FROM posthorn_worker;
RESET ROLE;
