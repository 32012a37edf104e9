package db_test

import (
	"strings"
	"testing"

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
