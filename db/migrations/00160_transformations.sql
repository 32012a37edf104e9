-- What an endpoint makes of its events (docs/transformations.md, docs/adr/0028-transformations.md).

-- +goose Up

ALTER TABLE endpoints ADD COLUMN transformation jsonb; -- without its variables, which are in credentials; null: none

-- A transformation holds from a version of its tenant's routes on. A delivery is rendered by the version of its event,
-- so that all its attempts have the same bytes. An endpoint that never had one has no row.
CREATE TABLE transformations (
	tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
	id              uuid NOT NULL,
	endpoint_id     uuid NOT NULL,
	routing_version bigint NOT NULL,
	transformation  jsonb,  -- null: none from here on
	variables       bytea,  -- sealed; null: none
	created_at      timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX transformations_version ON transformations (endpoint_id, routing_version);
SELECT posthorn.guard('transformations');
GRANT SELECT, INSERT, UPDATE, DELETE ON transformations TO posthorn_tenant, posthorn_console;
GRANT SELECT ON transformations TO posthorn_worker;

-- Of a replay: the version of the tenant's routes when it was created. null: that of its event.
ALTER TABLE deliveries ADD COLUMN routing_version bigint;
ALTER TABLE queue ADD COLUMN routing_version bigint;

-- The handshake of CloudEvents' HTTP webhooks is a mode of verification.
ALTER TABLE endpoints DROP CONSTRAINT endpoints_verification_check;
ALTER TABLE endpoints ADD CONSTRAINT endpoints_verification_check CHECK (verification IN ('challenge', 'challenge_get', 'options', 'simple'));

-- After an edit of the endpoint's transformation: up to which number the rows that waited for it are due again. null:
-- none is left.
ALTER TABLE lanes ADD COLUMN edited_up_to bigint;
CREATE INDEX lanes_edited ON lanes (endpoint_id) WHERE edited_up_to IS NOT NULL;

-- functions: 734ccf9b0a0985ff

-- +goose Down

UPDATE endpoints SET verification = 'challenge' WHERE verification = 'options';
ALTER TABLE endpoints DROP CONSTRAINT endpoints_verification_check;
ALTER TABLE endpoints ADD CONSTRAINT endpoints_verification_check CHECK (verification IN ('challenge', 'challenge_get', 'simple'));
ALTER TABLE lanes DROP COLUMN edited_up_to;
ALTER TABLE queue DROP COLUMN routing_version;
ALTER TABLE deliveries DROP COLUMN routing_version;
DROP TABLE transformations;
ALTER TABLE endpoints DROP COLUMN transformation;
