package queue

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// setHotRole takes a role for the engine's own statements, with plans by index only. Their tables grow from empty to a
// million rows between two vacuums. Without this setting a plan that scans the whole table would be kept.
const setHotRole = `SELECT set_config('role', $1, true), set_config('idle_in_transaction_session_timeout', '10s', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// hot sends statements under the worker role as one round trip and one transaction.
func hot(ctx context.Context, d *db.DB, queue func(*pgx.Batch)) error {
	conn, err := d.Pool().Acquire(ctx)
	if err != nil {
		return db.Translate(err)
	}
	defer conn.Release()
	b, err := d.Begin(ctx, conn.Conn(), setHotRole, db.RoleWorker)
	if err == nil {
		queue(b)
		b.Queue("commit")
		err = db.Send(ctx, conn.Conn(), b)
	}
	if err != nil && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return db.Translate(err)
}

// LaneRead asks for the heads of lanes.
type LaneRead struct {
	Endpoints []id.UUID
	Floors    []int64 // read above this number
	Limits    []int32
	Known     []int64 // rows above the floors that the reader already holds
}

// LaneReading is the result of a read, with facts about the queue's numbers. Every transaction that drew a number up to
// Top has an id below Xid. Every transaction below Oldest had ended when the rows were read.
type LaneReading struct {
	Rows             []sql.ReadLanesRow
	Top, Xid, Oldest int64
}

// ReadLanes reads the heads of lanes in one round trip.
func ReadLanes(ctx context.Context, d *db.DB, r LaneRead) (got LaneReading, err error) {
	if r.Known == nil {
		r.Known = []int64{}
	}
	err = hot(ctx, d, func(b *pgx.Batch) {
		// The order matters: Top before the own transaction id, Oldest before the rows.
		b.Queue(sql.QueueTop).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Top) })
		b.Queue(sql.OwnXid).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Xid) })
		b.Queue(sql.OldestRunningXid).QueryRow(func(row pgx.Row) error { return row.Scan(&got.Oldest) })
		b.Queue(sql.ReadLanes, db.Args(sql.ReadLanesParams(r))...).Query(func(rows pgx.Rows) (err error) {
			got.Rows, err = pgx.CollectRows(rows, pgx.RowToStructByPos[sql.ReadLanesRow])
			return err
		})
	})
	return got, err
}

// ReadFollowers reads what is next of the keys of rows, each key in order.
func ReadFollowers(ctx context.Context, d *db.DB, p sql.ReadFollowersParams) (next []sql.ReadLanesRow, err error) {
	err = hot(ctx, d, func(b *pgx.Batch) {
		b.Queue(sql.ReadFollowers, db.Args(p)...).Query(func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.ReadFollowersRow])
			ended := map[string]bool{}
			for i := range list {
				r := &list[i]
				key := string(r.EndpointID[:]) + r.OrderKey
				if ended[key] = ended[key] || !r.Blocked; !ended[key] {
					next = append(next, sql.ReadLanesRow{
						Seq:            r.Seq,
						Gen:            r.Gen,
						Attempts:       r.Attempts,
						Probes:         r.Probes,
						TenantID:       r.TenantID,
						EndpointID:     r.EndpointID,
						DeliveryID:     r.DeliveryID,
						EventID:        r.EventID,
						Replay:         r.Replay,
						FirstID:        r.FirstID,
						RoutingVersion: r.RoutingVersion,
						OrderKey:       r.OrderKey,
						ExpiresAt:      r.ExpiresAt,
					})
				}
			}
			return err
		})
	})
	return next, err
}

// EventRef names an event.
type EventRef struct{ TenantID, ID id.UUID }

// FoundEvent is an event that was read. Cut says that its data was left out because the budget was used up, and must be
// read again.
type FoundEvent struct {
	*sql.Event
	Cut bool
}

// ReadEvents reads payloads, about budget bytes of them. An event that is not in the result no longer exists.
func ReadEvents(ctx context.Context, d *db.DB, refs []EventRef, budget int64) (map[id.UUID]FoundEvent, error) {
	p := sql.ReadEventsParams{Budget: budget}
	for _, r := range refs {
		created := r.ID.Time()
		p.Tenants = append(p.Tenants, r.TenantID)
		p.Ids = append(p.Ids, r.ID)
		p.Created = append(p.Created, created)
		p.Low, p.High = db.Widen(p.Low, p.High, created)
	}
	found := make(map[id.UUID]FoundEvent, len(refs))
	err := hot(ctx, d, func(b *pgx.Batch) {
		b.Queue(sql.ReadEvents, db.Args(p)...).Query(func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.ReadEventsRow])
			for _, r := range list {
				found[r.ID] = FoundEvent{
					Cut: r.Cut,
					Event: &sql.Event{
						TenantID:         r.TenantID,
						CreatedAt:        r.CreatedAt,
						ID:               r.ID,
						Type:             r.Type,
						Data:             r.Data,
						Key:              r.Key,
						Channels:         r.Channels,
						Version:          r.Version,
						OccurredAt:       r.OccurredAt,
						DeliverAt:        r.DeliverAt,
						RoutingVersion:   r.RoutingVersion,
						ExternalID:       r.ExternalID,
						Traceparent:      r.Traceparent,
						ContentType:      r.ContentType,
						ExternalIDUnsent: r.ExternalIDUnsent,
					},
				}
			}
			return err
		})
	})
	return found, err
}

// Leased is a lane that this worker now owns, with everything that serving it requires.
type Leased struct {
	sql.LeaseLanesRow
	Endpoint sql.Endpoint
	Secrets  []sql.LaneSecretsRow // live, newest first
	Keys     []sql.SigningKey     // of the tenant, newest first, if the endpoint signs with them
	Proxies  []sql.EgressProxy    // of the tenants that were read together, and the platform's
	// Transformations are the versions of the endpoint's, oldest first.
	Transformations []sql.Transformation
	Health          sql.EndpointHealth
	Policy          health.Policy
	Asked           int64 // the oldest row for which somebody requested a probe; 0: none
}

// Lease takes those of the named lanes that are free and open. It returns ErrWorkerDead if this worker was declared
// dead.
func Lease(ctx context.Context, d *db.DB, worker id.UUID, endpoints []id.UUID) ([]Leased, error) {
	var lanes []sql.LeaseLanesRow
	var about laneDetails
	err := hot(ctx, d, func(b *pgx.Batch) {
		b.Queue(sql.AssertAlive, worker)
		b.Queue(sql.LeaseLanes, worker, endpoints).Query(
			func(rows pgx.Rows) (err error) {
				lanes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[sql.LeaseLanesRow])
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
			LeaseLanesRow:   l,
			Endpoint:        about.endpoints[l.EndpointID],
			Secrets:         about.secrets[l.EndpointID],
			Keys:            about.keys[l.TenantID],
			Proxies:         about.proxies,
			Transformations: about.transformations[l.EndpointID],
			Health:          about.health[l.EndpointID],
			Asked:           about.asked[l.EndpointID],
			Policy:          about.policies[l.EndpointID],
		})
	}
	return leased, nil
}

// LaneDetails reads again what serving lanes requires, after a change. The key is the endpoint.
func LaneDetails(ctx context.Context, d *db.DB, endpoints []id.UUID) (map[id.UUID]Leased, error) {
	var about laneDetails
	if err := hot(ctx, d, func(b *pgx.Batch) { about.queue(b, endpoints) }); err != nil {
		return nil, err
	}
	out := make(map[id.UUID]Leased, len(about.endpoints))
	for ep, e := range about.endpoints {
		out[ep] = Leased{
			Endpoint:        e,
			Secrets:         about.secrets[ep],
			Keys:            about.keys[e.TenantID],
			Proxies:         about.proxies,
			Transformations: about.transformations[ep],
			Health:          about.health[ep],
			Asked:           about.asked[ep],
			Policy:          about.policies[ep],
		}
	}
	return out, nil
}

type laneDetails struct {
	endpoints       map[id.UUID]sql.Endpoint
	secrets         map[id.UUID][]sql.LaneSecretsRow
	keys            map[id.UUID][]sql.SigningKey // by tenant
	proxies         []sql.EgressProxy
	health          map[id.UUID]sql.EndpointHealth
	transformations map[id.UUID][]sql.Transformation
	asked           map[id.UUID]int64
	policies        map[id.UUID]health.Policy
}

func (a *laneDetails) queue(b *pgx.Batch, endpoints []id.UUID) {
	a.endpoints, a.secrets, a.health = map[id.UUID]sql.Endpoint{}, map[id.UUID][]sql.LaneSecretsRow{}, map[id.UUID]sql.EndpointHealth{}
	a.keys, a.transformations = map[id.UUID][]sql.SigningKey{}, map[id.UUID][]sql.Transformation{}
	a.asked, a.policies = map[id.UUID]int64{}, map[id.UUID]health.Policy{}
	// Secrets first: if an endpoint is deleted in between, its row says so. In the other order it would look like an
	// endpoint without secrets.
	b.Queue(sql.LaneSecrets, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.LaneSecretsRow])
		for _, s := range list {
			a.secrets[s.EndpointID] = append(a.secrets[s.EndpointID], s)
		}
		return err
	})
	b.Queue(sql.LaneSigningKeys, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.SigningKey])
		for _, k := range list {
			a.keys[k.TenantID] = append(a.keys[k.TenantID], k)
		}
		return err
	})
	b.Queue(sql.LaneTransformations, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.Transformation])
		for _, t := range list {
			a.transformations[t.EndpointID] = append(a.transformations[t.EndpointID], t)
		}
		return err
	})
	b.Queue(sql.LaneProxies, endpoints).Query(func(rows pgx.Rows) (err error) {
		a.proxies, err = pgx.CollectRows(rows, pgx.RowToStructByPos[sql.EgressProxy])
		return err
	})
	b.Queue(sql.LaneEndpoints, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.Endpoint])
		for _, e := range list {
			a.endpoints[e.ID] = e
		}
		return err
	})
	b.Queue(sql.LaneHealth, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.EndpointHealth])
		for _, h := range list {
			a.health[h.EndpointID] = h
		}
		return err
	})
	b.Queue(sql.LaneAsked, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.LaneAskedRow])
		for _, r := range list {
			a.asked[r.EndpointID] = r.Seq
		}
		return err
	})
	b.Queue(sql.LanePolicies, endpoints).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.LanePoliciesRow])
		for _, r := range list {
			a.policies[r.ID] = health.ReadPolicy(r.PlatformSettings, r.Settings)
		}
		return err
	})
}

// DeclareDead marks a worker without a heartbeat since beat as dead and frees its lanes, in one transaction. ok is
// false if the worker has sent a heartbeat since then, or another process was faster.
func DeclareDead(ctx context.Context, d *db.DB, worker id.UUID, beat int64) (freed []id.UUID, ok bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		if _, err := q.LockSilentWorker(ctx, worker, beat); err != nil {
			return err
		}
		if err := q.MarkWorkerDead(ctx, worker); err != nil {
			return err
		}
		freed, err = q.FreeLanesOf(ctx, &worker)
		return err
	})
	if db.IsNotFound(err) {
		return nil, false, nil
	}
	return freed, err == nil, err
}

// vacuum removes the dead rows of the queue and the ledger. These rows die young. On the server's own schedule their
// index entries would slow every read down, and on a server with other settings nothing else vacuums them in time. One
// process does it, without parallel index workers: these would take every core from deliveries.
func vacuum(ctx context.Context, d *db.DB, table string) error {
	_, err := d.Pool().Exec(ctx, "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0) "+db.Identifier(db.Schema, table))
	return db.Translate(err)
}

// Due is the result of one scan for due retries.
type Due struct {
	Rows []sql.MakeDueReadyRow // that are ready now
	Next *float64              // seconds until the next; nil: none is known
	// Release are lanes with a backlog to release; the first of them.
	Release []id.UUID
	Edited  []id.UUID // lanes whose transformation was edited; the first of them
	Now     time.Time // the database's clock
	// Shifted is the sum, in seconds, of the clock's steps that were seen and corrected.
	Shifted float64
}

// ClockBounds say where a worker expects the database's clock to be.
type ClockBounds struct {
	Shifted          float64 // the sum when it last read the clock
	Earliest, Latest time.Time
}

// MakeDueReady makes due rows ready, at most `most` of them, with due times after since. It makes none ready if the
// clock is out of its bounds.
func MakeDueReady(ctx context.Context, d *db.DB, since time.Time, most int32, bounds ClockBounds) (due Due, err error) {
	err = hot(ctx, d, func(b *pgx.Batch) {
		b.Queue("SELECT now(), shifted FROM clock").QueryRow(func(row pgx.Row) error { return row.Scan(&due.Now, &due.Shifted) })
		b.Queue(sql.MakeDueReady, db.Args(sql.MakeDueReadyParams{
			Since:    since,
			Shifted:  bounds.Shifted,
			Earliest: bounds.Earliest,
			Latest:   bounds.Latest,
			Limit:    most,
		})...).Query(func(r pgx.Rows) (err error) {
			due.Rows, err = pgx.CollectRows(r, pgx.RowToStructByPos[sql.MakeDueReadyRow])
			return err
		})
		b.Queue(sql.NextDue, since).QueryRow(func(row pgx.Row) error {
			if err := row.Scan(&due.Next); err != nil && !db.IsNoRows(err) {
				return err
			}
			return nil
		})
		b.Queue(sql.LanesToRelease, releaseLanes).Query(func(r pgx.Rows) (err error) {
			due.Release, err = pgx.CollectRows(r, pgx.RowTo[id.UUID])
			return err
		})
		b.Queue(sql.EditedLanes, releaseLanes).Query(func(r pgx.Rows) (err error) {
			due.Edited, err = pgx.CollectRows(r, pgx.RowTo[id.UUID])
			return err
		})
	})
	return due, err
}

// ReleaseEdited makes the next chunk of a lane's deliveries due that waited for an edit of its transformation. released
// reports whether there were any, more whether another chunk is possibly left.
func ReleaseEdited(ctx context.Context, d *db.DB, endpoint id.UUID) (released, more bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		after, err := q.LockEdited(ctx, endpoint)
		if db.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := q.ReleaseEdited(ctx, endpoint, after)
		if err != nil {
			return err
		}
		released, more = len(rows) > 0, len(rows) == releaseChunk
		for _, seq := range rows {
			after = max(after, seq)
		}
		return q.EditedUpTo(ctx, sql.EditedUpToParams{EndpointID: endpoint, Done: !more, UpTo: after})
	})
	return released, more, err
}

const (
	releaseLanes = 100  // in one round
	releaseChunk = 1000 // rows of a lane in one round: the LIMIT of ReleaseChunk
)

// ReleaseBacklog makes the next rows of a lane ready that wait for a retry since before its breaker closed. It returns
// the first of them; 0: none. more says that there is another chunk. Another process that does it is not waited for.
func ReleaseBacklog(ctx context.Context, d *db.DB, endpoint id.UUID) (first int64, more bool, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		lane, err := q.LockRelease(ctx, endpoint)
		if db.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := q.ReleaseChunk(ctx, sql.ReleaseChunkParams{
			EndpointID: endpoint,
			After:      lane.ReleaseAfter,
			Before:     lane.ReleaseBefore,
		})
		if err != nil {
			return err
		}
		done := sql.ReleasedUpToParams{EndpointID: endpoint, After: lane.ReleaseAfter, Done: len(rows) < releaseChunk}
		for _, r := range rows {
			if done.After = r.Seq; r.Freed && first == 0 {
				first = r.Seq
			}
		}
		more = !done.Done
		return q.ReleasedUpTo(ctx, done)
	})
	return first, more, err
}

// ScanLanes steps through the lanes that have rows of a state, after an endpoint, at most steps of them.
func ScanLanes(ctx context.Context, d *db.DB, state int16, after id.UUID, steps int32) (rows []sql.ScanLanesRow, err error) {
	err = hot(ctx, d, func(b *pgx.Batch) {
		b.Queue(sql.ScanLanes, db.Args(sql.ScanLanesParams{State: state, After: after, Steps: steps})...).Query(
			func(r pgx.Rows) (err error) {
				rows, err = pgx.CollectRows(r, pgx.RowToStructByPos[sql.ScanLanesRow])
				return err
			})
	})
	return rows, err
}

// VacuumWhereDead vacuums those of the named tables that have more than this many dead rows by the server's statistics.
func VacuumWhereDead(ctx context.Context, d *db.DB, dead int64, tables ...string) error {
	rows, err := d.Pool().Query(ctx,
		"SELECT relname FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY($2) AND n_dead_tup > $3", db.Schema, tables, dead)
	if err != nil {
		return db.Translate(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return db.Translate(err)
	}
	for _, name := range names {
		if err := vacuum(ctx, d, name); err != nil {
			return err
		}
	}
	return nil
}

// analyzeLock is the key of the lock under which partitions are analyzed; any number that no other lock uses.
const analyzeLock = 0x706f7374_616e6c79

// youngTarget is the statistics target of a young day. Its plans need only a row count and the most common values, and
// the server's default reads ten times as many rows: a day that has just started doubles every few seconds.
const youngTarget = "10"

// youngPartitions lists the days with missing statistics, or with statistics from when the day had less than half its
// rows. A day starts empty, and autovacuum analyzes it only at a hundred thousand rows: until then the planner would
// guess.
const youngPartitions = `SELECT s.relname
	FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid JOIN pg_inherits i ON i.inhrelid = s.relid
	WHERE s.schemaname = $1 AND i.inhparent IN ('posthorn.events'::regclass, 'posthorn.deliveries'::regclass, 'posthorn.attempts'::regclass)
		AND s.n_mod_since_analyze > greatest($2, c.reltuples)`

// AnalyzeYoungPartitions analyzes the days that have doubled since their last analysis, and grown by more than least
// rows. One process does it at a time, and none waits for a lock. It returns the names of the tables.
func AnalyzeYoungPartitions(ctx context.Context, d *db.DB, least int64) (names []string, err error) {
	err = pgx.BeginFunc(ctx, d.Pool(), func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", analyzeLock).Scan(&mine); err != nil || !mine {
			return err
		}
		rows, err := tx.Query(ctx, youngPartitions, db.Schema, least)
		if err != nil {
			return err
		}
		if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(names) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '1s'; SET LOCAL default_statistics_target = "+youngTarget); err != nil {
			return err
		}
		for _, name := range names {
			if _, err := tx.Exec(ctx, "ANALYZE "+db.Identifier(db.Schema, name)); err != nil {
				return err
			}
		}
		return nil
	})
	return names, db.Translate(err)
}
