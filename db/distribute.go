package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/fault"
)

// bulkTables begin their keys with tenant_id and refer to no table: they can be spread over servers by tenant. The first
// is the one that the others lie beside.
var bulkTables = []string{"events", "deliveries", "attempts"}

// Distributed is a bulk table, and whether this call distributed it or an earlier one did.
type Distributed struct {
	Table string
	Now   bool
}

var errNoCitus = fault.New(fault.Invalid, "citus_missing",
	"The extension citus is not installed in this database; nothing was changed. Install it on every server, run CREATE EXTENSION citus and citus_add_node as its manual says, then repeat.")

// Distribute spreads the bulk tables over the servers of a Citus cluster by tenant, the rows that they have included. What
// an earlier call has distributed stays as it is, so that one that broke off can be repeated. The URL is that of the
// coordinator itself.
func Distribute(ctx context.Context, url string) (tables []Distributed, err error) {
	conn, err := Connect(ctx, url, Options{Name: "distribute"})
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// The functions are what is needed, wherever the extension keeps them.
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regproc('create_distributed_table') IS NOT NULL AND to_regclass('pg_dist_partition') IS NOT NULL").Scan(&there); err != nil {
		return nil, translate(err)
	}
	if !there {
		return nil, errNoCitus
	}
	for _, name := range bulkTables {
		now, err := distribute(ctx, conn, name)
		if err != nil {
			return tables, translate(err)
		}
		tables = append(tables, Distributed{name, now})
	}
	return tables, nil
}

func distribute(ctx context.Context, conn *pgx.Conn, name string) (now bool, err error) {
	table, beside := identifier(schema, name), identifier(schema, bulkTables[0])
	if name == bulkTables[0] {
		beside = "none" // not beside the tables of a product that shares the cluster
	}
	var already bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = $1::text::regclass)", table).Scan(&already); err != nil || already {
		return false, err
	}
	if _, err := conn.Exec(ctx, "SELECT create_distributed_table($1::text::regclass, 'tenant_id', colocate_with => $2)", table, beside); err != nil {
		return false, err
	}
	// The rows have been copied to where they belong; those that stay behind are seen by nobody and take room.
	_, err = conn.Exec(ctx, "SELECT truncate_local_data_after_distributing_table($1::text::regclass)", table)
	return true, err
}
