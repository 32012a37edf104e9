package deliveries

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/ledger"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// Read reads one delivery of a tenant, if its retention still shows it.
func Read(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) (show.Delivery, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return show.Delivery{}, err
	}
	if deliveryID.Time().Before(floor) {
		return show.Delivery{}, fault.ErrNotFound
	}
	return read(ctx, q, tenant, deliveryID)
}

// read is Read for a delivery that was just shown: what waited can be shown only because it waited.
func read(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) (show.Delivery, error) {
	rows, err := readDeliveries(ctx, q, tenant, []id.UUID{deliveryID})
	if err == nil && len(rows) == 0 {
		err = fault.ErrNotFound
	}
	if err != nil {
		return show.Delivery{}, err
	}
	return untransformed(ctx, q, rows[0])
}

// RetryNow makes a waiting delivery ready now, and ends the wait that its endpoint asked for with Retry-After. changed
// is false if it was ready already; of two concurrent calls one changes it. If the endpoint's breaker is open, the
// delivery immediately becomes the next probe.
func RetryNow(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) (d show.Delivery, changed bool, err error) {
	return retryNow(ctx, q, tenant, deliveryID, true)
}

// retryNow is RetryNow. Without endWait the delivery is sent during the wait, which goes on.
func retryNow(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, endWait bool) (d show.Delivery, changed bool, err error) {
	row, err := lockWaiting(ctx, q, tenant, deliveryID)
	if err != nil {
		return d, false, err
	}
	if d, err = Read(ctx, q, tenant, deliveryID); err != nil {
		return d, false, err
	}
	switch {
	case row == nil || !delivery.CanRetryNow(d.Status):
		return d, false, delivery.RefuseRetryNow(d.Status)
	case row.State == queue.Blocked:
		return d, false, delivery.ErrWaitsItsTurn
	}
	if endWait {
		if changed, err = endpoints.EndWait(ctx, q, tenant, row.EndpointID); err != nil {
			return d, false, err
		}
	}
	if row.State == queue.Ready {
		n, err := q.AskNow(ctx, tenant, deliveryID)
		if err != nil || n == 0 && !changed {
			return d, false, err
		}
		if err := endpoints.WakeLane(ctx, q, tenant, row.EndpointID); err != nil {
			return d, false, err
		}
		d, err = Read(ctx, q, tenant, deliveryID)
		return d, true, err
	}
	if err := q.QueueNow(ctx, tenant, deliveryID); err != nil {
		return d, false, err
	}
	if err := endpoints.WakeLane(ctx, q, tenant, row.EndpointID); err != nil {
		return d, false, err
	}
	d, err = Read(ctx, q, tenant, deliveryID)
	return d, true, err
}

// HastenTest makes a test event that was just emitted the next probe if its endpoint's breaker is open or the endpoint
// asked for a wait. A person who sends a test has fixed the receiver, and does not wait for an hour. A test that was
// already sent, or that an ordering key holds back, does not change.
func HastenTest(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) error {
	_, _, err := retryNow(ctx, q, tenant, deliveryID, false)
	if f := fault.As(err); f != nil && f.Kind == fault.Conflict {
		return nil
	}
	return err
}

// Cancel cancels a waiting delivery: it deletes the queue row and enters the delivery in the ledger as canceled. It
// does not stop a request in flight.
func Cancel(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) (show.Delivery, error) {
	row, err := lockWaiting(ctx, q, tenant, deliveryID)
	if err != nil {
		return show.Delivery{}, err
	}
	d, err := Read(ctx, q, tenant, deliveryID)
	if err != nil {
		return show.Delivery{}, err
	}
	if row == nil || !delivery.CanCancel(d.Status) {
		return d, delivery.RefuseCancel(d.Status)
	}
	if err := q.DropQueued(ctx, tenant, deliveryID); err != nil {
		return d, err
	}
	settled, err := q.CancelDelivery(ctx, sql.CancelDeliveryParams{
		TenantID:  tenant,
		CreatedAt: deliveryID.Time(),
		ID:        deliveryID,
	})
	if err != nil {
		return d, err
	}
	if err := q.InsertCancellation(ctx, sql.InsertCancellationParams{
		TenantID:   tenant,
		DeliveryID: deliveryID,
		EndpointID: d.Endpoint.ID,
		EventType:  d.EventType,
		Attempted:  max(settled.Attempts, row.Attempts) > 0,
	}); err != nil {
		return d, err
	}
	totals := ledger.Totals{}
	totals.At(tenant, deliveryID.Time()).Canceled++
	if err := ledger.Enter(ctx, q, totals); err != nil {
		return d, err
	}
	if err := endpoints.WakeLane(ctx, q, tenant, d.Endpoint.ID); err != nil {
		return d, err
	}
	return read(ctx, q, tenant, deliveryID)
}

// lockWaiting locks the queue row of a delivery before anything is read about it, in the recorder's order: the queue's
// row first, then the delivery's. Nil means that it has no row and does not wait.
func lockWaiting(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID) (*sql.Queue, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	row, err := q.LockQueued(ctx, tenant, deliveryID)
	if db.IsNoRows(err) {
		return nil, nil
	}
	return &row, err
}

// Replay sends a settled delivery's event to its endpoint again, as a new delivery at the end of the lane. A delivery
// that was replayed before is replayed again only if again is set, so of two concurrent calls one replays it.
func Replay(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, again bool) (show.Delivery, error) {
	original, err := Read(ctx, q, tenant, deliveryID)
	if err != nil {
		return show.Delivery{}, err
	}
	if !delivery.CanReplay(original.Status) {
		return original, delivery.RefuseReplay(original.Status)
	}
	if err := lockReplay(ctx, q, tenant, deliveryID, again); err != nil {
		return original, err
	}
	return replay(ctx, q, tenant, original)
}

// lockReplay locks a delivery for a replay, and rejects one that was replayed before.
func lockReplay(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, again bool) error {
	if _, err := q.LockDelivery(ctx, sql.LockDeliveryParams{
		TenantID:  tenant,
		CreatedAt: deliveryID.Time(),
		ID:        deliveryID,
	}); err != nil || again {
		return err
	}
	// In the order of bulk jobs, so that either a job or a person replays it, but not both.
	letters, err := q.LockLetters(ctx, tenant, []id.UUID{deliveryID})
	if err != nil {
		return err
	}
	last, err := q.LastReplay(ctx, tenant, deliveryID)
	switch {
	case err == nil:
		return delivery.RefuseReplayAgain(id.Delivery.Format(last))
	case !db.IsNoRows(err):
		return err
	case len(letters) > 0 && letters[0].Replayed:
		return delivery.RefuseReplayAgain("")
	}
	return nil
}

// replay sends a delivery again after the transaction has locked it.
func replay(ctx context.Context, q *sql.Queries, tenant id.UUID, original show.Delivery) (show.Delivery, error) {
	deliveryID := original.ID
	ordering, err := q.ShareLockEndpoint(ctx, tenant, original.Endpoint.ID)
	if db.IsNoRows(err) {
		return original, delivery.ErrEndpointDeleted
	} else if err != nil {
		return original, err
	}
	key, err := replayable(ctx, q, tenant, original.EventID)
	if err != nil {
		return original, err
	}
	again, first := db.NewID(), original.First()
	if err := q.InsertReplay(ctx, sql.InsertReplayParams{
		TenantID:   tenant,
		CreatedAt:  again.Time(),
		ID:         again,
		EventID:    original.EventID,
		EndpointID: original.Endpoint.ID,
		EventType:  original.EventType,
		ReplayOf:   &original.ID,
		FirstID:    &first,
	}); err != nil {
		return original, err
	}
	row := sql.QueueReplayParams{
		TenantID:   tenant,
		DeliveryID: again,
		EventID:    original.EventID,
		EndpointID: original.Endpoint.ID,
		FirstID:    &first,
	}
	if row.OrderKey = orderKey(ordering, key); row.OrderKey != nil {
		row.State = queue.Blocked
	}
	if err := q.QueueReplay(ctx, row); err != nil {
		return original, err
	}
	if err := noteReplays(ctx, q, tenant, nil, []id.UUID{deliveryID}, []id.UUID{again}); err != nil {
		return original, err
	}
	totals := ledger.Totals{}
	totals.At(tenant, again.Time()).Accepted++
	if err := ledger.Enter(ctx, q, totals); err != nil {
		return original, err
	}
	if err := endpoints.WakeLane(ctx, q, tenant, original.Endpoint.ID); err != nil {
		return original, err
	}
	return Read(ctx, q, tenant, again)
}

// noteReplays records that deliveries were sent again as others, and by which job. They are then no longer dead
// letters.
func noteReplays(ctx context.Context, q *sql.Queries, tenant id.UUID, job *id.UUID, originals, made []id.UUID) error {
	if err := q.MarkLettersReplayed(ctx, tenant, originals); err != nil {
		return err
	}
	return q.NoteReplays(ctx, sql.NoteReplaysParams{
		TenantID:   tenant,
		JobID:      job,
		ReplaysOf:  originals,
		Deliveries: made,
	})
}

// replayable returns the ordering key of an event if the event can still be sent.
func replayable(ctx context.Context, q *sql.Queries, tenant, event id.UUID) (*string, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if event.Time().Before(floor) {
		return nil, delivery.ErrEventExpired
	}
	e, err := q.ReplayableEvent(ctx, sql.ReplayableEventParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
	if db.IsNoRows(err) {
		return nil, storedOr(ctx, q, tenant, []id.UUID{event}, delivery.ErrEventExpired)
	}
	if err == nil && !e.HasData {
		return nil, delivery.ErrEventExpired
	}
	return e.Key, err
}

// orderKey is the ordering key of an event in an endpoint's queue; nil if nothing orders it.
func orderKey(ordering string, key *string) *string {
	switch ordering {
	case "strict":
		strict := queue.StrictKey
		return &strict
	case "key":
		return key
	}
	return nil
}

// archive hides a settled delivery from lists, or shows it again. changed is false if it was hidden or shown already.
func archive(ctx context.Context, q *sql.Queries, tenant, deliveryID id.UUID, archived bool) (d show.Delivery, changed bool, err error) {
	if d, err = Read(ctx, q, tenant, deliveryID); err != nil {
		return d, false, err
	}
	if !delivery.CanArchive(d.Status) {
		return d, false, delivery.RefuseArchive(d.Status)
	}
	row, err := q.LockDelivery(ctx, sql.LockDeliveryParams{
		TenantID:  tenant,
		CreatedAt: deliveryID.Time(),
		ID:        deliveryID,
	})
	if err != nil {
		return d, false, err
	}
	if (row.ArchivedAt != nil) == archived {
		d, err = read(ctx, q, tenant, deliveryID)
		return d, false, err
	}
	if err := q.ArchiveDelivery(ctx, sql.ArchiveDeliveryParams{
		Archived:  archived,
		TenantID:  tenant,
		CreatedAt: deliveryID.Time(),
		ID:        deliveryID,
	}); err != nil {
		return d, false, err
	}
	if err := q.ArchiveDeadLetter(ctx, sql.ArchiveDeadLetterParams{
		Archived:   archived,
		TenantID:   tenant,
		DeliveryID: deliveryID,
	}); err != nil {
		return d, false, err
	}
	if err := q.ArchiveCancellation(ctx, sql.ArchiveCancellationParams{
		Archived:   archived,
		TenantID:   tenant,
		DeliveryID: deliveryID,
	}); err != nil {
		return d, false, err
	}
	d, err = Read(ctx, q, tenant, deliveryID)
	return d, true, err
}

// afterSettled is how long after a delivery was settled another attempt of it can still start, on a worker that had
// stalled.
const afterSettled = 24 * time.Hour

// Attempts returns a delivery's newest attempts, oldest first.
func Attempts(ctx context.Context, q *sql.Queries, d show.Delivery, limit int) ([]show.Attempt, error) {
	since, until := attemptsBetween(d)
	rows, err := q.ListAttempts(ctx, sql.ListAttemptsParams{
		TenantID:   d.TenantID,
		DeliveryID: d.ID,
		Since:      since,
		Until:      until,
		Limit:      int32(limit),
	})
	attempts := make([]show.Attempt, len(rows))
	for i, r := range rows {
		attempts[len(rows)-1-i] = attemptOf(r, d)
	}
	return attempts, err
}

// Attempt is one attempt of a delivery.
func Attempt(ctx context.Context, q *sql.Queries, d show.Delivery, attempt id.UUID) (show.Attempt, error) {
	since, until := attemptsBetween(d)
	r, err := q.GetAttempt(ctx, sql.GetAttemptParams{
		TenantID:   d.TenantID,
		DeliveryID: d.ID,
		ID:         attempt,
		Since:      since,
		Until:      until,
	})
	return attemptOf(r, d), err
}

// attemptOf is an attempt of a delivery as it is stored.
func attemptOf(r sql.Attempt, d show.Delivery) show.Attempt {
	us := func(n int32) time.Duration { return time.Duration(n) * time.Microsecond }
	return show.NewAttempt(show.Attempt{
		ID:        r.ID,
		Number:    int(r.Number),
		Late:      r.Late,
		Result:    delivery.Result{Failure: r.Failure, Status: int(r.Status)},
		Error:     db.OrZero(r.Error),
		StartedAt: r.CreatedAt,
		URL:       r.URL,
		Format:    r.Format,
		Signature: r.Signature,
		Phases: show.Phases{
			DNS:     us(r.DNSUs),
			Connect: us(r.ConnectUs),
			TLS:     us(r.TLSUs),
			Wait:    us(r.WaitUs),
			Read:    us(r.ReadUs),
			Total:   us(r.TotalUs),
		},
		Headers: db.OrZero(r.ResponseHeaders),
		Body:    r.ResponseExcerpt,
	}, d.Endpoint)
}

// attemptsBetween is the time range of a delivery's attempts. It selects the partitions that can hold them.
func attemptsBetween(d show.Delivery) (since, until time.Time) {
	since, until = d.CreatedAt.Add(-db.ClockSkew), id.Last.Time()
	if !d.SettledAt.IsZero() {
		until = d.SettledAt.Add(afterSettled)
	}
	return since, until
}
