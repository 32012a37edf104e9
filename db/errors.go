package db

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/domain/fault"
)

// Errors that the schema's own checks raise inside a transaction.
var (
	// ErrRoutesChanged says that the database's routes changed after a batch was routed.
	ErrRoutesChanged = errors.New("routes changed")
	// ErrMoving says that a tenant is in the last step of its move to another home. The client sends the request again.
	ErrMoving = &fault.Error{
		Kind: fault.Unavailable, Code: "tenant_moving", RetryAfter: 1,
		Detail: "This tenant is moving to another server and accepts no changes for a few seconds. Send the same request again.",
	}
	// ErrWorkerDead says that another worker has declared this one dead.
	ErrWorkerDead = errors.New("worker declared dead")
)

// Translate turns the driver's errors into the project's own, in this one place. Errors that callers can act on get a
// code; all others are internal, with the driver's message as hidden cause.
func Translate(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case fault.As(err) != nil, errors.Is(err, ErrRoutesChanged), errors.Is(err, ErrWorkerDead):
		return err
	case isDamage(err):
		return internal(err)
	case errors.Is(err, pgx.ErrNoRows):
		return fault.ErrNotFound
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &pg):
		return translateServer(pg)
	case errors.Is(err, context.DeadlineExceeded), isConnection(err):
		return unavailable(err)
	}
	return internal(err)
}

// internal hides a cause that only the operator can act on.
func internal(cause error) error {
	return &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Something went wrong on our side.", Cause: cause}
}

func translateServer(pg *pgconn.PgError) error {
	switch {
	case pg.Code == "PH001":
		return ErrRoutesChanged
	case pg.Code == "PH002":
		return ErrWorkerDead
	case pg.Code == "23505":
		return &fault.Error{Kind: fault.Conflict, Code: "already_exists", Detail: "An object with this name already exists. Choose another name.", Cause: pg}
	// 08 connection, 53 resources (disk full, too many connections), 57 shutdown and cancel, 58 system, 40001/40P01 to
	// retry, 25006 a replica, 25P03 this process froze inside a transaction.
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
		strings.HasPrefix(pg.Code, "58"), pg.Code == "40001", pg.Code == "40P01", pg.Code == codeReadOnly, pg.Code == "25P03", pg.Code == "55P03":
		return unavailable(pg)
	}
	var cause error = pg
	if name := statementOf(pg); name != "" {
		cause = fmt.Errorf("statement %s: %w", name, pg)
	}
	return internal(cause)
}

func unavailable(cause error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Code: "database_unavailable", RetryAfter: 2,
		Detail: "The database isn't responding right now. Send the same request again in a few seconds.", Cause: cause,
	}
}

// isConnection reports whether an error says that the server could not be reached or went away.
func isConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "conn closed") ||
		strings.Contains(err.Error(), "closed pool")
}

// IsUnavailable reports whether the database did not respond; the same call can succeed later.
func IsUnavailable(err error) bool {
	e := fault.As(err)
	return e != nil && e.Kind == fault.Unavailable
}

// IsMissing reports whether a query found no row, within its transaction or after it.
func IsMissing(err error) bool { return IsNoRows(err) || IsNotFound(err) }

// IsNoRows reports whether a query found no row, within its transaction.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsNotFound reports whether a query found no row, after its transaction.
func IsNotFound(err error) bool {
	e := fault.As(err)
	return e != nil && e.Kind == fault.NotFound
}

// Unopened says that a value can't be read with the configured master keys.
func Unopened(cause error) error { return internal(cause) }
