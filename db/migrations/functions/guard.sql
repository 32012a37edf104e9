-- Puts a table under row-level security: the tenant role sees its own rows, the trusted roles see all, and the owner,
-- who has no policy, sees none.
CREATE OR REPLACE FUNCTION posthorn.guard(t regclass, tenant_column name DEFAULT 'tenant_id') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r text;
BEGIN
	EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t);
	EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t);
	EXECUTE format('CREATE POLICY tenant ON %s TO posthorn_tenant USING (%I = (SELECT posthorn.tenant())) WITH CHECK (%I = (SELECT posthorn.tenant()))',
		t, tenant_column, tenant_column);
	FOREACH r IN ARRAY ARRAY['ingest', 'worker', 'console', 'lookup'] LOOP
		EXECUTE format('CREATE POLICY %I ON %s TO %I USING (true) WITH CHECK (true)', r, t, 'posthorn_' || r);
	END LOOP;
END $$;
REVOKE ALL ON FUNCTION posthorn.guard(regclass, name) FROM PUBLIC;
