package db_test

import (
	"testing"

	"posthorn/tools/readtest"
)

// TestATenantsStatementsReadNoMoreOfALongerHistory covers every statement that the tenant's role can run, on the server
// of the tests; web/e2e does the same on other versions.
func TestATenantsStatementsReadNoMoreOfALongerHistory(t *testing.T) {
	t.Parallel()
	_, owner, tenant, _ := two(t, 1)
	readtest.Check(t, readtest.Server{Conn: owner, Tenant: tenant.String()}, "sql")
}
