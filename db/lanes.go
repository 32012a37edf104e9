package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db/seal"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// setHotRole is setRole for the engine's own statements. Their tables go from empty to a million rows between two
// vacuums, and a plan that read the whole table would be kept: every one of them is meant to go by index.
const setHotRole = `SELECT set_config('role', $1, true), set_config('idle_in_transaction_session_timeout', '10s', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// hot sends statements under the worker role as one round trip and one transaction.
func (d *DB) hot(ctx context.Context, queue func(*pgx.Batch)) error {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return translate(err)
	}
	defer conn.Release()
	b, err := d.begin(ctx, conn.Conn(), setHotRole, roleWorker)
	if err == nil {
		queue(b)
		b.Queue("commit")
		err = conn.SendBatch(ctx, b).Close()
	}
	if err != nil && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return translate(err)
}

// LaneRead asks for the heads of lanes.
type LaneRead struct {
	Endpoints []id.UUID
	Floors    []int64 // read above this number
	Limits    []int32
	Known     []int64 // rows above the floors that the reader holds already
}

// LaneReading is what a read found, and what it says about the queue's numbers: every transaction that drew a number up
// to Top has a number of its own below Xid; every transaction below Oldest had ended when the rows were read.
type LaneReading struct {
	Rows             []ReadLanesRow
	Top, Xid, Oldest int64
}

// ReadLanes reads the heads of lanes in one round trip.
func (d *DB) ReadLanes(ctx context.Context, r LaneRead) (got LaneReading, err error) {
	if r.Known == nil {
		r.Known = []int64{}
	}
	err = d.hot(ctx, func(b *pgx.Batch) {
		// The order matters: the top before the own number, the oldest before the rows.
		b.Queue(queueTop).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Top) })
		b.Queue(ownXid).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Xid) })
		b.Queue(oldestRunningXid).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Oldest) })
		b.Queue(readLanes, r.Endpoints, r.Floors, r.Limits, r.Known).Query(func(rows pgx.Rows) (err error) {
			got.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ReadLanesRow])
			return err
		})
	})
	return got, err
}

// EventRef names an event.
type EventRef struct{ TenantID, ID id.UUID }

// FoundEvent is an event that was read; Cut says that its data was left out for want of room and must be asked for again.
type FoundEvent struct {
	*Event
	Cut bool
}

// ReadEvents reads payloads, about budget bytes of them. An event that is not in the answer is gone.
func (d *DB) ReadEvents(ctx context.Context, refs []EventRef, budget int64) (map[id.UUID]FoundEvent, error) {
	p := ReadEventsParams{Budget: budget}
	for _, r := range refs {
		created := r.ID.Time()
		p.Tenants, p.Ids, p.Created = append(p.Tenants, r.TenantID), append(p.Ids, r.ID), append(p.Created, created)
		p.Low, p.High = widen(p.Low, p.High, created)
	}
	found := make(map[id.UUID]FoundEvent, len(refs))
	err := d.hot(ctx, func(b *pgx.Batch) {
		b.Queue(readEvents, p.Budget, p.Tenants, p.Created, p.Ids, p.Low, p.High).Query(func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ReadEventsRow])
			for _, r := range list {
				found[r.ID] = FoundEvent{Cut: r.Cut, Event: &Event{
					TenantID: r.TenantID, CreatedAt: r.CreatedAt, ID: r.ID, Type: r.Type, Data: r.Data, Key: r.Key, Channels: r.Channels,
					Version: r.Version, OccurredAt: r.OccurredAt, DeliverAt: r.DeliverAt, RoutingVersion: r.RoutingVersion,
				}}
			}
			return err
		})
	})
	return found, err
}

// widen grows a range of times to hold one more.
func widen(low, high, at time.Time) (time.Time, time.Time) {
	if low.IsZero() || at.Before(low) {
		low = at
	}
	if high.IsZero() || at.After(high) {
		high = at
	}
	return low, high
}

// Leased is a lane that this worker now owns, with all that serving it takes.
type Leased struct {
	LeaseLanesRow
	Endpoint Endpoint
	Secrets  []LaneSecretsRow // live, newest first
	Health   EndpointHealth
	Policy   health.Policy
	Asked    int64 // the oldest row that somebody wants to be tried although the endpoint's breaker is open; 0: none
}

// Lease takes those of the named lanes that are free and open. ErrWorkerDead when this worker may own nothing.
func (d *DB) Lease(ctx context.Context, worker id.UUID, endpoints []id.UUID) ([]Leased, error) {
	var lanes []LeaseLanesRow
	var about laneDetails
	err := d.hot(ctx, func(b *pgx.Batch) {
		b.Queue(assertAlive, worker)
		b.Queue(leaseLanes, worker, endpoints).Query(func(rows pgx.Rows) (err error) {
			lanes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[LeaseLanesRow])
			return err
		})
		about.queue(b, endpoints)
	})
	if err != nil {
		return nil, err
	}
	leased := make([]Leased, 0, len(lanes))
	for _, l := range lanes {
		leased = append(leased, Leased{
			LeaseLanesRow: l, Endpoint: about.endpoints[l.EndpointID], Secrets: about.secrets[l.EndpointID], Health: about.health[l.EndpointID],
			Asked: about.asked[l.EndpointID], Policy: about.policies[l.EndpointID],
		})
	}
	return leased, nil
}

// LaneDetails reads again what serving lanes takes, after a change. The key is the endpoint.
func (d *DB) LaneDetails(ctx context.Context, endpoints []id.UUID) (map[id.UUID]Leased, error) {
	var about laneDetails
	if err := d.hot(ctx, func(b *pgx.Batch) { about.queue(b, endpoints) }); err != nil {
		return nil, err
	}
	out := make(map[id.UUID]Leased, len(about.endpoints))
	for ep, e := range about.endpoints {
		out[ep] = Leased{Endpoint: e, Secrets: about.secrets[ep], Health: about.health[ep], Asked: about.asked[ep], Policy: about.policies[ep]}
	}
	return out, nil
}

type laneDetails struct {
	endpoints map[id.UUID]Endpoint
	secrets   map[id.UUID][]LaneSecretsRow
	health    map[id.UUID]EndpointHealth
	asked     map[id.UUID]int64
	policies  map[id.UUID]health.Policy
}

func (a *laneDetails) queue(b *pgx.Batch, endpoints []id.UUID) {
	a.endpoints, a.secrets, a.health = map[id.UUID]Endpoint{}, map[id.UUID][]LaneSecretsRow{}, map[id.UUID]EndpointHealth{}
	a.asked, a.policies = map[id.UUID]int64{}, map[id.UUID]health.Policy{}
	b.Queue(laneEndpoints, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Endpoint])
		for _, e := range list {
			a.endpoints[e.ID] = e
		}
		return err
	})
	b.Queue(laneSecrets, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[LaneSecretsRow])
		for _, s := range list {
			a.secrets[s.EndpointID] = append(a.secrets[s.EndpointID], s)
		}
		return err
	})
	b.Queue(laneHealth, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[EndpointHealth])
		for _, h := range list {
			a.health[h.EndpointID] = h
		}
		return err
	})
	b.Queue(laneAsked, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[LaneAskedRow])
		for _, r := range list {
			a.asked[r.EndpointID] = r.Seq
		}
		return err
	})
	b.Queue(lanePolicies, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[LanePoliciesRow])
		for _, r := range list {
			a.policies[r.ID] = health.ReadPolicy(r.PlatformSettings, r.Settings)
		}
		return err
	})
}

// DeclareDead marks a worker that has not beaten since beat as dead and frees its lanes, in one transaction. ok is false
// when it has beaten meanwhile, or another was faster.
func (d *DB) DeclareDead(ctx context.Context, worker id.UUID, beat int64) (freed []id.UUID, ok bool, err error) {
	err = d.Worker(ctx, func(q *Queries) error {
		if _, err := q.LockSilentWorker(ctx, LockSilentWorkerParams{ID: worker, Beat: beat}); err != nil {
			return err
		}
		if err := q.MarkWorkerDead(ctx, worker); err != nil {
			return err
		}
		freed, err = q.FreeLanesOf(ctx, &worker)
		return err
	})
	if isNotFound(err) {
		return nil, false, nil
	}
	return freed, err == nil, err
}

// Vacuum clears the dead rows of the queue and the ledger. They die young: left to the server's own schedule their index
// entries make every read dearer, and on a server whose settings are not ours nobody else does it in time. One process does it, as the
// server's own does: helpers for the indexes would take every core at once from what is being delivered.
func (d *DB) Vacuum(ctx context.Context, table string) error {
	_, err := d.pool.Exec(ctx, "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0) "+identifier(schema, table))
	return translate(err)
}

// Due is what one look at the retries that wait brought.
type Due struct {
	Rows []PromoteDueRow // that are ready now
	Next *float64        // seconds until the next; nil: none is known
	Now  time.Time       // the database's clock
	// Shifted is by how many seconds that clock was seen to step in all, as far as it is taken account of.
	Shifted float64
}

// ClockBounds say where a worker expects the database's clock to stand.
type ClockBounds struct {
	Shifted          float64 // when it last looked
	Earliest, Latest time.Time
}

// PromoteDue makes rows ready whose time has come, at most most of them, with due times after since: none where the clock is out of
// its bounds.
func (d *DB) PromoteDue(ctx context.Context, since time.Time, most int32, bounds ClockBounds) (due Due, err error) {
	err = d.hot(ctx, func(b *pgx.Batch) {
		b.Queue("SELECT now(), shifted FROM clock").QueryRow(func(row pgx.Row) error { return row.Scan(&due.Now, &due.Shifted) })
		b.Queue(promoteDue, since, bounds.Shifted, bounds.Earliest, bounds.Latest, most).Query(func(r pgx.Rows) (err error) {
			due.Rows, err = pgx.CollectRows(r, pgx.RowToStructByPos[PromoteDueRow])
			return err
		})
		b.Queue(nextDue, since).QueryRow(func(row pgx.Row) error {
			if err := row.Scan(&due.Next); err != nil && !isNoRows(err) {
				return err
			}
			return nil
		})
	})
	return due, err
}

// RingWalk steps through the lanes that have rows of a state, after an endpoint, at most steps of them.
func (d *DB) RingWalk(ctx context.Context, state int16, after id.UUID, steps int32) (rows []RingWalkRow, err error) {
	err = d.hot(ctx, func(b *pgx.Batch) {
		b.Queue(ringWalk, state, after, steps).Query(func(r pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(r, pgx.RowToStructByPos[RingWalkRow])
			return err
		})
	})
	return rows, err
}

// VacuumWhereDead vacuums those of the named tables that hold more than so many dead rows by the server's statistics.
func (d *DB) VacuumWhereDead(ctx context.Context, dead int64, tables ...string) error {
	rows, err := d.pool.Query(ctx,
		"SELECT relname FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY($2) AND n_dead_tup > $3", schema, tables, dead)
	if err != nil {
		return translate(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return translate(err)
	}
	for _, name := range names {
		if err := d.Vacuum(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// analyzeLock is the key of the lock under which partitions are analyzed; any number that nobody else takes.
const analyzeLock = 0x706f7374_616e6c79

// youngPartitions are the days whose statistics are missing or were made when the day had less than half its rows. A day begins
// empty, and autovacuum looks at it when it has a hundred thousand rows: until then the planner would guess.
const youngPartitions = `SELECT s.relname
	FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid JOIN pg_inherits i ON i.inhrelid = s.relid
	WHERE s.schemaname = $1 AND i.inhparent IN ('posthorn.events'::regclass, 'posthorn.deliveries'::regclass, 'posthorn.attempts'::regclass)
		AND s.n_mod_since_analyze > greatest($2, c.reltuples)`

// AnalyzeYoungPartitions analyzes the days that have grown to twice their rows since that was last done, by more than least rows.
// One process does it at a time, and none waits for a lock. It returns the names of the tables.
func (d *DB) AnalyzeYoungPartitions(ctx context.Context, least int64) (names []string, err error) {
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", analyzeLock).Scan(&mine); err != nil || !mine {
			return err
		}
		rows, err := tx.Query(ctx, youngPartitions, schema, least)
		if err != nil {
			return err
		}
		if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(names) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'"); err != nil {
			return err
		}
		for _, name := range names {
			if _, err := tx.Exec(ctx, "ANALYZE "+identifier(schema, name)); err != nil {
				return err
			}
		}
		return nil
	})
	return names, translate(err)
}

// OpenSettings is an endpoint's row as settings, its custom headers opened.
func (e Endpoint) OpenSettings(ring *seal.Ring) (endpoint.Settings, error) { return e.settings(ring) }
