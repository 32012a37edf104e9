-- Endpoint health: the breaker and other facts of an endpoint from the recorder, the warnings that were sent, and the
-- treatment of deliveries while an endpoint is not active. The policy is domain/health; docs/health.md has the
-- promises to tenants.

-- +goose Up

ALTER TABLE endpoint_health
	ADD COLUMN exhausted     int NOT NULL DEFAULT 0,      -- deliveries that ran out of attempts since the last success
	ADD COLUMN breaker_state smallint NOT NULL DEFAULT 0, -- 0 closed, 1 open (domain/health); a probe under way is its owner's knowledge alone
	ADD COLUMN opened_at     timestamptz,
	ADD COLUMN next_probe_at timestamptz,
	ADD COLUMN probes        int NOT NULL DEFAULT 0,      -- that failed in a row
	ADD COLUMN gone_at       timestamptz,                 -- the last 410 since the last success
	ADD COLUMN outage_from   timestamptz,                 -- when the breaker opened that closed after a long time; until its notice is posted
	ADD COLUMN last_status   smallint NOT NULL DEFAULT 0, -- of the last failure, for the notice: HTTP, 0 for no answer
	ADD COLUMN last_failure  smallint NOT NULL DEFAULT 0,
	ADD COLUMN last_error    text NOT NULL DEFAULT '',
	ADD COLUMN last_excerpt  text NOT NULL DEFAULT '',
	ADD COLUMN epoch         int NOT NULL DEFAULT 0;      -- grows when all of it is cleared; what was counted before no longer counts
GRANT INSERT, UPDATE ON endpoint_health TO posthorn_tenant;

-- The warnings about an endpoint's present failures. reason and stage are words of domain/health.
CREATE TABLE endpoint_warnings (
	tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	endpoint_id uuid NOT NULL,
	reason      text NOT NULL,
	stage       text NOT NULL,
	since       timestamptz,          -- the streak's beginning; null: the endpoint's
	at          timestamptz NOT NULL,
	PRIMARY KEY (tenant_id, endpoint_id, reason, stage)
);
SELECT posthorn.guard('endpoint_warnings');
GRANT SELECT, DELETE ON endpoint_warnings TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON endpoint_warnings TO posthorn_worker, posthorn_console;

-- The treatment of events while an endpoint is not active: held deliveries, or none.
ALTER TABLE endpoints ADD COLUMN when_held text NOT NULL DEFAULT 'hold' CHECK (when_held IN ('hold', 'drop'));
ALTER TABLE endpoint_revisions ADD COLUMN when_held text NOT NULL DEFAULT 'hold';

-- probes: the attempts of a delivery that its schedule does not count. asked: a person chose retry now while the
-- endpoint's breaker was open, so that this row is the next probe.
ALTER TABLE queue ADD COLUMN probes smallint NOT NULL DEFAULT 0, ADD COLUMN asked boolean NOT NULL DEFAULT false;
CREATE INDEX queue_asked ON queue (endpoint_id) WHERE asked;

DROP FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[]);
-- +goose StatementBegin
CREATE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[], probed smallint[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i], probes = probed[i], asked = false
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[]) TO posthorn_worker;

-- +goose Down

DROP FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[], smallint[]);
-- +goose StatementBegin
CREATE FUNCTION posthorn.reschedule(tenants uuid[], deliveries uuid[], gens int[], delays_us bigint[], made smallint[]) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..cardinality(deliveries) LOOP
		UPDATE queue q SET state = 1, due_at = now() + delays_us[i] * interval '1 microsecond', attempts = made[i]
		WHERE q.tenant_id = tenants[i] AND q.delivery_id = deliveries[i] AND q.gen = gens[i];
		IF FOUND THEN
			RETURN NEXT deliveries[i];
		END IF;
	END LOOP;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.reschedule(uuid[], uuid[], int[], bigint[], smallint[]) TO posthorn_worker;
DROP INDEX queue_asked;
ALTER TABLE queue DROP COLUMN probes, DROP COLUMN asked;
ALTER TABLE endpoint_revisions DROP COLUMN when_held;
ALTER TABLE endpoints DROP COLUMN when_held;
DROP TABLE endpoint_warnings;
REVOKE INSERT, UPDATE ON endpoint_health FROM posthorn_tenant;
ALTER TABLE endpoint_health DROP COLUMN exhausted, DROP COLUMN breaker_state, DROP COLUMN opened_at, DROP COLUMN next_probe_at,
	DROP COLUMN probes, DROP COLUMN gone_at, DROP COLUMN outage_from, DROP COLUMN last_status, DROP COLUMN last_failure,
	DROP COLUMN last_error, DROP COLUMN last_excerpt, DROP COLUMN epoch;
