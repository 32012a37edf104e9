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
	}
	for _, table := range have {
		if !slices.Contains(known, table) {
			t.Errorf("table %s has a tenant in each row, and a move of the tenant doesn't know it: add it to movedTables", table)
		}
	}
}

// A publication with a filter rejects changes of tables whose replica identity lacks the filter's column: of every
// tenant of the home, and not of the one that moves alone.
func TestAPublishedTableHasTheTenantInItsReplicaIdentity(t *testing.T) {
	t.Parallel()
	conn, err := db.Connect(t.Context(), schematest.Clone(t), db.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, table := range movedTables {
		if table.as != live {
			continue
		}
		var has bool
		if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
			WHERE i.indrelid = ('posthorn.' || $1::text)::regclass AND i.indisprimary AND a.attname = 'tenant_id')
			AND (SELECT relreplident = 'd' FROM pg_class WHERE oid = ('posthorn.' || $1::text)::regclass)`, table.name).Scan(&has); err != nil {
			t.Fatal(err)
		}
		if !has {
			t.Errorf("the primary key of %s lacks the tenant: copy the table in the last step, or replicate its insertions alone", table.name)
		}
	}
}

// A secret that is not resealed can't be opened in the other home.
func TestEverySealedColumnOfATenantIsSealedAgainByAMove(t *testing.T) {
	t.Parallel()
	known := []string{"operators.totp", "mailbox.sealed", "egress_proxies.sealed", "tenant_moves.link_key"} // of no tenant; stay
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

// The other server needs neither the driver's parameters nor a row too few.
func TestTheServersURLHasWhatPostgreSQLKnows(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"postgres://u:p%20w@h:5432/d?sslmode=require&pool_max_conns=3":                  "postgres://u:p%20w@h:5432/d?application_name=posthorn%20move&options=-c%20row_security%3Doff&sslmode=require",
		"postgres:///d?host=%2Frun%2Fpg&user=u&default_query_exec_mode=simple_protocol": "postgres:///d?application_name=posthorn%20move&host=%2Frun%2Fpg&options=-c%20row_security%3Doff&user=u",
	} {
		if got := replicationURL(given); got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}
