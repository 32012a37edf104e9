package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"posthorn/db/sql"
)

// singletons are the statements that read a row which every database has. If that row is missing, the database is
// damaged and the request fails with an internal error. With every other statement, a missing row means that the
// requested object does not exist.
var singletons = map[string]bool{
	"PlatformSettings": true,
	"LockPlatform":     true,
	"LockClock":        true,
	"ClockSteppedAt":   true,
	"KeysRevision":     true,
}

// missingRow is pgx.ErrNoRows with the name of the statement.
type missingRow struct{ statement string }

func (m *missingRow) Error() string {
	return fmt.Sprintf("statement %s: %v", m.statement, pgx.ErrNoRows)
}
func (m *missingRow) Unwrap() error { return pgx.ErrNoRows }

// isDamage reports whether an error says that a row is missing which every database has.
func isDamage(err error) bool {
	var m *missingRow
	return errors.As(err, &m) && singletons[m.statement]
}

// namingRows names the statement when a query of one row finds none.
type namingRows struct{ sql.DBTX }

// QueryRow runs a statement of one row.
func (n namingRows) QueryRow(ctx context.Context, text string, args ...any) pgx.Row {
	return namedRow{n.DBTX.QueryRow(ctx, text, args...), text}
}

type namedRow struct {
	pgx.Row
	text string
}

// Scan reads the row.
func (r namedRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	if errors.Is(err, pgx.ErrNoRows) {
		return &missingRow{statementName(r.text)}
	}
	return err
}
