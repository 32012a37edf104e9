package db_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
)

// What only the operator can repair has a code of its own, is logged, and is not said to pass in seconds. What passes
// is.
func TestErrorsThatTheOperatorRepairsAreNeverSaidToPass(t *testing.T) {
	t.Parallel()
	passing := regexp.MustCompile(`(?i)in a few seconds|right now`)
	for _, c := range []struct {
		server, where, code string
		lasting             bool
		says                string
	}{
		{"58P01", "", "database_broken", true, "restart PostgreSQL"},
		{"58030", "", "database_broken", true, "a file of its own"},
		{"42501", "", "database_rights", true, "permission"},
		{"42501", "statement SELECT set_config('role', $1, true)\n", "database_roles", true, "posthorn migrate roles"},
		{"53100", "", "database_full", true, "free space"},
		{"53300", "", "database_connections", true, "28"},
		{"28P01", "", "database_refused", true, "password"},
		{"3D000", "", "database_refused", true, "name"},
		{"XX000", "", "database_internal", true, "logs"},
		{"XX001", "", "database_internal", true, "damaged"},
		{"57P01", "", "database_unavailable", false, "in a few seconds"},
		{"57P03", "", "database_unavailable", false, "in a few seconds"},
		{"53200", "", "database_unavailable", false, "in a few seconds"},
		{"40001", "", "database_unavailable", false, "in a few seconds"},
		{"25006", "", "database_read_only", false, "in a few seconds"},
	} {
		err := db.Translate(&pgconn.PgError{Code: c.server, Message: "the driver's words", Where: c.where})
		e := fault.As(err)
		if e == nil || e.Code != c.code || e.Lasting != c.lasting || !strings.Contains(e.Detail, c.says) ||
			strings.Contains(e.Detail, "driver's") {
			t.Errorf("%s: %+v", c.server, e)
			continue
		}
		if db.IsPassing(err) == c.lasting || c.lasting && passing.MatchString(e.Detail) {
			t.Errorf("%s: %q, passing %v", c.server, e.Detail, db.IsPassing(err))
		}
		// Results and jobs wait for the repair, unless one row can be to blame.
		if inner := strings.HasPrefix(c.server, "XX"); db.IsUnavailable(err) == inner {
			t.Errorf("%s: the database is the cause: %v", c.server, db.IsUnavailable(err))
		}
		if e.Cause == nil || !strings.Contains(e.Cause.Error(), "driver's words") {
			t.Errorf("%s: the log does not get the cause: %v", c.server, e.Cause)
		}
	}
	words := fault.As(db.Translate(&pgconn.PgError{Code: "53300"})).Detail
	for _, setting := range []string{"max_connections", "POSTHORN_DATABASE_LISTEN_URL"} {
		if !strings.Contains(words, setting) {
			t.Errorf("of connections it says %q", words)
		}
	}
}

// The same with a server that rejects: the statement is in the log.
func TestARejectedStatementIsNamedForTheOperator(t *testing.T) {
	t.Parallel()
	d, owner, _, _ := two(t, 2)
	if _, err := owner.Exec(t.Context(), "REVOKE SELECT ON posthorn.platform FROM posthorn_console"); err != nil {
		t.Fatal(err)
	}
	err := d.Console(t.Context(), func(q *sql.Queries) error {
		_, err := q.PlatformSettings(t.Context())
		return err
	})
	e := fault.As(err)
	if e == nil || e.Code != "database_rights" || e.Cause == nil || !strings.Contains(e.Cause.Error(), "PlatformSettings") {
		t.Fatalf("%+v", err)
	}
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" {
		t.Errorf("the server's error is lost: %v", err)
	}
}
