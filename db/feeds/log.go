// Package feeds reads a tenant's events in the order of their acceptance, for the consumers of its feeds
// (docs/adr/0026-feeds.md).
package feeds

import (
	"context"
	"sort"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// tenantLog is the log of a tenant at one moment.
type tenantLog struct {
	q      *sql.Queries
	tenant id.UUID
	floor  time.Time // the oldest moment that the tenant's retention shows
	sql.LogOfRow
}

// openLog reads the state of a tenant's log. After a restore or a move, it goes on in the new database system.
func openLog(ctx context.Context, q *sql.Queries, tenant id.UUID) (*tenantLog, error) {
	l := &tenantLog{q: q, tenant: tenant}
	var err error
	if l.floor, err = q.VisibleSince(ctx, tenant); err != nil {
		return nil, err
	}
	if l.LogOfRow, err = q.LogOf(ctx, tenant); err != nil {
		return nil, err
	}
	if !l.Here {
		if err := q.RebaseLog(ctx, tenant); err != nil {
			return nil, err
		}
	}
	if l.Settled < 0 {
		if err := q.SettleLog(ctx, tenant); err != nil {
			return nil, err
		}
	}
	if !l.Here || l.Settled < 0 {
		l.LogOfRow, err = q.LogOf(ctx, tenant)
	}
	return l, err
}

// olderSettled reports whether no event from before the log can appear any more.
func (l *tenantLog) olderSettled() bool { return l.Settled <= l.Watermark }

// skew is how much later than the log's beginning an id can be drawn that is not in it: the clocks of processes
// differ.
const skew = time.Hour

// place is where a start is in the log.
func (l *tenantLog) place(ctx context.Context, s feed.Start) (feed.Place, error) {
	switch {
	case s.Oldest:
		return feed.Place{Position: feed.Older, Event: id.FirstAt(l.floor)}, nil
	case s.At.IsZero():
		last, err := l.q.LastLogRow(ctx, l.tenant, l.Watermark)
		if db.IsNoRows(err) {
			return feed.Place{}, nil
		}
		return feed.Place{Position: last.Position, Index: int(last.Events), Event: last.Event}, err
	case s.At.Before(l.BeganAt):
		return feed.Place{Position: feed.Older, Event: id.FirstAt(s.At)}, nil
	}
	return l.placeAt(ctx, s.At)
}

// placeAt finds the first row that was stored at a moment or later, by halving the positions.
func (l *tenantLog) placeAt(ctx context.Context, at time.Time) (feed.Place, error) {
	var failed error
	found := sort.Search(int(max(l.Watermark, 0)), func(position int) bool {
		if failed != nil {
			return true
		}
		row, err := l.q.LogRowFrom(ctx, sql.LogRowFromParams{TenantID: l.tenant, Position: int64(position), Watermark: l.Watermark})
		if db.IsNoRows(err) {
			return true
		}
		failed = err
		return !row.At.Before(at)
	})
	return feed.Place{Position: int64(found)}, failed
}

// check says whether retention has dropped events behind a place, or returns feed.ErrCursorLost if the log has another
// event there.
func (l *tenantLog) check(ctx context.Context, p feed.Place) (truncated bool, err error) {
	switch {
	case p.Position == feed.Older:
		return l.olderDropped(ctx, p)
	case p.Index == 0:
		return p.Position < l.Dropped, nil
	}
	entry, err := l.q.LogEntry(ctx, sql.LogEntryParams{TenantID: l.tenant, Position: p.Position, Index: int32(p.Index)})
	switch {
	case db.IsNoRows(err) && p.Position <= l.Dropped:
		return p.Position < l.Dropped, nil
	case db.IsNoRows(err), err == nil && entry.IsZero(), err == nil && !p.Event.IsZero() && entry != p.Event:
		return false, feed.ErrCursorLost
	}
	return false, err
}

// olderDropped is check for a place before the log. Whole days are dropped, and what is hidden of the day of the floor
// is still there.
func (l *tenantLog) olderDropped(ctx context.Context, p feed.Place) (bool, error) {
	if l.Dropped > 0 {
		return true, nil // the beginning of the log, too
	}
	at := p.Event.Time()
	if day := l.floor.UTC().Truncate(24 * time.Hour); at.Before(day) || !at.Before(l.floor) {
		return at.Before(day), nil
	}
	hidden, err := l.q.ReadOlder(ctx, sql.ReadOlderParams{TenantID: l.tenant, LowAt: at, HighAt: l.floor, Low: p.Event, Limit: 1})
	return len(hidden) > 0, err
}

// named is a place with its event, by which a later check recognizes another history.
func (l *tenantLog) named(ctx context.Context, p feed.Place) (feed.Place, error) {
	if p.Index == 0 || !p.Event.IsZero() {
		return p, nil
	}
	entry, err := l.q.LogEntry(ctx, sql.LogEntryParams{TenantID: l.tenant, Position: p.Position, Index: int32(p.Index)})
	if db.IsNoRows(err) { // retention has dropped it
		return p, nil
	}
	p.Event = entry
	return p, err
}

// candidate is an event that a page examines.
type candidate struct {
	feed.Place
	logged bool // it is read from the log later
}

// after lists at most a page of candidates behind a place. end is true if there are no more.
func (l *tenantLog) after(ctx context.Context, p feed.Place) (list []candidate, end bool, err error) {
	if p.Position == feed.Older {
		if list, err = l.olderAfter(ctx, p); err != nil || len(list) == feed.MaxScan || !l.olderSettled() {
			return list, len(list) < feed.MaxScan, err
		}
		p = feed.Place{}
	}
	return l.logAfter(ctx, p, list)
}

// firstRows is how many rows of the log are read at first: how many events they have is not known.
const firstRows = 50

// logAfter adds candidates of the log to a page.
func (l *tenantLog) logAfter(ctx context.Context, p feed.Place, list []candidate) (all []candidate, end bool, err error) {
	for wanted := firstRows; len(list) < feed.MaxScan; {
		found, err := l.q.ReadLog(ctx, sql.ReadLogParams{
			TenantID:     l.tenant,
			FromPosition: p.Position,
			FromIndex:    int32(p.Index),
			Watermark:    l.Watermark,
			Rows:         int32(wanted),
			Limit:        int32(feed.MaxScan - len(list)),
		})
		if err != nil {
			return list, false, err
		}
		rows := 0
		for _, r := range found {
			if rows == 0 || r.Position != p.Position {
				rows++
			}
			p = feed.Place{Event: r.ID, Position: r.Position, Index: int(r.N)}
			list = append(list, candidate{Place: p})
		}
		if len(list) == feed.MaxScan {
			break
		}
		if rows < wanted-1 { // the row of the place itself can have nothing left
			return list, true, nil
		}
		wanted = min((feed.MaxScan-len(list))*rows/len(found)+2, feed.MaxScan)
	}
	return list, false, nil
}

// olderAfter is after for events from before the log. While one of them can still appear, there are none.
func (l *tenantLog) olderAfter(ctx context.Context, p feed.Place) ([]candidate, error) {
	if !l.olderSettled() {
		return nil, nil
	}
	rows, err := l.readOlder(ctx, p, feed.MaxScan)
	list := make([]candidate, len(rows))
	for i, r := range rows {
		list[i] = candidate{Place: feed.Place{Event: r.ID, Position: feed.Older}, logged: r.RoutingVersion >= l.SinceVersion}
	}
	return list, err
}

func (l *tenantLog) readOlder(ctx context.Context, p feed.Place, most int32) ([]sql.ReadOlderRow, error) {
	low := p.Event
	if first := id.FirstAt(l.floor); first.Compare(low) > 0 {
		low = first
	}
	return l.q.ReadOlder(ctx, sql.ReadOlderParams{
		TenantID: l.tenant,
		LowAt:    low.Time(),
		HighAt:   l.BeganAt.Add(skew),
		Low:      low,
		Limit:    most,
	})
}

// lag is how far a place is behind the log.
func (l *tenantLog) lag(ctx context.Context, p feed.Place, now time.Time) (feed.Lag, error) {
	row, err := l.q.LogBehind(ctx, sql.LogBehindParams{
		TenantID:  l.tenant,
		Position:  max(p.Position, 0),
		Index:     int32(p.Index),
		Watermark: l.Watermark,
		Limit:     feed.MaxLag,
	})
	if err != nil {
		return feed.Lag{}, err
	}
	lag := feed.Lag{Events: min(int(row.Events), feed.MaxLag), More: row.Events >= feed.MaxLag}
	if lag.Events > 0 {
		lag.Waiting = max(now.Sub(row.Oldest), 0)
	}
	if p.Position != feed.Older {
		return lag, nil
	}
	older, err := l.readOlder(ctx, p, 1)
	if err == nil && len(older) > 0 && older[0].RoutingVersion < l.SinceVersion {
		lag.More, lag.Waiting = true, max(now.Sub(older[0].ID.Time()), 0)
	}
	return lag, err
}
