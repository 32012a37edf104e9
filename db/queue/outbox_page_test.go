package queue_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// TestTheStatementsOfTheOutboxPageRun runs the SQL of docs/outbox.md unchanged.
func TestTheStatementsOfTheOutboxPageRun(t *testing.T) {
	t.Parallel()
	_, owner, tenant, _ := schematest.Tenants(t, 2)
	page, err := os.ReadFile("../../docs/outbox.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```sql\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	named := strings.NewReplacer("ten_...", id.Tenant.Format(tenant), "TO product", "TO CURRENT_USER")
	run := func(sql string) {
		t.Helper()
		if _, err := owner.PgConn().Exec(t.Context(), named.Replace(sql)).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run("CREATE TEMP TABLE orders (id text, total int); GRANT INSERT ON orders TO posthorn_emitter")
	run(blocks[1][1])                // the grant first
	run("SET ROLE posthorn_emitter") // this one inherits nothing, unlike a product's role
	run(blocks[0][1])
	run("RESET ROLE")
	run(`SET ROLE posthorn_console; INSERT INTO posthorn.outbox_rejected (id, tenant_id, type, data, code, detail)
		VALUES (gen_random_uuid(), '` + tenant.String() + `', 'a', '1', 'a', 'a'); RESET ROLE`)
	run(blocks[2][1])
	if found := schematest.Names(t, owner, "SELECT type FROM posthorn.outbox ORDER BY type"); strings.Join(found, " ") != "a order.placed" {
		t.Errorf("the outbox holds %v", found)
	}
}
