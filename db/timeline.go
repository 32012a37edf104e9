package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A promoted replica continues on a timeline of its own, and the old primary stays on its older one. A process that has
// seen a cluster's timeline accepts no server of it on an older one: that server was the primary before a failover and
// may not know it yet, after a freeze or behind a network that was cut.
var seenTimelines = timelines{newest: map[string]int64{}}

type timelines struct {
	mu     sync.Mutex
	newest map[string]int64 // by the cluster's identifier, which a replica shares with its primary
}

// see notes a timeline, and returns the newest one that was seen of the cluster.
func (t *timelines) see(cluster string, timeline int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest[cluster] = max(t.newest[cluster], timeline)
	return t.newest[cluster]
}

// oldTimelineError is a server that was the primary before a failover.
type oldTimelineError struct{ timeline, newest int64 }

func (e oldTimelineError) Error() string {
	return fmt.Sprintf("the database server is on timeline %d, and this process has seen timeline %d: the server was the primary before a failover. "+
		"Stop it, or let its manager make it a replica. After a restore to an earlier time, restart Posthorn", e.timeline, e.newest)
}

// askTimeline is ” on a replica, which has no timeline of its own.
const askTimeline = `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE (SELECT system_identifier FROM pg_control_system())::text END,
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END`

// place is where a connection's server was in its cluster's history when the connection was opened.
type place struct {
	cluster  string
	timeline int64
}

const placeData = "posthorn.timeline"

// validateTimeline rejects a new connection to a server on an older timeline than one that was seen. A server that does
// not say its timeline (a pooler, a service that keeps the functions for itself) is accepted.
func validateTimeline(ctx context.Context, c *pgconn.PgConn) error {
	r := c.ExecParams(ctx, askTimeline, nil, nil, nil, nil).Read()
	var refused *pgconn.PgError
	if errors.As(r.Err, &refused) {
		return nil
	}
	if r.Err != nil {
		return r.Err
	}
	if len(r.Rows) != 1 || len(r.Rows[0]) != 2 {
		return nil
	}
	timeline, err := strconv.ParseInt(string(r.Rows[0][1]), 16, 64)
	if err != nil {
		return nil
	}
	at := place{cluster: string(r.Rows[0][0]), timeline: timeline}
	if newest := seenTimelines.see(at.cluster, timeline); timeline < newest {
		return oldTimelineError{timeline, newest}
	}
	c.CustomData()[placeData] = at
	return nil
}

// isCurrent reports whether a connection that was opened earlier leads to a server on the newest timeline: the pool
// closes one that does not.
func isCurrent(_ context.Context, c *pgx.Conn) (bool, error) {
	at, known := c.PgConn().CustomData()[placeData].(place)
	return !known || seenTimelines.see(at.cluster, at.timeline) == at.timeline, nil
}
