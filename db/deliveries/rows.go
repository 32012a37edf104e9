package deliveries

import (
	"context"
	"slices"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// scanned is the result of one scan of a table: the ids that match, how many rows were read, and the last of them.
type scanned sql.ScanDeliveriesRow

// scan is one scan of a list in a window.
type scan struct {
	q      *sql.Queries
	tenant id.UUID
	l      *ListOptions
	w      window
	status delivery.Status // the wanted one, or anyStatus
	any    bool            // everything that waits
	rows   int32           // to read at most
}

// scanDeliveries scans this many rows of the table that knows the wanted status.
func scanDeliveries(ctx context.Context, q *sql.Queries, tenant id.UUID, l *ListOptions, w window, n int) (scanned, error) {
	s := scan{q: q, tenant: tenant, l: l, w: w, status: anyStatus, rows: int32(n)}
	if status, one := delivery.ParseStatus(l.Status); one {
		s.status = status
	}
	s.any = l.Status == delivery.OnHold || l.Status == "" && l.Wait != ""
	waits := s.any || s.status != anyStatus && !s.status.Terminal()
	read := s.deliveries
	switch {
	case !l.Job.IsZero():
		read = s.job
	case waits && l.Archived:
		return scanned{}, nil // waiting deliveries can't be archived
	case waits:
		read = s.queue
	case s.status == delivery.Failed, l.Status == delivery.DeadLetter:
		read = s.deadLetters
	case s.status.Ended():
		read = s.cancellations
	case l.Status == delivery.AllFailed:
		read = s.allFailed
	case !l.Event.IsZero():
		read = s.event
	}
	found, err := read(ctx)
	slices.SortFunc(found.Ids, id.UUID.Compare)
	if !l.Ascending {
		slices.Reverse(found.Ids)
	}
	return found, err
}

// job reads what a bulk job made.
func (s scan) job(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanJob(ctx, sql.ScanJobParams{
		Newest:   !s.l.Ascending,
		TenantID: s.tenant,
		JobID:    &s.l.Job,
		Low:      s.w.low,
		High:     s.w.high,
		Scan:     s.rows,
	})
	return scanned(r), err
}

// queue reads what waits.
func (s scan) queue(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanQueue(ctx, sql.ScanQueueParams{
		Waiting:    s.any,
		Newest:     !s.l.Ascending,
		Held:       s.status == delivery.Held,
		Tried:      s.status == delivery.Retrying,
		TenantID:   s.tenant,
		Low:        s.w.low,
		High:       s.w.high,
		EndpointID: idOrNil(s.l.Endpoint),
		Scan:       s.rows,
	})
	return scanned(r), err
}

// deadLetters reads what failed.
func (s scan) deadLetters(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanDeadLetters(ctx, sql.ScanDeadLettersParams{
		Newest:     !s.l.Ascending,
		Archived:   s.l.Archived,
		Open:       s.l.Status == delivery.DeadLetter,
		EventType:  s.l.EventType,
		TenantID:   s.tenant,
		Low:        s.w.low,
		High:       s.w.high,
		EndpointID: idOrNil(s.l.Endpoint),
		Scan:       s.rows,
	})
	return scanned(r), err
}

// cancellations reads what was canceled.
func (s scan) cancellations(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanCancellations(ctx, s.ended())
	return scanned(r), err
}

// allFailed reads what went wrong at least once.
func (s scan) allFailed(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanAllFailed(ctx, sql.ScanAllFailedParams(s.ended()))
	return scanned(r), err
}

func (s scan) ended() sql.ScanCancellationsParams {
	return sql.ScanCancellationsParams{
		Newest:     !s.l.Ascending,
		Archived:   s.l.Archived,
		EventType:  s.l.EventType,
		TenantID:   s.tenant,
		Low:        s.w.low,
		High:       s.w.high,
		EndpointID: idOrNil(s.l.Endpoint),
		Scan:       s.rows,
	}
}

// stored is the status as deliveries have it.
func (s scan) stored() int32 {
	if s.status.Ended() {
		return int32(delivery.Canceled)
	}
	return int32(s.status)
}

// event reads the deliveries of an event.
func (s scan) event(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanEvent(ctx, sql.ScanEventParams{
		Newest:     !s.l.Ascending,
		Archived:   s.l.Archived,
		Status:     s.stored(),
		EventType:  s.l.EventType,
		TenantID:   s.tenant,
		EventID:    s.l.Event,
		EventAt:    s.l.Event.Time(),
		LowAt:      s.w.low.Time(),
		HighAt:     s.w.high.Time(),
		Low:        s.w.low,
		High:       s.w.high,
		EndpointID: idOrNil(s.l.Endpoint),
		Scan:       s.rows,
	})
	return scanned(r), err
}

// deliveries reads deliveries of any status, or of one that is final.
func (s scan) deliveries(ctx context.Context) (scanned, error) {
	r, err := s.q.ScanDeliveries(ctx, sql.ScanDeliveriesParams{
		Newest:     !s.l.Ascending,
		Archived:   s.l.Archived,
		Status:     s.stored(),
		EventType:  s.l.EventType,
		TenantID:   s.tenant,
		LowAt:      s.w.low.Time(),
		HighAt:     s.w.high.Time(),
		Low:        s.w.low,
		High:       s.w.high,
		EndpointID: idOrNil(s.l.Endpoint),
		Scan:       s.rows,
	})
	return scanned(r), err
}

// anyStatus selects deliveries of every status in a scan.
const anyStatus delivery.Status = -1

// idOrNil is an id as a parameter that can be NULL.
func idOrNil(uuid id.UUID) *id.UUID {
	if uuid.IsZero() {
		return nil
	}
	return &uuid
}

// readPage reads the first rows of ids, in their order, and leaves out rows that fail the conditions that the scan
// could not check.
func readPage(ctx context.Context, q *sql.Queries, tenant id.UUID, l *ListOptions, ids []id.UUID, room int) ([]show.Delivery, error) {
	var rows []show.Delivery
	for len(ids) > 0 && len(rows) < room {
		n := min(len(ids), room)
		some, err := readDeliveries(ctx, q, tenant, ids[:n])
		if err != nil {
			return nil, err
		}
		some = slices.DeleteFunc(some, func(d show.Delivery) bool { return !l.takes(d) })
		if !l.Batch.IsZero() {
			if some, err = inBatch(ctx, q, tenant, l.Batch, some); err != nil {
				return nil, err
			}
		}
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

// asksForListeners reports whether the list is of something that a listener can have a part in. Any other list leaves
// its deliveries out.
func (l *ListOptions) asksForListeners() bool {
	return !l.Endpoint.IsZero() || !l.Event.IsZero() || !l.Job.IsZero() || l.Wait == condition.Listener
}

// takes checks on the whole row the conditions that a scan of another table could not check.
func (l *ListOptions) takes(d show.Delivery) bool {
	switch {
	case d.Endpoint.Kind == endpoint.Listen && !l.asksForListeners(),
		l.EventType != "" && !filter.MatchType([]string{l.EventType}, d.EventType),
		!l.Event.IsZero() && d.EventID != l.Event,
		l.Wait != "" && d.Wait.Reason != l.Wait,
		!l.Job.IsZero() && (!l.Endpoint.IsZero() && d.Endpoint.ID != l.Endpoint || d.Archived() != l.Archived):
		return false
	}
	switch l.Status {
	case "":
		return true
	case delivery.AllFailed:
		return l.Job.IsZero() || d.WentWrong() // the scan has seen attempts that the delivery's row lacks
	case delivery.DeadLetter:
		return d.DeadLetter
	case delivery.OnHold:
		return d.OnHold()
	}
	return d.Status.String() == l.Status
}

// ReadMany reads deliveries of a tenant by id, newest first, as far back as its retention shows. It leaves out unknown
// ids.
func ReadMany(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) ([]show.Delivery, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	shown := slices.DeleteFunc(slices.Clone(ids), func(one id.UUID) bool { return one.Time().Before(floor) })
	slices.SortFunc(shown, func(a, b id.UUID) int { return b.Compare(a) })
	return readDeliveries(ctx, q, tenant, slices.Compact(shown))
}

// readDeliveries reads deliveries of one tenant by id, in the order of the ids. It leaves out dropped rows.
func readDeliveries(ctx context.Context, q *sql.Queries, tenant id.UUID, ids []id.UUID) ([]show.Delivery, error) {
	return readAll(ctx, q, slices.Repeat([]id.UUID{tenant}, len(ids)), ids)
}

// readAll reads deliveries of tenants. A statement reads one day's partition.
func readAll(ctx context.Context, q *sql.Queries, tenants, ids []id.UUID) ([]show.Delivery, error) {
	read := make(map[id.UUID]sql.ReadDeliveriesRow, len(ids))
	for _, day := range splitByDay(ids) {
		n := len(day.ids)
		rows, err := q.ReadDeliveries(ctx, sql.ReadDeliveriesParams{
			Tenants: tenants[:n],
			Ids:     day.ids,
			Created: day.created,
			First:   day.first,
			Last:    day.last,
		})
		if err != nil {
			return nil, err
		}
		tenants = tenants[n:]
		for _, r := range rows {
			read[r.Delivery.ID] = r
		}
	}
	found := make([]sql.ReadDeliveriesRow, 0, len(ids))
	for _, one := range ids {
		if r, ok := read[one]; ok {
			found = append(found, r)
		}
	}
	return explain(ctx, q, found)
}

// onChannel keeps the deliveries of events on a channel.
func onChannel(ctx context.Context, q *sql.Queries, tenant id.UUID, channel string, rows []show.Delivery) ([]show.Delivery, error) {
	ids := make([]id.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.EventID
	}
	slices.SortFunc(ids, id.UUID.Compare)
	on := map[id.UUID]bool{}
	for _, day := range splitByDay(slices.Compact(ids)) {
		found, err := q.EventsOnChannel(ctx, sql.EventsOnChannelParams{
			TenantID: tenant,
			Ids:      day.ids,
			Created:  day.created,
			First:    day.first,
			Last:     day.last,
			Channel:  channel,
		})
		if err != nil {
			return nil, err
		}
		for _, deliveryID := range found {
			on[deliveryID] = true
		}
	}
	return slices.DeleteFunc(rows, func(d show.Delivery) bool { return !on[d.EventID] }), nil
}

// inBatch keeps the deliveries with an attempt in a batch. Its attempts have its moment, which names their day.
func inBatch(ctx context.Context, q *sql.Queries, tenant, batch id.UUID, rows []show.Delivery) ([]show.Delivery, error) {
	p := sql.DeliveriesInBatchParams{TenantID: tenant, At: batch.Time(), Batch: id.Batch.Format(batch)}
	for _, d := range rows {
		p.Ids = append(p.Ids, d.ID)
	}
	in, err := q.DeliveriesInBatch(ctx, p)
	return slices.DeleteFunc(rows, func(d show.Delivery) bool { return !slices.Contains(in, d.ID) }), err
}

// dayOfIDs holds ids of one UTC day, with their creation times and the earliest and latest of those.
type dayOfIDs struct {
	ids         []id.UUID
	created     []time.Time
	first, last time.Time
}

// splitByDay splits ids in ascending or descending order into days.
func splitByDay(ids []id.UUID) (days []dayOfIDs) {
	number := int64(-1)
	for _, one := range ids {
		at := one.Time()
		if n := at.Unix() / 86400; n != number || len(days) == 0 {
			days, number = append(days, dayOfIDs{first: at, last: at}), n
		}
		d := &days[len(days)-1]
		d.ids = append(d.ids, one)
		d.created = append(d.created, at)
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
