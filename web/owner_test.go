package main

import (
	"bytes"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/fault"
	"posthorn/tools/dbtest"
	"posthorn/tools/need"
	"posthorn/tools/schematest"
)

// asAdministrator is the URL of an environment's database for the server's superuser.
func asAdministrator(t *testing.T, environ []string) string {
	t.Helper()
	if os.Getenv("POSTHORN_TEST_DATABASE_URL") != "" {
		need.Missing(t, "a superuser of the server", "POSTHORN_TEST_DATABASE_URL gives another role.")
	}
	admin, err := url.Parse(dbtest.Server(t))
	if err != nil {
		t.Fatal(err)
	}
	own, err := url.Parse(databaseURL(t, environ))
	if err != nil {
		t.Fatal(err)
	}
	admin.Path = own.Path
	return admin.String()
}

func TestWhatASuperuserMigratesBelongsToTheOwnerOfTheDatabase(t *testing.T) {
	t.Parallel()
	environ := emptyDatabase(t)
	var said bytes.Buffer
	if err := db.MigrateUp(t.Context(), asAdministrator(t, environ), slog.New(slog.NewTextHandler(&said, nil))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), `level=INFO msg="migration applied" name=00001_engine.sql duration=`) {
		t.Errorf("the log says\n%s", said.String())
	}
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
}

func TestASchemaOfAnotherRoleIsNamedAndTransferredAsThePageSays(t *testing.T) {
	t.Parallel()
	need.Programs(t, "psql")
	environ := emptyDatabase(t)
	admin := asAdministrator(t, environ)
	psql := func(commands string) {
		t.Helper()
		if said, err := typed(t, t.TempDir(), []string{"ADMIN=" + admin, "COMMANDS=" + commands}, `psql --quiet --set ON_ERROR_STOP=1 --command="$COMMANDS" "$ADMIN"`); err != nil {
			t.Fatalf("%v %s", err, said)
		}
	}
	psql("CREATE SCHEMA posthorn")
	if err := schematest.Migrate(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	err := schematest.Migrate(t.Context(), databaseURL(t, environ))
	if e := fault.As(err); e == nil || e.Code != "database_owner" || !strings.Contains(e.Detail, "belongs to the role posthorn_admin") {
		t.Fatalf("a schema of another role: %v", err)
	}
	psql(examples(t, "deploy.md", "sql", 1)[0])
	if err := schematest.Migrate(t.Context(), databaseURL(t, environ)); err != nil {
		t.Fatal(err)
	}
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	createEndpoint(t, program(t, environ, Parts{Web: true, Worker: true}).URL(), m.APIKey)
}
