package db

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// ReadDelivery is one delivery of a tenant, as far back as its retention shows.
func (q *Queries) ReadDelivery(ctx context.Context, tenant, u id.UUID) (DeliveryState, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return DeliveryState{}, err
	}
	if u.Time().Before(floor) {
		return DeliveryState{}, fault.ErrNotFound
	}
	r, err := q.GetDelivery(ctx, GetDeliveryParams{TenantID: tenant, CreatedAt: u.Time(), ID: u})
	if err != nil {
		return DeliveryState{}, err
	}
	rows := []DeliveryState{stateOf(r.Delivery, r.Held, queued{r.Queued, r.Seq, r.QueueState, r.NextAt, r.Asked, r.OrderKey})}
	rows[0].replays(r.Dead, r.ReplayedBy)
	err = q.explainWaits(ctx, &tenant, rows)
	return rows[0], err
}

// RetryNow makes a waiting delivery ready at once, instead of at its time. changed is false where it was ready already: of
// two that press at once one changes it. Where the endpoint's breaker is open, the delivery is the next probe, at once.
func (q *Queries) RetryNow(ctx context.Context, tenant, u id.UUID) (d DeliveryState, changed bool, err error) {
	row, err := q.lockWaiting(ctx, tenant, u)
	if err != nil {
		return d, false, err
	}
	if d, err = q.ReadDelivery(ctx, tenant, u); err != nil {
		return d, false, err
	}
	switch {
	case row == nil || !delivery.CanRetryNow(d.Shown):
		return d, false, delivery.RefuseRetryNow(d.Shown)
	case row.State == QueueBlocked:
		return d, false, delivery.ErrWaitsItsTurn
	case row.State == QueueReady:
		n, err := q.AskNow(ctx, AskNowParams{TenantID: tenant, DeliveryID: u})
		if err != nil || n == 0 {
			return d, false, err
		}
		return d, true, q.wakeLane(ctx, tenant, row.EndpointID)
	}
	if err := q.QueueNow(ctx, QueueNowParams{TenantID: tenant, DeliveryID: u}); err != nil {
		return d, false, err
	}
	if err := q.wakeLane(ctx, tenant, row.EndpointID); err != nil {
		return d, false, err
	}
	d, err = q.ReadDelivery(ctx, tenant, u)
	return d, true, err
}

// HastenTest has a test event that was just emitted be the next probe where its endpoint's breaker is open: who sends a test has
// fixed the receiver, and does not wait for an hour. One that has gone already, or that an ordering key keeps, stays as it is.
func (q *Queries) HastenTest(ctx context.Context, tenant, u id.UUID) error {
	_, _, err := q.RetryNow(ctx, tenant, u)
	if f := fault.As(err); f != nil && f.Kind == fault.Conflict {
		return nil
	}
	return err
}

// CancelWaiting calls a waiting delivery off: its queue row goes, the books count it. A request under way is not stopped.
func (q *Queries) CancelWaiting(ctx context.Context, tenant, u id.UUID) (DeliveryState, error) {
	row, err := q.lockWaiting(ctx, tenant, u)
	if err != nil {
		return DeliveryState{}, err
	}
	d, err := q.ReadDelivery(ctx, tenant, u)
	if err != nil {
		return DeliveryState{}, err
	}
	if row == nil || !delivery.CanCancel(d.Shown) {
		return d, delivery.RefuseCancel(d.Shown)
	}
	if err := q.DropQueued(ctx, DropQueuedParams{TenantID: tenant, DeliveryID: u}); err != nil {
		return d, err
	}
	settled, err := q.CancelDelivery(ctx, CancelDeliveryParams{TenantID: tenant, CreatedAt: u.Time(), ID: u})
	if err != nil {
		return d, err
	}
	if err := q.InsertCancellation(ctx, InsertCancellationParams{
		TenantID: tenant, DeliveryID: u, EndpointID: d.EndpointID, EventType: d.EventType, Attempted: max(settled.Attempts, row.Attempts) > 0,
	}); err != nil {
		return d, err
	}
	books := Books{}
	books.At(tenant, u.Time()).Canceled++
	if err := q.enter(ctx, books); err != nil {
		return d, err
	}
	if err := q.wakeLane(ctx, tenant, d.EndpointID); err != nil {
		return d, err
	}
	return q.ReadDelivery(ctx, tenant, u)
}

// lockWaiting locks the queue row of a delivery before anything is read about it, as the recorder does: the queue's row
// first, the delivery's after. Nil: it has none, so it is not waiting.
func (q *Queries) lockWaiting(ctx context.Context, tenant, u id.UUID) (*Queue, error) {
	if err := q.PlanByIndex(ctx); err != nil {
		return nil, err
	}
	row, err := q.LockQueued(ctx, LockQueuedParams{TenantID: tenant, DeliveryID: u})
	if noRows(err) {
		return nil, nil
	}
	return &row, err
}

// Replay sends a settled delivery's event to its endpoint again, as a new delivery at the end of the lane. What was replayed before
// is replayed again only where again says so: of two that press at once, one replays it.
func (q *Queries) Replay(ctx context.Context, tenant, u id.UUID, again bool) (DeliveryState, error) {
	original, err := q.ReadDelivery(ctx, tenant, u)
	if err != nil {
		return DeliveryState{}, err
	}
	if !delivery.CanReplay(original.Shown) {
		return original, delivery.RefuseReplay(original.Shown)
	}
	if err := q.lockReplay(ctx, tenant, u, again); err != nil {
		return original, err
	}
	return q.replay(ctx, tenant, original)
}

// lockReplay locks a delivery for who replays it, and refuses one that was replayed before.
func (q *Queries) lockReplay(ctx context.Context, tenant, u id.UUID, again bool) error {
	if _, err := q.LockDelivery(ctx, LockDeliveryParams{TenantID: tenant, CreatedAt: u.Time(), ID: u}); err != nil || again {
		return err
	}
	// As bulk jobs do, so that of a job and a person one replays it.
	letters, err := q.LockLetters(ctx, LockLettersParams{TenantID: tenant, Ids: []id.UUID{u}})
	if err != nil {
		return err
	}
	last, err := q.LastReplay(ctx, LastReplayParams{TenantID: tenant, DeliveryID: u})
	switch {
	case err == nil:
		return delivery.RefuseReplayAgain(id.Delivery.Format(last))
	case !noRows(err):
		return err
	case len(letters) > 0 && letters[0].Replayed:
		return delivery.RefuseReplayAgain("")
	}
	return nil
}

// replay sends a delivery again that the transaction has locked.
func (q *Queries) replay(ctx context.Context, tenant id.UUID, original DeliveryState) (DeliveryState, error) {
	u := original.ID
	ordering, err := q.ShareEndpoint(ctx, ShareEndpointParams{TenantID: tenant, ID: original.EndpointID})
	if noRows(err) {
		return original, delivery.ErrEndpointDeleted
	} else if err != nil {
		return original, err
	}
	key, err := q.replayable(ctx, tenant, original.EventID)
	if err != nil {
		return original, err
	}
	again, first := NewID(), original.First()
	if err := q.InsertReplay(ctx, InsertReplayParams{
		TenantID: tenant, CreatedAt: again.Time(), ID: again, EventID: original.EventID, EndpointID: original.EndpointID,
		EventType: original.EventType, ReplayOf: &original.ID, FirstID: &first,
	}); err != nil {
		return original, err
	}
	row := QueueReplayParams{TenantID: tenant, DeliveryID: again, EventID: original.EventID, EndpointID: original.EndpointID, FirstID: &first}
	if row.OrderKey = orderKey(ordering, key); row.OrderKey != nil {
		row.State = QueueBlocked
	}
	if err := q.QueueReplay(ctx, row); err != nil {
		return original, err
	}
	if err := q.noteReplays(ctx, tenant, nil, []id.UUID{u}, []id.UUID{again}); err != nil {
		return original, err
	}
	books := Books{}
	books.At(tenant, again.Time()).Accepted++
	if err := q.enter(ctx, books); err != nil {
		return original, err
	}
	if err := q.wakeLane(ctx, tenant, original.EndpointID); err != nil {
		return original, err
	}
	return q.ReadDelivery(ctx, tenant, again)
}

// noteReplays writes down that deliveries were sent again as others, and which job did it: they are no dead letters any more.
func (q *Queries) noteReplays(ctx context.Context, tenant id.UUID, job *id.UUID, originals, made []id.UUID) error {
	if err := q.MarkLettersReplayed(ctx, MarkLettersReplayedParams{TenantID: tenant, Ids: originals}); err != nil {
		return err
	}
	return q.NoteReplays(ctx, NoteReplaysParams{TenantID: tenant, JobID: job, ReplaysOf: originals, Deliveries: made})
}

// replayable is the ordering key of an event that can still be sent.
func (q *Queries) replayable(ctx context.Context, tenant, event id.UUID) (*string, error) {
	floor, err := q.VisibleSince(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if event.Time().Before(floor) {
		return nil, delivery.ErrEventExpired
	}
	e, err := q.ReplayableEvent(ctx, ReplayableEventParams{TenantID: tenant, CreatedAt: event.Time(), ID: event})
	if noRows(err) || err == nil && !e.HasData {
		return nil, delivery.ErrEventExpired
	}
	return e.Key, err
}

// orderKey is what an event waits behind in the queue of an endpoint; nil: nothing.
func orderKey(ordering string, key *string) *string {
	switch ordering {
	case "strict":
		strict := StrictKey
		return &strict
	case "key":
		return key
	}
	return nil
}

// Archive hides a settled delivery from lists, or shows it again; changed is false where it was so already.
func (q *Queries) Archive(ctx context.Context, tenant, u id.UUID, archived bool) (d DeliveryState, changed bool, err error) {
	if d, err = q.ReadDelivery(ctx, tenant, u); err != nil {
		return d, false, err
	}
	if !delivery.CanArchive(d.Shown) {
		return d, false, delivery.RefuseArchive(d.Shown)
	}
	row, err := q.LockDelivery(ctx, LockDeliveryParams{TenantID: tenant, CreatedAt: u.Time(), ID: u})
	if err != nil {
		return d, false, err
	}
	d.Delivery, d.Shown = row, row.Status
	if (row.ArchivedAt != nil) == archived {
		return d, false, nil
	}
	if err := q.ArchiveDelivery(ctx, ArchiveDeliveryParams{Archived: archived, TenantID: tenant, CreatedAt: u.Time(), ID: u}); err != nil {
		return d, false, err
	}
	if err := q.ArchiveDeadLetter(ctx, ArchiveDeadLetterParams{Archived: archived, TenantID: tenant, DeliveryID: u}); err != nil {
		return d, false, err
	}
	if err := q.ArchiveCancellation(ctx, ArchiveCancellationParams{Archived: archived, TenantID: tenant, DeliveryID: u}); err != nil {
		return d, false, err
	}
	d, err = q.ReadDelivery(ctx, tenant, u)
	return d, true, err
}

// enter writes entries in the books of the transaction's tenant.
func (q *Queries) enter(ctx context.Context, books Books) error {
	_, days, counts := books.columns()
	return q.EnterOwnBooks(ctx, EnterOwnBooksParams{
		Days: days, Accepted: counts[0], Delivered: counts[1], Failed: counts[2], Canceled: counts[3], Expunged: counts[4],
	})
}

// clockSkew is by how much the worker's clock, which dates attempts, may be behind that of the node that made the delivery.
const clockSkew = time.Minute

// afterSettled is how long after a delivery was settled an attempt may still have begun: one that a stalled worker made.
const afterSettled = 24 * time.Hour

// ListAttemptsOf is a delivery's newest attempts, oldest first.
func (q *Queries) ListAttemptsOf(ctx context.Context, d Delivery, most int) ([]Attempt, error) {
	ask := ListAttemptsParams{
		TenantID: d.TenantID, DeliveryID: d.ID, Since: d.CreatedAt.Add(-clockSkew), Until: id.Last.Time(), Most: int32(most),
	}
	if d.SettledAt != nil {
		ask.Until = d.SettledAt.Add(afterSettled)
	}
	attempts, err := q.ListAttempts(ctx, ask)
	slices.Reverse(attempts)
	return attempts, err
}

func noRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
