package db_test

import (
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
)

// An unexpected error of the database keeps the name of its query, for the log.
func TestAnUnexpectedErrorNamesItsQuery(t *testing.T) {
	t.Parallel()
	d, _, _, _ := two(t, 2)
	err := d.Console(t.Context(), func(q *sql.Queries) error {
		return q.NotifyWake(t.Context(), strings.Repeat("x", 9000)) // a payload that PostgreSQL rejects
	})
	e := fault.As(err)
	if e == nil || e.Kind != fault.Internal || e.Cause == nil || !strings.Contains(e.Cause.Error(), "NotifyWake") {
		t.Errorf("got %+v", e)
	}
	if strings.Contains(e.Detail, "NotifyWake") {
		t.Errorf("people are told %q", e.Detail)
	}
}

// A row that every database has is not an object that a caller can request: without it a request fails with 500, not
// 404.
func TestAMissingSingletonIsNoMissingObject(t *testing.T) {
	t.Parallel()
	d, _, _, _ := two(t, 2)
	if _, err := d.Pool().Exec(t.Context(), "DELETE FROM platform"); err != nil {
		t.Fatal(err)
	}
	err := d.Console(t.Context(), func(q *sql.Queries) error {
		_, err := q.PlatformSettings(t.Context())
		if !db.IsNoRows(err) {
			t.Errorf("inside the transaction it is %v", err)
		}
		return err
	})
	if e := fault.As(err); e == nil || e.Kind != fault.Internal || e.Cause == nil || !strings.Contains(e.Cause.Error(), "PlatformSettings") {
		t.Errorf("the platform's settings are missing: %+v", err)
	}
	err = d.Console(t.Context(), func(q *sql.Queries) error {
		_, err := q.GetTenant(t.Context(), db.NewID())
		return err
	})
	if e := fault.As(err); e == nil || e.Kind != fault.NotFound {
		t.Errorf("a tenant that does not exist: %+v", err)
	}
}
