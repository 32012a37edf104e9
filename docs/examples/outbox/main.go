// Command outbox shows how a product that shares Posthorn's PostgreSQL server emits an event in the transaction of
// its own change: the order and its event exist together, or not at all.
//
//	DATABASE_URL=postgres://... TENANT=ten_... go run ./docs/examples/outbox
//
// The product's role needs one grant, from the role that migrated Posthorn: GRANT posthorn_emitter TO product;
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
)

// order is a row of the product's own.
type order struct {
	ID    string `json:"order_id"`
	Total int    `json:"total"` // cents
}

func main() {
	if err := run(context.Background(), os.Getenv("DATABASE_URL"), os.Getenv("TENANT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run places two orders; the second is too dear, and leaves neither a row nor an event.
func run(ctx context.Context, url, tenant string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, total int NOT NULL CHECK (total < 10000))"); err != nil {
		return err
	}
	for _, o := range []order{{"ord_1", 4200}, {"ord_2", 99900}} {
		event, err := place(ctx, conn, tenant, o)
		if err != nil {
			fmt.Printf("%s was not placed, and nobody hears of it: %v\n", o.ID, err)
			continue
		}
		fmt.Printf("%s was placed, and its event is %s\n", o.ID, event)
	}
	return nil
}

// place stores an order and emits its event in one transaction.
func place(ctx context.Context, conn *pgx.Conn, tenant string, o order) (event string, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// First the event, to show that it goes when what follows fails.
		if err := tx.QueryRow(ctx, "SELECT posthorn.emit($1, 'order.placed', $2::json, key => $3, idempotency_key => $3)",
			tenant, string(data), o.ID).Scan(&event); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO orders (id, total) VALUES ($1, $2)", o.ID, o.Total)
		return err
	})
	return event, err
}
