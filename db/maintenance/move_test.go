package maintenance

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/dbtest"
	"posthorn/db/migrations"
)

// A table with a tenant in each row that nobody thought of would be left behind by a move.
func TestEveryTableOfTenantsMoves(t *testing.T) {
	t.Parallel()
	conn, err := db.Connect(t.Context(), dbtest.Clone(t, migrations.Fingerprint(), db.MigrateUp), db.Options{Name: "test"})
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
	for _, table := range have {
		if !slices.Contains(known, table) {
			t.Errorf("table %s has a tenant in each row, and a move of the tenant doesn't know it: add it to movedTables", table)
		}
	}
}

// A secret that is not sealed again can't be opened in the other home.
func TestEverySealedColumnOfATenantIsSealedAgainByAMove(t *testing.T) {
	t.Parallel()
	known := []string{"people.totp", "operators.totp", "mailbox.sealed"} // of members, sealed by arrivePeople; of no tenant
	for _, c := range resealed {
		known = append(known, c.table+"."+c.column)
	}
	have := SealedColumns()
	slices.Sort(known)
	slices.Sort(have)
	if !slices.Equal(known, have) {
		t.Errorf("a move seals %v, and sealed are %v", known, have)
	}
}
