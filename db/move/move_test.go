package move

import (
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// A table with a tenant in each row that is not in the list would be left behind by a move.
func TestEveryTableOfTenantsMoves(t *testing.T) {
	t.Parallel()
	conn, err := db.Connect(t.Context(), schematest.Clone(t), db.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), `SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'posthorn'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	have, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, table := range movedTables {
		if slices.Contains(known, table.name) {
			t.Errorf("%s is listed twice", table.name)
		}
		if known = append(known, table.name); !slices.Contains(have, table.name) {
			t.Errorf("%s is no table with a tenant", table.name)
		}
		if table.tracked() != (table.changed != "") {
			t.Errorf("%s: its changes can't be found", table.name)
		}
	}
	for _, table := range movedTables {
		if table.as == stays {
			continue
		}
		needs := []string{"SELECT", "INSERT"}
		if table.tracked() && table.name != "audit_log" { // which is append-only
			needs = append(needs, "DELETE")
		}
		for _, right := range needs {
			var has bool
			if err := conn.QueryRow(t.Context(), "SELECT has_table_privilege('posthorn_console', 'posthorn.' || $1::text, $2)", table.name, right).Scan(&has); err != nil {
				t.Fatal(err)
			}
			if !has {
				t.Errorf("who moves a tenant lacks %s on %s", right, table.name)
			}
		}
	}
	for _, c := range append(slices.Clone(resealed), []struct{ table, column, row, object string }{
		{table: "lanes", column: "drop_below"}, {table: "bulk_jobs", column: "horizon"}, {table: "people", column: "totp"},
	}...) {
		var has bool
		if err := conn.QueryRow(t.Context(), "SELECT has_column_privilege('posthorn_console', 'posthorn.' || $1::text, $2, 'UPDATE')", c.table, c.column).Scan(&has); err != nil {
			t.Fatal(err)
		}
		if !has {
			t.Errorf("who moves a tenant can't change %s.%s", c.table, c.column)
		}
	}
	for _, table := range have {
		if !slices.Contains(known, table) {
			t.Errorf("table %s has a tenant in each row, and a move of the tenant doesn't know it: add it to movedTables", table)
		}
	}
}

// A secret that is not resealed can't be opened in the other home.
func TestEverySealedColumnOfATenantIsSealedAgainByAMove(t *testing.T) {
	t.Parallel()
	known := []string{"people.totp", "operators.totp", "mailbox.sealed", "egress_proxies.sealed"} // of members, sealed by arrivePeople; of no tenant; stays
	for _, c := range resealed {
		known = append(known, c.table+"."+c.column)
	}
	have := maintenance.SealedColumns()
	slices.Sort(known)
	slices.Sort(have)
	if !slices.Equal(known, have) {
		t.Errorf("a move seals %v, and sealed are %v", known, have)
	}
}
