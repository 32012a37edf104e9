-- A delivery that ends long after it was accepted is shown for a week, also if the tenant's retention would hide its
-- day (docs/adr/0025-late-days.md).

-- +goose Up

CREATE TABLE late_days (
	tenant_id uuid NOT NULL,
	day       date NOT NULL,        -- of deliveries
	until     timestamptz NOT NULL, -- until when the day is shown and kept
	PRIMARY KEY (tenant_id, day)
);
SELECT posthorn.guard('late_days');
GRANT SELECT, INSERT, UPDATE ON late_days TO posthorn_tenant;
GRANT SELECT, INSERT, UPDATE, DELETE ON late_days TO posthorn_worker;
GRANT SELECT, DELETE ON late_days TO posthorn_console;

-- Since when a delivery can be sent: since its creation, or since its event's deliver_at.
-- +goose StatementBegin
CREATE FUNCTION posthorn.waits_since(tenant uuid, delivery uuid, event uuid) RETURNS timestamptz LANGUAGE sql STABLE COST 1000 AS $$
	SELECT greatest(posthorn.created_at(delivery), (SELECT e.deliver_at FROM posthorn.events e
		WHERE e.tenant_id = tenant AND e.created_at = posthorn.created_at(event) AND e.id = event));
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION posthorn.waits_since(uuid, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.waits_since(uuid, uuid, uuid) TO posthorn_worker;

-- +goose Down

DROP FUNCTION posthorn.waits_since(uuid, uuid, uuid);
DROP TABLE late_days;
