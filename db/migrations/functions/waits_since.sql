-- When a delivery could first be sent: its creation, or its event's deliver_at.
CREATE OR REPLACE FUNCTION posthorn.waits_since(tenant uuid, delivery uuid, event uuid) RETURNS timestamptz LANGUAGE sql STABLE COST 1000 AS $$
	SELECT greatest(posthorn.created_at(delivery), (SELECT e.deliver_at FROM posthorn.events e
		WHERE e.tenant_id = tenant AND e.created_at = posthorn.created_at(event) AND e.id = event));
$$;
REVOKE ALL ON FUNCTION posthorn.waits_since(uuid, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.waits_since(uuid, uuid, uuid) TO posthorn_worker;
