package db_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/migrations"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

// functions describes every function of the schema, save the one whose text holds the day of its own database.
func functions(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	return names(t, c, `SELECT format('%s owner %s rights %s', pg_get_functiondef(p.oid), p.proowner::regrole,
			(SELECT string_agg(a.grantee::regrole::text, ' ' ORDER BY a.grantee::regrole::text) FROM aclexplode(p.proacl) a))
		FROM pg_proc p WHERE p.pronamespace = 'posthorn'::regnamespace AND p.proname <> 'event_ids_since' ORDER BY 1`)
}

func execute(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestTheFunctionsOfANewDatabaseAreThoseOfTheFolder(t *testing.T) {
	t.Parallel()
	c := connect(t, schematest.Clone(t))
	files := map[string]string{}
	list, err := fs.Glob(migrations.FS, "functions/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		text, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(file), ".sql")] = string(text)
	}
	rows, err := c.Query(t.Context(), "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'posthorn'::regnamespace AND proname <> 'event_ids_since'")
	if err != nil {
		t.Fatal(err)
	}
	created := map[string]bool{}
	var name, body string
	if _, err := pgx.ForEachRow(rows, []any{&name, &body}, func() error {
		created[name] = true
		if !strings.Contains(files[name], body) {
			t.Errorf("functions/%s.sql does not have this text of the function:\n%s", name, body)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if !created[name] {
			t.Errorf("functions/%s.sql creates no function %s", name, name)
		}
	}
	// Once more, with bodies checked: each statement can be repeated, and changes neither owner nor rights.
	before := functions(t, c)
	execute(t, c, "GRANT CREATE ON SCHEMA posthorn TO posthorn_lookup")
	statements, _ := migrations.Functions()
	for _, statement := range statements {
		execute(t, c, statement+"; RESET ROLE")
	}
	if after := functions(t, c); !slices.Equal(before, after) {
		t.Errorf("after another replay: %q, want %q", after, before)
	}
}

func TestAnUpgradedDatabaseHasTheFunctionsOfANewOne(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	c := connect(t, url)
	want := functions(t, c)
	// The way down restores older texts. A version that had the folder leaves another digest.
	for len(names(t, c, "SELECT name FROM revisions WHERE name = 'functions'")) > 0 || slices.Equal(functions(t, c), want) {
		if err := db.MigrateDown(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	const changed = "CREATE OR REPLACE FUNCTION posthorn.matches_type(pattern text, event_type text) RETURNS boolean LANGUAGE sql AS 'SELECT false'"
	for _, older := range []string{changed, "UPDATE revisions SET n = 1 WHERE name = 'functions'; " + changed} {
		execute(t, c, older)
		if err := schematest.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if got := functions(t, c); !slices.Equal(got, want) {
			t.Errorf("after the upgrade: %q, want %q", got, want)
		}
	}
}

func TestAnOlderVersionLeavesTheFunctionsOfANewerSchema(t *testing.T) {
	t.Parallel()
	url := schematest.Clone(t)
	c := connect(t, url)
	execute(t, c, fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)", migrations.Newest()+1),
		"CREATE OR REPLACE FUNCTION posthorn.matches_type(pattern text, event_type text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
		"UPDATE revisions SET n = 1 WHERE name = 'functions'")
	newer := functions(t, c)
	if err := schematest.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := functions(t, c); !slices.Equal(got, newer) {
		t.Errorf("the older version left %q, want %q", got, newer)
	}
}

func TestDownReplaysTheFunctionsOnTheWayUp(t *testing.T) {
	t.Parallel()
	url := dbtest.Clone(t, "", nil)
	if err := schematest.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	want := functions(t, c)
	if err := db.MigrateDown(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	// As the way down of a migration that replaced a function.
	execute(t, c, "CREATE OR REPLACE FUNCTION posthorn.matches_type(pattern text, event_type text) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
	if err := schematest.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if got := functions(t, c); !slices.Equal(got, want) {
		t.Errorf("after down and up: %q, want %q", got, want)
	}
}

// An older process that starts again leaves the functions only if the schema has a newer number.
func TestAChangedFunctionTakesTheNumberOfAMigration(t *testing.T) {
	t.Parallel()
	list, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var last, noted string
	line := regexp.MustCompile(`(?m)^-- functions: ([0-9a-f]{16})$`)
	created := regexp.MustCompile(`(?i)CREATE\s+(OR\s+REPLACE\s+)?FUNCTION`)
	for _, name := range list {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if m := line.FindSubmatch(text); m != nil {
			last, noted = name, string(m[1])
		}
		if last != "" && created.Match(text) {
			t.Errorf("%s creates a function: since 00103 they are in db/migrations/functions", name)
		}
	}
	if _, digest := migrations.Functions(); noted != fmt.Sprintf("%016x", digest) {
		t.Errorf("db/migrations/functions differs from %s: write the next migration with the line\n-- functions: %016x", last, digest)
	}
}
