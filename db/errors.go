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
	// ErrNoDay says that a row's day has no partitions. MakeDays makes them.
	ErrNoDay = errors.New("the day has no partitions")
	// ErrMoving says that a tenant is in the last step of its move to another home. The client sends the request again.
	ErrMoving = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "tenant_moving",
		RetryAfter: 1,
		Detail:     "This tenant is moving to another server and accepts no changes for a few seconds. Send the same request again.",
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
	if e := lastingFault(pg); e != nil {
		return lasting(e, pg)
	}
	switch {
	case pg.Code == "PH001":
		return ErrRoutesChanged
	case pg.Code == "PH002":
		return ErrWorkerDead
	case pg.Code == codeReadOnly: // a replica before its promotion, or after the failover away from it
		return &fault.Error{
			Kind:       fault.Unavailable,
			Code:       "database_read_only",
			RetryAfter: 2,
			Cause:      pg,
			Detail:     "The database accepts no changes: it is a replica, or default_transaction_read_only is on. Send the same request again in a few seconds.",
		}
	case pg.Code == "23514" && pg.ConstraintName == "": // no check is violated: no partition takes the row
		return unavailable(errors.Join(ErrNoDay, pg))
	case pg.Code == "23505":
		return &fault.Error{Kind: fault.Conflict, Code: "already_exists", Detail: "An object with this name already exists. Choose another name.", Cause: pg}
	// 08 connection, 53 resources (memory), 57 shutdown and cancel, 40001/40P01 to retry, 25P03 this process froze
	// inside a transaction.
	case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"),
		pg.Code == "40001", pg.Code == "40P01", pg.Code == "25P03", pg.Code == "55P03":
		return unavailable(pg)
	}
	return internal(naming(pg))
}

// naming adds the statement's name to a server's error, where it is known.
func naming(pg *pgconn.PgError) error {
	if name := statementOf(pg); name != "" {
		return fmt.Errorf("statement %s: %w", name, pg)
	}
	return pg
}

// ProcessConnections is how many connections one process with all parts opens at most: its pools, those that LISTEN,
// and that of the readiness check.
const ProcessConnections = 28

// What doesn't pass until the operator repairs it. It is never said to pass in seconds. Where one damaged row can be to
// blame it is internal: a batch is then tried piece by piece.
var (
	lastingRoles = fault.New(
		fault.Unavailable,
		"database_roles",
		"The role of the database URL can't take one of the roles posthorn_..., or that role can't use the schema. The operator of this server has to run `posthorn migrate roles`.",
	)
	lastingRight = fault.New(
		fault.Unavailable,
		"database_rights",
		"The database's roles lack a permission that Posthorn needs. The operator of this server has to grant it; the log names the table or function.",
	)
	lastingFiles = fault.New(
		fault.Unavailable,
		"database_broken",
		"PostgreSQL can't use a file of its own, as after an update of its package without a restart. The operator of this server has to restart PostgreSQL. Posthorn restarts its private one itself.",
	)
	lastingFull = fault.New(
		fault.Unavailable,
		"database_full",
		"The disk of PostgreSQL is full. The operator of this server has to free space, and everything continues by itself after that.",
	)
	lastingSlots = fault.New(
		fault.Unavailable,
		"database_connections",
		fmt.Sprintf("PostgreSQL accepts no more connections. A Posthorn process opens up to %d. The operator of this server has to raise max_connections, or put a pooler in front and set POSTHORN_DATABASE_LISTEN_URL.", ProcessConnections),
	)
	lastingEntry = fault.New(
		fault.Unavailable,
		"database_refused",
		"The database rejects the user, password, or name of the database URL. The operator of this server has to correct them.",
	)
	lastingInner = fault.New(
		fault.Internal,
		"database_internal",
		"PostgreSQL reports an internal error or damaged data. The operator of this server finds it in the logs of Posthorn and of PostgreSQL.",
	)
)

// lastingFault says what an error is that doesn't pass by itself; nil for all others.
func lastingFault(pg *pgconn.PgError) *fault.Error {
	switch {
	case pg.Code == codeRights && strings.HasPrefix(statementOf(pg), takesRole):
		return lastingRoles
	case pg.Code == codeRights:
		return lastingRight
	case strings.HasPrefix(pg.Code, "58"):
		return lastingFiles
	case pg.Code == "53100":
		return lastingFull
	case pg.Code == "53300":
		return lastingSlots
	case strings.HasPrefix(pg.Code, "28"), pg.Code == "3D000":
		return lastingEntry
	case strings.HasPrefix(pg.Code, "XX"):
		return lastingInner
	}
	return nil
}

const (
	codeRights = "42501" // insufficient_privilege
	takesRole  = "SELECT set_config('role'"
)

// lasting is the error for what the operator has to repair. The statement is not to blame: the same call succeeds after
// the repair, so what waits for the database goes on waiting.
func lasting(like *fault.Error, pg *pgconn.PgError) error {
	e := *like
	e.Lasting, e.Cause = true, naming(pg)
	if e.Kind == fault.Unavailable {
		e.RetryAfter = lastingRetry
	}
	return &e
}

// Lasting is the error with words for what doesn't pass by itself, of an error of the server; nil for all others.
func Lasting(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		if e := lastingFault(server); e != nil {
			return lasting(e, server)
		}
	}
	return nil
}

// lastingRetry is when a client tries again what waits for a person, in seconds.
const lastingRetry = 60

func unavailable(cause error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "database_unavailable",
		RetryAfter: 2,
		Detail:     "The database isn't responding right now. Send the same request again in a few seconds.",
		Cause:      cause,
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

// IsPassing reports whether the database did not respond and nobody has to repair anything: nothing needs to be said.
func IsPassing(err error) bool {
	e := fault.As(err)
	return e != nil && e.Kind == fault.Unavailable && !e.Lasting
}

// IsUnavailable reports whether the database is the cause and not the call: the same call can succeed later, by itself
// or after a repair.
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
