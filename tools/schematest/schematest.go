// Package schematest gives tests databases that have the newest schema.
package schematest

import (
	"context"
	"log/slog"
	"testing"

	"posthorn/db"
	"posthorn/db/migrations"
	"posthorn/tools/dbtest"
)

// Clone returns the URL of a new database with the newest schema.
func Clone(t testing.TB) string {
	t.Helper()
	return dbtest.Clone(t, Fingerprint(), Migrate)
}

// CloneLogical is Clone on a server with logical replication, with the URL for a superuser.
func CloneLogical(t testing.TB) (url, admin string) {
	t.Helper()
	return dbtest.CloneLogical(t, Fingerprint(), Migrate)
}

// Fingerprint changes whenever a migration does. Template databases are named by it.
func Fingerprint() string { return dbtest.Fingerprint(migrations.FS) }

// Migrate brings a database to the newest schema and logs nothing.
func Migrate(ctx context.Context, url string) error {
	return db.MigrateUp(ctx, url, slog.New(slog.DiscardHandler))
}
