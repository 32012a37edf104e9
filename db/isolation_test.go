package db_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// two opens a database with two tenants, and a plain connection of its owner.
func two(t *testing.T, conns int32) (d *db.DB, owner *pgx.Conn, a, b id.UUID) {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: conns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if owner, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	for _, uuid := range []*id.UUID{&a, &b} {
		row, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "t"}, db.Author{Kind: "command"})
		if err != nil {
			t.Fatal(err)
		}
		*uuid = row.ID
	}
	return d, owner, a, b
}

func names(t *testing.T, c *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryTableOfTenantsIsUnderRowLevelSecurity(t *testing.T) {
	t.Parallel()
	_, owner, _, _ := two(t, 2)
	const ofTenants = `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		AND (c.relname = 'tenants' OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))`
	if all := names(t, owner, ofTenants); len(all) < 15 {
		t.Fatalf("tables: %q", all)
	}
	if open := names(t, owner, ofTenants+` AND NOT (c.relrowsecurity AND c.relforcerowsecurity)`); len(open) > 0 {
		t.Errorf("without forced row-level security: %q", open)
	}
	if open := names(t, owner, ofTenants+` AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant'
		AND pg_get_expr(p.polqual, p.polrelid) LIKE '%tenant()%' AND pg_get_expr(p.polwithcheck, p.polrelid) LIKE '%tenant()%')`); len(open) > 0 {
		t.Errorf("without a policy that names the tenant, for reading and for writing: %q", open)
	}
	// A policy for PUBLIC, or a second one for the tenant role, would widen what it sees.
	if wide := names(t, owner, `SELECT c.relname || '.' || p.polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
		WHERE c.relnamespace = 'posthorn'::regnamespace AND p.polname <> 'tenant'
		AND (0 = ANY(p.polroles) OR 'posthorn_tenant'::regrole = ANY(p.polroles))`); len(wide) > 0 {
		t.Errorf("policies that let the tenant role see more: %q", wide)
	}
}

// roles are the roles of transactions; the server's administrator is not among them.
const roles = `'posthorn_tenant', 'posthorn_ingest', 'posthorn_worker', 'posthorn_console', 'posthorn_lookup', 'posthorn_emitter'`

// A dump has no roles: `posthorn migrate roles` makes those that a restored schema needs, and the guide of backups runs
// it. A migration that adds a role must add it there.
func TestTheCommandOfBackupsMakesEveryRole(t *testing.T) {
	t.Parallel()
	_, owner, _, _ := two(t, 1)
	made := names(t, owner, `SELECT rolname FROM pg_roles WHERE rolname LIKE 'posthorn\_%' AND NOT rolcanlogin ORDER BY 1`)
	if known := slices.Sorted(slices.Values(db.EngineRoles)); !slices.Equal(made, known) {
		t.Errorf("migrations create the roles %q, and the command %q", made, known)
	}
	page, err := os.ReadFile("../docs/ops/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "posthorn migrate roles") {
		t.Error("the guide makes no roles")
	}
}

func TestRolesAreWeak(t *testing.T) {
	t.Parallel()
	_, owner, _, _ := two(t, 2)
	if strong := names(t, owner, `SELECT rolname FROM pg_roles WHERE (rolname IN (`+roles+`) OR rolname = current_user)
		AND (rolsuper OR rolbypassrls)`); len(strong) > 0 {
		t.Errorf("superusers, or above row-level security: %q", strong)
	}
	if owners := names(t, owner, `SELECT c.relname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
		WHERE c.relnamespace = 'posthorn'::regnamespace AND r.rolname IN (`+roles+`)`); len(owners) > 0 {
		t.Errorf("a role owns %q", owners)
	}
	if direct := names(t, owner, `SELECT c.relname || ' to ' || r.rolname FROM pg_class c, pg_roles r
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relispartition AND r.rolname IN (`+roles+`)
		AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')`); len(direct) > 0 {
		t.Errorf("partitions are reached directly: %q", direct)
	}
	if changed := names(t, owner, `SELECT r.rolname FROM pg_roles r WHERE r.rolname IN (`+roles+`) AND has_table_privilege(r.oid, 'posthorn.audit_log', 'UPDATE, DELETE')`); len(changed) > 0 {
		t.Errorf("the audit log can be changed by %q", changed)
	}
}

func TestWithoutATenantThereAreNoRows(t *testing.T) {
	t.Parallel()
	d, owner, a, b := two(t, 1) // one connection, so that anything it carried over would show
	seen := func(run func(context.Context, func(*sql.Queries) error) error, tenant id.UUID) bool {
		t.Helper()
		err := run(t.Context(), func(q *sql.Queries) error {
			_, err := q.GetTenant(t.Context(), tenant)
			return err
		})
		if err != nil && !fault.Is(err, fault.ErrNotFound.Code) {
			t.Fatal(err)
		}
		return err == nil
	}
	as := func(tenant id.UUID) func(context.Context, func(*sql.Queries) error) error {
		return func(ctx context.Context, fn func(*sql.Queries) error) error { return d.Tenant(ctx, tenant, fn) }
	}
	for range 2 {
		if !seen(as(a), a) || seen(as(a), b) {
			t.Error("a tenant sees itself and nobody else")
		}
		if !seen(d.Console, b) {
			t.Error("the console sees all")
		}
		if seen(as(b), a) || seen(as(id.UUID{}), a) {
			t.Error("a connection carried a tenant over")
		}
	}
	if _, err := owner.Exec(t.Context(), "SET ROLE posthorn_tenant"); err != nil {
		t.Fatal(err)
	}
	if rows := names(t, owner, "SELECT id::text FROM posthorn.tenants"); len(rows) > 0 {
		t.Errorf("unset, the tenant role sees %q", rows)
	}
	if _, err := owner.Exec(t.Context(), "RESET ROLE"); err != nil {
		t.Fatal(err)
	}
	if rows := names(t, owner, "SELECT id::text FROM posthorn.tenants"); len(rows) > 0 {
		t.Errorf("the login role sees %q without taking a role", rows)
	}
}

func TestATenantWritesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	d, _, a, b := two(t, 2)
	err := d.Tenant(t.Context(), a, func(q *sql.Queries) error {
		_, err := q.InsertEventType(t.Context(), sql.InsertEventTypeParams{TenantID: b, Name: "x"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a row of another tenant: %v", err)
	}
	err = d.Tenant(t.Context(), a, func(q *sql.Queries) error {
		_, _, err := accounts.MakeKey(t.Context(), q, accounts.NewKey{Name: "platform"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "row-level security") {
		t.Errorf("a tenant made a platform key: %v", err)
	}
}
