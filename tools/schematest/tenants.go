package schematest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
)

// Tenants opens a new database with two tenants, and a plain connection of its owner.
func Tenants(t *testing.T, conns int32) (d *db.DB, owner *pgx.Conn, a, b id.UUID) {
	t.Helper()
	url := Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: conns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if owner, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	for _, uuid := range []*id.UUID{&a, &b} {
		row, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "t"}, db.Author{Kind: "command"})
		if err != nil {
			t.Fatal(err)
		}
		*uuid = row.ID
	}
	return d, owner, a, b
}

// Names reads the texts that a query returns.
func Names(t *testing.T, c *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}
