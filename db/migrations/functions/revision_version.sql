-- Copies the endpoint's payload version into its new revision. The caller updates the endpoint first.
CREATE OR REPLACE FUNCTION posthorn.revision_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.payload_version := (SELECT e.payload_version FROM endpoints e WHERE e.tenant_id = NEW.tenant_id AND e.id = NEW.endpoint_id);
	RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION posthorn.revision_version() FROM PUBLIC;
