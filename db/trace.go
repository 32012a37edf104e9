package db

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statements adds the name of the failed statement to the server's errors, so that a log line names the query of
// queries/. The name goes into PgError.Where, PostgreSQL's field for the context of an error.
type statements struct{}

type statementKey struct{}

// whereStatement begins PgError.Where after a name was added.
const whereStatement = "statement "

// TraceQueryStart keeps the statement's text for TraceQueryEnd.
func (statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, data.SQL)
}

// TraceQueryEnd names the statement in its error.
func (statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if data.Err == nil {
		return
	}
	if sql, ok := ctx.Value(statementKey{}).(string); ok {
		nameStatement(data.Err, sql)
	}
}

// TraceBatchStart does nothing: TraceBatchQuery gets each statement of a batch.
func (statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery names a statement of a batch in its error.
func (statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if data.Err != nil {
		nameStatement(data.Err, data.SQL)
	}
}

// TraceBatchEnd does nothing.
func (statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func nameStatement(err error, sql string) {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !strings.HasPrefix(pg.Where, whereStatement) {
		pg.Where = whereStatement + statementName(sql) + "\n" + pg.Where
	}
}

// statementName is the name that sqlc writes in the first line of a statement ("-- name: InsertEvents :exec"), or the
// statement's first words.
func statementName(sql string) string {
	line, _, _ := strings.Cut(sql, "\n")
	if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == "--" && fields[1] == "name:" {
		return fields[2]
	}
	return line[:min(len(line), 60)]
}

// statementOf is the name of the statement that the server rejected; empty if it is not known.
func statementOf(pg *pgconn.PgError) string {
	name, _, _ := strings.Cut(pg.Where, "\n")
	if name, named := strings.CutPrefix(name, whereStatement); named {
		return name
	}
	return ""
}
