package move

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db/sql"
	"posthorn/domain/fault"
)

// What a move needs of the two servers.
const (
	version15   = 150_000 // row filters
	version16   = 160_000 // run_as_owner
	needSlots   = 4       // its own, and those of the tables that are copied at the same time
	needWorkers = 3       // the one that follows, and two that copy
	mostFailed  = 5       // failures of the subscription until the move gives up
	nearEnough  = 500 * time.Millisecond
	mostRounds  = 100
)

func unfit(home, what string, args ...any) error {
	return fault.New(fault.Invalid, "move_server", "The PostgreSQL of the home "+home+" "+fmt.Sprintf(what, args...))
}

// checkServers says what the servers lack for logical replication, and how to add it.
func (v *mover) checkServers(ctx context.Context) error {
	from, err := v.old.MoveSource(ctx)
	if err != nil {
		return err
	}
	to, err := v.new.MoveTarget(ctx)
	lacks := func(lack bool, home, what string, args ...any) {
		if err == nil && lack {
			err = unfit(home, what, args...)
		}
	}
	const upgrade = "is version %d. Moves need 15 or newer: upgrade it."
	lacks(from.Version < version15, v.fromHome, upgrade, from.Version/10_000)
	lacks(to.Version < version15, v.Home, upgrade, to.Version/10_000)
	lacks(from.WalLevel != "logical", v.fromHome, "has wal_level = %s. Set wal_level = logical in its configuration, and restart it.", from.WalLevel)
	lacks(!from.Capable, v.fromHome, "lets the role of POSTHORN_DATABASE_URL replicate nothing. Run this command with a superuser's URL, or with the owner's after "+
		"ALTER ROLE posthorn REPLICATION BYPASSRLS.")
	lacks(from.Slots < needSlots || from.Senders < needSlots, v.fromHome, "has %d free replication slots and %d free senders; a move needs %d of each. "+
		"Raise max_replication_slots and max_wal_senders, and restart it.", from.Slots, from.Senders, needSlots)
	lacks(!to.Capable, v.Home, "lets the role of POSTHORN_TO_DATABASE_URL make no subscription. Write a superuser's URL. From version 16 on the owner's is enough after "+
		"ALTER ROLE posthorn BYPASSRLS and GRANT pg_create_subscription TO posthorn.")
	lacks(to.Workers < needWorkers, v.Home, "has room for %d workers of replication; a move needs %d. Raise max_logical_replication_workers, max_worker_processes and "+
		"max_replication_slots, and restart it.", to.Workers, needWorkers)
	return err
}

// replicate publishes the tenant's rows here and subscribes to them there, unless an earlier run has. A subscription
// without its slot can't go on: a failover of the old home has lost the slot.
func (v *mover) replicate(ctx context.Context) error {
	_, err := v.new.MoveSubscription(ctx, v.name)
	slots, failed := v.old.MoveSlots(ctx, v.name)
	switch {
	case failed != nil:
		return failed
	case err == nil && slots > 0:
		return nil
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	for _, step := range []func(context.Context) error{v.unsubscribe, v.unpublish, v.publish, v.forget, v.makeDays, v.subscribe} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publications are the names of the two publications: of tables whose primary key has the tenant, and of the others.
func (v *mover) publications() string { return v.name + ", " + v.name + "_i" }

// publish makes the publications, and then the slot, from which no change is missing. The slot is complete when all
// transactions of the server have ended that run now.
func (v *mover) publish(ctx context.Context) error {
	for _, p := range []struct {
		name, changes string
		as            movedAs
	}{{v.name, "insert, update, delete", live}, {v.name + "_i", "insert", inserts}} {
		var tables []string
		for _, t := range movedTables {
			if t.as == p.as {
				tables = append(tables, fmt.Sprintf("%s WHERE (tenant_id = '%s')", t.name, v.Tenant))
			}
		}
		if _, err := v.from.Exec(ctx, fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish_via_partition_root = true, publish = '%s')",
			p.name, strings.Join(tables, ", "), p.changes)); err != nil {
			return err
		}
	}
	v.Say("waiting for transactions that run now")
	_, err := v.from.Exec(ctx, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", v.name)
	return err
}

// unpublish removes the slot and the publications. A slot that stays keeps the log of its server.
func (v *mover) unpublish(ctx context.Context) error {
	if err := retry(ctx, func() error { return v.old.DropMoveSlots(ctx, v.name) }); err != nil {
		return err
	}
	_, err := v.from.Exec(ctx, "DROP PUBLICATION IF EXISTS "+v.publications())
	return err
}

// makeDays creates the other home's partitions of the days that this home has.
func (v *mover) makeDays(ctx context.Context) error {
	first, last, err := days(ctx, v.from)
	if err == nil {
		_, err = v.to.Exec(ctx, "SELECT posthorn.make_partitions($1::date, $2::date)", first, last)
	}
	return err
}

// subscribe makes the subscription, which copies the rows and then follows. The URL has a password: a server that logs
// statements does not log this one.
func (v *mover) subscribe(ctx context.Context) error {
	options := ""
	if to, err := v.new.MoveTarget(ctx); err != nil {
		return err
	} else if to.Version >= version16 {
		options = ", run_as_owner = true" // the tables' owner sees no row
	}
	_, _ = v.to.Exec(ctx, "SET log_statement = 'none'; SET log_min_error_statement = 'panic'; SET log_min_duration_statement = -1")
	_, err := v.to.Exec(ctx, fmt.Sprintf("CREATE SUBSCRIPTION %s CONNECTION '%s' PUBLICATION %s WITH (create_slot = false, slot_name = %[1]s%[4]s)",
		v.name, strings.ReplaceAll(replicationURL(v.From), "'", "''"), v.publications(), options))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return unfit(v.Home, "can't subscribe to that of the home %s: %s. It reaches the other server at the address in POSTHORN_DATABASE_URL.", v.fromHome, pg.Message)
	}
	return err
}

// replicationURL is the URL with which one server reaches the other: without parameters of the driver, and with an
// error where row-level security would hide rows.
func replicationURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	given, kept := u.Query(), url.Values{"application_name": {"posthorn move"}, "options": {"-c row_security=off"}}
	for name := range given {
		if slices.Contains([]string{"host", "port", "user", "password", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"}, name) {
			kept[name] = given[name]
		}
	}
	u.RawQuery = strings.ReplaceAll(kept.Encode(), "+", "%20") // libpq knows no +
	return u.String()
}

// unsubscribe removes the subscription with everything that it keeps at the other server, also where it has copied
// nothing yet.
func (v *mover) unsubscribe(ctx context.Context) error {
	sub, err := v.new.MoveSubscription(ctx, v.name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := v.to.Exec(ctx, "ALTER SUBSCRIPTION "+v.name+" DISABLE"); err != nil {
		return err
	}
	if err := retry(ctx, func() error { return v.old.DropMoveSlots(ctx, fmt.Sprintf("pg\\_%d\\_sync\\_%%", sub.ID)) }); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, v.to, func(tx pgx.Tx) error { return v.drop(ctx, tx) })
}

func (v *mover) drop(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("ALTER SUBSCRIPTION %[1]s DISABLE; ALTER SUBSCRIPTION %[1]s SET (slot_name = NONE); DROP SUBSCRIPTION %[1]s", v.name))
	return err
}

// detach ends the replication before the old home deletes anything: the new one would follow.
func (v *mover) detach(ctx context.Context) error {
	v.Say("copying the last changes")
	return pgx.BeginFunc(ctx, v.to, func(tx pgx.Tx) error {
		if err := v.drop(ctx, tx); err != nil {
			return err
		}
		return sql.New(tx).SetMoveState(ctx, "copied", v.Tenant)
	})
}

// catchUp waits until all tables are copied and the other home follows closely.
func (v *mover) catchUp(ctx context.Context) error {
	for copied := int64(-1); ; {
		sub, err := v.following(ctx)
		if err != nil {
			return err
		}
		if sub.Copied != copied {
			copied = sub.Copied
			v.Say("copied", "tables", copied, "of", sub.Tables)
		}
		if sub.Copied == sub.Tables {
			break
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
	for range mostRounds {
		began := time.Now()
		if err := v.await(ctx); err != nil || time.Since(began) < nearEnough {
			return err
		}
	}
	return nil
}

// following reads the subscription, and fails if it fails again and again.
func (v *mover) following(ctx context.Context) (sub sql.MoveSubscriptionRow, err error) {
	if sub, err = v.new.MoveSubscription(ctx, v.name); err != nil {
		return sub, err
	}
	if v.failed == nil {
		v.failed = &sub.Failed
	}
	if sub.Failed-*v.failed >= mostFailed {
		err = unfit(v.Home, "can't replicate from that of the home %s: its log says why, in lines with %s. It reaches the other server at the address in "+
			"POSTHORN_DATABASE_URL. Fix what the log says, then run the command again, or with --rollback.", v.fromHome, v.name)
	}
	return sub, err
}

// await makes a mark, and waits until it is in the other home: everything before it is there, too.
func (v *mover) await(ctx context.Context) error {
	mark, err := v.old.MarkMove(ctx, v.Tenant)
	for err == nil {
		var at int64
		if at, err = v.new.MoveMark(ctx, v.Tenant); err != nil || at >= mark {
			return err
		}
		if _, err = v.following(ctx); err == nil {
			err = rest(ctx)
		}
	}
	return err
}
