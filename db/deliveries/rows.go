package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/filter"
	"posthorn/domain/id"
)

// scanned is the result of one scan of a table: the ids that match, how many rows were asked for and read, and the last
// of them.
type scanned struct {
	ids            []id.UUID
	asked, scanned int
	reached        id.UUID
}

// scanDeliveries scans this many rows of the table that knows the wanted status.
func scanDeliveries(ctx context.Context, q *sql.Queries, tenant id.UUID, l *ListOptions, w window, n int) (scanned,
	error,
) {
	newest, most := !l.Ascending, int32(n)
	status := delivery.Status(-2)
	if l.Status != nil {
		status = *l.Status
	}
	found := func(ids []id.UUID, seen int32, reached id.UUID, err error) (scanned, error) {
		slices.SortFunc(ids, id.UUID.Compare)
		if newest {
			slices.Reverse(ids)
		}
		return scanned{ids: ids, asked: n, scanned: int(seen), reached: reached}, err
	}
	if l.Job != nil {
		r, err := q.ScanJob(ctx, sql.ScanJobParams{
			Newest: newest, TenantID: tenant, JobID: l.Job, Low: w.low,
			High: w.high, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	}
	switch any := status == -2 && l.Wait != ""; {
	case any, status == delivery.Pending, status == delivery.Retrying, status == delivery.Held:
		if l.Archived {
			return scanned{asked: 1}, nil // waiting deliveries can't be archived
		}
		r, err := q.ScanQueue(ctx, sql.ScanQueueParams{
			Waiting: any, Newest: newest, Held: status == delivery.Held, Tried: status == delivery.Retrying,
			TenantID: tenant, Low: w.low, High: w.high, EndpointID: l.Endpoint, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	case status == delivery.Failed, status == DeadLetters:
		r, err := q.ScanDeadLetters(ctx, sql.ScanDeadLettersParams{
			Newest: newest, Archived: l.Archived, Open: status == DeadLetters, EventType: l.EventType, TenantID: tenant,
			Low: w.low, High: w.high, EndpointID: l.Endpoint, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	case status == delivery.Canceled:
		r, err := q.ScanCancellations(ctx, sql.ScanCancellationsParams{
			Newest: newest, Archived: l.Archived, EventType: l.EventType, TenantID: tenant,
			Low: w.low, High: w.high, EndpointID: l.Endpoint, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	case status == AllFailed:
		r, err := q.ScanAllFailed(ctx, sql.ScanAllFailedParams{
			Newest: newest, Archived: l.Archived, EventType: l.EventType, TenantID: tenant,
			Low: w.low, High: w.high, EndpointID: l.Endpoint, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	}
	if l.Event != nil {
		r, err := q.ScanEvent(ctx, sql.ScanEventParams{
			Newest: newest, Archived: l.Archived, Status: int32(status), EventType: l.EventType, TenantID: tenant,
			EventID: *l.Event, EventAt: l.Event.Time(), LowAt: w.low.Time(), HighAt: w.high.Time(), Low: w.low,
			High: w.high, EndpointID: l.Endpoint, Scan: most,
		})
		return found(r.Ids, r.Scanned, r.Reached, err)
	}
	r, err := q.ScanDeliveries(ctx, sql.ScanDeliveriesParams{
		Newest: newest, Archived: l.Archived, Status: int32(status), EventType: l.EventType, TenantID: tenant,
		LowAt: w.low.Time(), HighAt: w.high.Time(), Low: w.low, High: w.high, EndpointID: l.Endpoint, Scan: most,
	})
	return found(r.Ids, r.Scanned, r.Reached, err)
}

// readPage reads the first rows of ids, in their order, and leaves out rows that fail the conditions that the scan
// could not check.
func readPage(ctx context.Context, q *sql.Queries, tenant id.UUID, l *ListOptions, ids []id.UUID, room int) ([]State,
	error,
) {
	var rows []State
	for len(ids) > 0 && len(rows) < room {
		n := min(len(ids), room)
		some, err := readDeliveries(ctx, q, tenant, ids[:n])
		if err != nil {
			return nil, err
		}
		some = slices.DeleteFunc(some, func(d State) bool { return !l.takes(d) })
		if l.Channel != "" {
			if some, err = onChannel(ctx, q, tenant, l.Channel, some); err != nil {
				return nil, err
			}
		}
		rows = append(rows, some...)
		ids = ids[n:]
	}
	if len(rows) > room {
		rows = rows[:room]
	}
	return rows, nil
}

// takes checks on the whole row the conditions that a scan of another table could not check.
func (l *ListOptions) takes(d State) bool {
	switch {
	case l.EventType != "" && !filter.MatchType([]string{l.EventType}, d.EventType), l.Event != nil &&
		d.EventID != *l.Event:
		return false
	case l.Wait != "" && (d.Wait == nil || d.Wait.Reason != l.Wait):
		return false
	case l.Job != nil && (l.Endpoint != nil && d.EndpointID != *l.Endpoint || (d.ArchivedAt != nil) != l.Archived):
		return false
	case l.Status == nil:
		return true
	case *l.Status == AllFailed:
		return l.Job == nil || d.wentWrong()
	case *l.Status == DeadLetters:
		return d.DeadLetter
	}
	return d.Shown == *l.Status
}

// wentWrong is the condition of AllFailed.
func (d State) wentWrong() bool {
	switch d.Shown {
	case delivery.Failed, delivery.Retrying:
		return true
	case delivery.Canceled:
		return d.Attempts > 0
	}
	return false
}

// replays adds what is known of a delivery's replays; the zero id means that there is none.
func (d *State) replays(dead bool, by id.UUID) {
	d.DeadLetter = dead
	if !by.IsZero() {
		d.ReplayedBy = &by
	}
}

// ReadMany reads deliveries of a tenant by id, newest first, as far back as its retention shows. It leaves out unknown
// ids.
func ReadMany(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) ([]State, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(slices.Clone(ids),
		func(deliveryID id.UUID) bool { return deliveryID.Time().Before(floor) })
	slices.SortFunc(shown, func(a, b id.UUID) int { return b.Compare(a) })
	return readDeliveries(ctx, q, tenant, slices.Compact(shown))
}

// readDeliveries reads rows by id, in the order of the ids. It leaves out dropped rows. A statement reads one day's
// partition.
func readDeliveries(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) ([]State, error) {
	read := make(map[id.UUID]State, len(ids))
	for _, day := range splitByDay(ids) {
		rows, err := q.ReadDeliveries(ctx, sql.ReadDeliveriesParams{
			TenantID: tenant, Ids: day.ids, Created: day.created, First: day.first, Last: day.last,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			s := stateOf(r.Delivery, r.Held, queued{r.Queued, r.Seq, r.QueueState, r.NextAt, r.Asked, r.OrderKey})
			s.replays(r.Dead, r.ReplayedBy)
			read[r.Delivery.ID] = s
		}
	}
	out := make([]State, 0, len(ids))
	for _, deliveryID := range ids {
		if d, ok := read[deliveryID]; ok {
			out = append(out, d)
		}
	}
	return out, explainWaits(ctx, q, &tenant, out)
}

// onChannel keeps the deliveries of events on a channel.
func onChannel(ctx context.Context, q *sql.Queries, tenant id.UUID, channel string, rows []State) ([]State, error) {
	ids := make([]id.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.EventID
	}
	slices.SortFunc(ids, id.UUID.Compare)
	on := map[id.UUID]bool{}
	for _, day := range splitByDay(slices.Compact(ids)) {
		found, err := q.EventsOnChannel(ctx, sql.EventsOnChannelParams{
			TenantID: tenant, Ids: day.ids, Created: day.created, First: day.first, Last: day.last, Channel: channel,
		})
		if err != nil {
			return nil, err
		}
		for _, deliveryID := range found {
			on[deliveryID] = true
		}
	}
	return slices.DeleteFunc(rows, func(d State) bool { return !on[d.EventID] }), nil
}

// dayOfIDs holds ids of one UTC day, with their creation times and the earliest and latest of those.
type dayOfIDs struct {
	ids         []id.UUID
	created     []time.Time
	first, last time.Time
}

// splitByDay splits ids in ascending or descending order into days.
func splitByDay(ids []id.UUID) []dayOfIDs {
	var days []dayOfIDs
	number := int64(-1)
	for _, deliveryID := range ids {
		at := deliveryID.Time()
		if n := at.Unix() / 86400; n != number || len(days) == 0 {
			days, number = append(days, dayOfIDs{first: at, last: at}), n
		}
		d := &days[len(days)-1]
		d.ids, d.created = append(d.ids, deliveryID), append(d.created, at)
		if at.Before(d.first) {
			d.first = at
		}
		if at.After(d.last) {
			d.last = at
		}
	}
	return days
}

// moments are the times of creation of ids, for statements that take both: PostgreSQL looks in one day for a moment
// that it is given, and in all days for one that it computes (queries/bulk.sql, DeliveredEvents).
func moments(ids []id.UUID) []time.Time {
	at := make([]time.Time, len(ids))
	for i, one := range ids {
		at[i] = one.Time()
	}
	return at
}
