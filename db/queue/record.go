// Package queue is the hot path: it stores events with their deliveries, leases and reads lanes, and records outcomes.
// Every statement goes by index, and a batch is one round trip.
package queue

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// Outcome is the result of one attempt, or of a delivery that ended without one, as the recorder writes it.
type Outcome struct {
	TenantID   id.UUID
	DeliveryID id.UUID
	EventID    id.UUID
	EndpointID id.UUID
	EventType  string
	Gen        int32 // of the queue row that was read
	Attempts   int16 // started so far, including this one
	Probes     int16 // those that the schedule does not count
	Decision   delivery.Decision
	Result     delivery.Result
	Attempt    *Attempt // nil: the delivery ended without a request, or waits for an edit
	Behind     bool     // it waits behind an earlier delivery of its key, which is retried
	// Edited is, of a delivery that waits for an edit of its endpoint's transformation, the newest version that was
	// tried.
	Edited int64
}

// Attempt is the stored part of one request and its response. Durations are microseconds.
type Attempt struct {
	ID                            id.UUID
	StartedAt                     time.Time // the time in the id
	DNS, Connect, TLS, Wait, Read int32
	Total                         int32
	URL, Format, Signature        string
	ResponseHeaders               string
	ResponseExcerpt               []byte
	Error                         string
	Class                         int16         // of the roll-ups
	Held                          time.Duration // how long the endpoint's own limits held the delivery
}

// LaneDelay is the wait of all deliveries of a lane.
type LaneDelay struct {
	EndpointID id.UUID
	Epoch      int32         // of the lane's waits; one that somebody ended has an older epoch, and is not written
	Wait       time.Duration // 0: it is over
	LookIn     time.Duration // until a request is sent nevertheless
	Replaces   bool          // it replaces a longer wait
}

// OutcomeBatch is one transaction of the recorder.
type OutcomeBatch struct {
	Worker   id.UUID
	Listened bool // outcomes of listeners: no live worker is required, and they count for no endpoint's health
	Outcomes []*Outcome
	Health   []health.Change
	Delays   []LaneDelay
	Again    bool // an earlier try to record these outcomes had an unknown result
}

// Applied contains, by delivery id, the outcomes that changed their delivery. The others were late: they were logged as
// attempts and overwrote nothing.
type Applied map[id.UUID]bool

// RecordOutcomes writes outcomes in one transaction: it deletes or reschedules queue rows, inserts attempts, updates
// deliveries, lists dead letters, and enters totals and roll-ups in the ledger. It returns ErrWorkerDead if this worker
// was declared dead; the caller then can only call LogLate.
func RecordOutcomes(ctx context.Context, d *db.DB, r OutcomeBatch) (Applied, error) {
	conn, err := d.Pool().Acquire(ctx)
	if err != nil {
		return nil, db.Translate(err)
	}
	defer conn.Release()
	matched, err := r.write(ctx, d, conn.Conn())
	if err != nil && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
	}
	return matched, db.Translate(err)
}

func (r *OutcomeBatch) write(ctx context.Context, d *db.DB, conn *pgx.Conn) (Applied, error) {
	matched, known := Applied{}, map[id.UUID]bool{}
	first, err := d.Begin(ctx, conn, setHotRole, db.RoleWorker)
	if err != nil {
		return nil, err
	}
	if !r.Listened {
		first.Queue(sql.AssertAlive, r.Worker)
	}
	r.queueMatches(first, matched)
	r.queueEdits(first)
	if r.Again {
		queueKnown(first, r.Outcomes, known)
	}
	if err := db.Send(ctx, conn, first); err != nil {
		return nil, err
	}
	outcomes := r.Outcomes
	if len(known) > 0 {
		// The first try did commit all of them.
		outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o *Outcome) bool {
			return o.Attempt != nil &&
				known[o.Attempt.ID]
		})
	}
	totals := ledger.Totals{}
	late, lateOutcomes, expunged := lateAttempts(outcomes, matched), lateAnswers(outcomes, matched), map[id.UUID]bool{}
	if len(late)+len(lateOutcomes) > 0 {
		b := &pgx.Batch{}
		queueLate(b, late, totals)
		queueExpunged(b, lateOutcomes, expunged)
		if err := db.Send(ctx, conn, b); err != nil {
			return nil, err
		}
		forgetAnswers(lateOutcomes, expunged)
	}
	second := &pgx.Batch{}
	queueAttempts(second, outcomes, matched)
	queueDeliveries(second, outcomes, matched)
	queueDeadLetters(second, outcomes, matched)
	r.queueLedger(second, outcomes, matched, totals)
	r.queueLanes(second)
	r.queueAnswered(second)
	second.Queue("commit")
	if err := db.Send(ctx, conn, second); err != nil {
		return nil, err
	}
	for _, o := range r.Outcomes {
		if o.Attempt != nil && known[o.Attempt.ID] {
			matched[o.DeliveryID] = true
		}
	}
	return matched, nil
}

// queueMatches deletes or reschedules the queue rows that have not changed since they were read.
func (r *OutcomeBatch) queueMatches(b *pgx.Batch, matched Applied) {
	var settle sql.SettleQueueParams
	var later sql.RescheduleQueueParams
	for _, o := range r.Outcomes {
		if o.Decision.Status.Terminal() {
			settle.Tenants = append(settle.Tenants, o.TenantID)
			settle.Deliveries = append(settle.Deliveries, o.DeliveryID)
			settle.Gens = append(settle.Gens, o.Gen)
			continue
		}
		later.Tenants = append(later.Tenants, o.TenantID)
		later.Deliveries = append(later.Deliveries, o.DeliveryID)
		later.Gens = append(later.Gens, o.Gen)
		delay := o.Decision.RetryIn.Microseconds()
		if o.Behind {
			delay = -1
		}
		later.DelaysUs = append(later.DelaysUs, delay)
		later.Attempts = append(later.Attempts, o.Attempts)
		later.Probes = append(later.Probes, o.Probes)
	}
	if len(settle.Tenants) > 0 {
		b.Queue(sql.SettleQueue, db.Args(settle)...).Query(collectIDs(matched))
	}
	if len(later.Tenants) > 0 {
		b.Queue(sql.RescheduleQueue, db.Args(later)...).Query(collectIDs(matched))
	}
}

// queueEdits makes what waits for an edit due at once that was made in the meantime. The lock orders it with the edit:
// either the version is there now, or the edit comes later and releases the row.
func (r *OutcomeBatch) queueEdits(b *pgx.Batch) {
	var p sql.DueIfEditedParams
	for _, o := range r.Outcomes {
		if o.Result.Failure == delivery.FailTransformation {
			p.Tenants = append(p.Tenants, o.TenantID)
			p.Deliveries = append(p.Deliveries, o.DeliveryID)
			p.Endpoints = append(p.Endpoints, o.EndpointID)
			p.Versions = append(p.Versions, o.Edited)
		}
	}
	if len(p.Tenants) > 0 {
		b.Queue(sql.LockEdits, p.Endpoints)
		b.Queue(sql.DueIfEdited, db.Args(p)...)
	}
}

func queueKnown(b *pgx.Batch, outcomes []*Outcome, known map[id.UUID]bool) {
	var p sql.KnownAttemptsParams
	for _, o := range outcomes {
		if o.Attempt == nil {
			continue
		}
		p.Tenants = append(p.Tenants, o.TenantID)
		p.Deliveries = append(p.Deliveries, o.DeliveryID)
		p.Created = append(p.Created, o.Attempt.StartedAt)
		p.Ids = append(p.Ids, o.Attempt.ID)
		p.Low, p.High = db.Widen(p.Low, p.High, o.Attempt.StartedAt)
	}
	if len(p.Ids) > 0 {
		b.Queue(sql.KnownAttempts, db.Args(p)...).Query(collectIDs(known))
	}
}

// lateAttempts are the requests that ended after their delivery had.
func lateAttempts(outcomes []*Outcome, matched Applied) (late []*Outcome) {
	for _, o := range outcomes {
		if !matched[o.DeliveryID] && o.Attempt != nil {
			late = append(late, o)
		}
	}
	return late
}

func queueLate(b *pgx.Batch, late []*Outcome, totals ledger.Totals) {
	for _, group := range byDay(late) {
		var p sql.RecordLateParams
		for _, o := range group {
			created := o.DeliveryID.Time()
			p.Tenants = append(p.Tenants, o.TenantID)
			p.Ids = append(p.Ids, o.DeliveryID)
			p.Created = append(p.Created, created)
			p.Attempts = append(p.Attempts, o.Attempts)
			p.LastStatuses = append(p.LastStatuses, int16(o.Result.Status))
			p.Successes = append(p.Successes, o.Decision.Status == delivery.Delivered)
			p.Low, p.High = db.Widen(p.Low, p.High, created)
		}
		b.Queue(sql.RecordLate, db.Args(p)...).Query(func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sql.RecordLateRow])
			for _, won := range list {
				e := totals.At(won.TenantID, won.CreatedAt)
				e.Delivered++
				if won.Status == int16(delivery.Failed) {
					e.Failed--
				} else {
					e.Canceled--
				}
			}
			return err
		})
	}
}

// byDay groups outcomes by the UTC day of their delivery's creation.
func byDay(outcomes []*Outcome) map[int64][]*Outcome {
	days := map[int64][]*Outcome{}
	for _, o := range outcomes {
		day := o.DeliveryID.Time().Unix() / 86400
		days[day] = append(days[day], o)
	}
	return days
}

func queueAttempts(b *pgx.Batch, outcomes []*Outcome, matched Applied) {
	n := len(outcomes)
	p := sql.InsertAttemptsParams{
		Tenants:    make([]id.UUID, 0, n),
		Created:    make([]time.Time, 0, n),
		Ids:        make([]id.UUID, 0, n),
		Deliveries: make([]id.UUID, 0, n),
		Endpoints:  make([]id.UUID, 0, n),
		Numbers:    make([]int16, 0, n),
		Late:       make([]bool, 0, n),
		Statuses:   make([]int16, 0, n),
		Failures:   make([]int16, 0, n),
		DNS:        make([]int32, 0, n),
		Connect:    make([]int32, 0, n),
		TLS:        make([]int32, 0, n),
		Wait:       make([]int32, 0, n),
		Read:       make([]int32, 0, n),
		Total:      make([]int32, 0, n),
		Urls:       make([]string, 0, n),
		Formats:    make([]string, 0, n),
		Signatures: make([]string, 0, n),
		Headers:    make([]string, 0, n),
		Excerpts:   make([][]byte, 0, n),
		Errors:     make([]string, 0, n),
		Held:       make([]int32, 0, n),
	}
	for _, o := range outcomes {
		a := o.Attempt
		if a == nil {
			continue
		}
		p.Tenants = append(p.Tenants, o.TenantID)
		p.Created = append(p.Created, a.StartedAt)
		p.Ids = append(p.Ids, a.ID)
		p.Deliveries = append(p.Deliveries, o.DeliveryID)
		p.Endpoints = append(p.Endpoints, o.EndpointID)
		p.Numbers = append(p.Numbers, o.Attempts)
		p.Late = append(p.Late, !matched[o.DeliveryID])
		p.Statuses = append(p.Statuses, int16(o.Result.Status))
		p.Failures = append(p.Failures, int16(o.Result.Failure))
		p.DNS = append(p.DNS, a.DNS)
		p.Connect = append(p.Connect, a.Connect)
		p.TLS = append(p.TLS, a.TLS)
		p.Wait = append(p.Wait, a.Wait)
		p.Read = append(p.Read, a.Read)
		p.Total = append(p.Total, a.Total)
		p.Urls = append(p.Urls, a.URL)
		p.Formats = append(p.Formats, a.Format)
		p.Signatures = append(p.Signatures, a.Signature)
		p.Headers = append(p.Headers, a.ResponseHeaders)
		p.Excerpts = append(p.Excerpts, a.ResponseExcerpt)
		p.Errors = append(p.Errors, a.Error)
		p.Held = append(p.Held, int32(min(a.Held.Milliseconds(), math.MaxInt32)))
	}
	if len(p.Ids) == 0 {
		return
	}
	b.Queue(sql.InsertAttempts, db.Args(p)...)
}

func queueDeliveries(b *pgx.Batch, outcomes []*Outcome, matched Applied) {
	n := len(outcomes)
	p := sql.RecordDeliveriesParams{
		Tenants:      make([]id.UUID, 0, n),
		Created:      make([]time.Time, 0, n),
		Ids:          make([]id.UUID, 0, n),
		Events:       make([]id.UUID, 0, n),
		Endpoints:    make([]id.UUID, 0, n),
		Types:        make([]string, 0, n),
		Statuses:     make([]int16, 0, n),
		Reasons:      make([]int16, 0, n),
		Attempts:     make([]int16, 0, n),
		LastStatuses: make([]int16, 0, n),
		LastFailures: make([]int16, 0, n),
	}
	var unsent []*Outcome
	for _, o := range outcomes {
		if !matched[o.DeliveryID] {
			continue
		}
		if o.Attempt == nil {
			if o.Decision.Status.Terminal() {
				unsent = append(unsent, o)
			}
			continue
		}
		p.Tenants = append(p.Tenants, o.TenantID)
		p.Ids = append(p.Ids, o.DeliveryID)
		p.Created = append(p.Created, o.DeliveryID.Time())
		p.Events = append(p.Events, o.EventID)
		p.Endpoints = append(p.Endpoints, o.EndpointID)
		p.Types = append(p.Types, o.EventType)
		p.Statuses = append(p.Statuses, int16(o.Decision.Status))
		p.Reasons = append(p.Reasons, int16(o.Decision.Reason))
		p.Attempts = append(p.Attempts, o.Attempts)
		p.LastStatuses = append(p.LastStatuses, int16(o.Result.Status))
		p.LastFailures = append(p.LastFailures, int16(o.Result.Failure))
	}
	if len(p.Ids) > 0 {
		b.Queue(sql.RecordDeliveries, db.Args(p)...)
	}
	for _, group := range byDay(unsent) {
		queueUnsent(b, group)
	}
}

// queueUnsent ends deliveries of one day that ended without a request. Their day and its rows are possibly dropped.
func queueUnsent(b *pgx.Batch, group []*Outcome) {
	reasons := map[delivery.Reason]*sql.FailDeliveriesParams{}
	for _, o := range group {
		p := reasons[o.Decision.Reason]
		if p == nil {
			p = &sql.FailDeliveriesParams{Reason: o.Decision.Reason}
			reasons[o.Decision.Reason] = p
		}
		created := o.DeliveryID.Time()
		p.Tenants = append(p.Tenants, o.TenantID)
		p.Ids = append(p.Ids, o.DeliveryID)
		p.Created = append(p.Created, created)
		p.Low, p.High = db.Widen(p.Low, p.High, created)
	}
	for reason, p := range reasons {
		if reason == delivery.PastExpiry {
			b.Queue(sql.CancelTaken, db.Args(sql.CancelTakenParams(*p))...)
		} else {
			b.Queue(sql.FailDeliveries, db.Args(*p)...)
		}
	}
}

func queueDeadLetters(b *pgx.Batch, outcomes []*Outcome, matched Applied) {
	var p sql.InsertDeadLettersParams
	for _, o := range outcomes {
		if matched[o.DeliveryID] && o.Decision.Status == delivery.Failed {
			p.Tenants = append(p.Tenants, o.TenantID)
			p.Deliveries = append(p.Deliveries, o.DeliveryID)
			p.Endpoints = append(p.Endpoints, o.EndpointID)
			p.Types = append(p.Types, o.EventType)
			p.Reasons = append(p.Reasons, int16(o.Decision.Reason))
		}
	}
	if len(p.Tenants) > 0 {
		b.Queue(sql.InsertDeadLetters, db.Args(p)...)
	}
}

// queueAnswered ends the leases of listeners' deliveries that have a result.
func (r *OutcomeBatch) queueAnswered(b *pgx.Batch) {
	if !r.Listened {
		return
	}
	for _, o := range r.Outcomes {
		if o.Attempt != nil {
			b.Queue(sql.TakeAnswered, db.Args(sql.TakeAnsweredParams{
				TenantID:   o.TenantID,
				DeliveryID: o.DeliveryID,
				AttemptID:  o.Attempt.ID,
			})...)
		}
	}
}

func (r *OutcomeBatch) queueLedger(b *pgx.Batch, outcomes []*Outcome, matched Applied, totals ledger.Totals) {
	stats, failures := attemptStats{}, failureCounts{}
	for _, o := range outcomes {
		if o.Attempt != nil && !r.Listened && !o.Result.Failure.OfPlatform() {
			stats.add(o)
			failures.add(o)
		}
		if !matched[o.DeliveryID] {
			continue
		}
		switch o.Decision.Status {
		case delivery.Delivered:
			totals.At(o.TenantID, o.DeliveryID.Time()).Delivered++
		case delivery.Failed:
			totals.At(o.TenantID, o.DeliveryID.Time()).Failed++
		case delivery.Canceled:
			totals.At(o.TenantID, o.DeliveryID.Time()).Canceled++
		}
	}
	stats.queue(b, totals)
	failures.queue(b)
}

func (r *OutcomeBatch) queueLanes(b *pgx.Batch) {
	if len(r.Delays) > 0 {
		var p sql.DelayLanesParams
		for _, l := range r.Delays {
			p.Endpoints = append(p.Endpoints, l.EndpointID)
			p.Epochs = append(p.Epochs, l.Epoch)
			p.WaitsUs = append(p.WaitsUs, l.Wait.Microseconds())
			p.LooksUs = append(p.LooksUs, l.LookIn.Microseconds())
			p.Replaces = append(p.Replaces, l.Replaces)
		}
		b.Queue(sql.DelayLanes, db.Args(p)...)
	}
	r.queueHealth(b)
}

func (r *OutcomeBatch) queueHealth(b *pgx.Batch) {
	if len(r.Health) == 0 {
		return
	}
	var p healthColumns
	var closed []id.UUID
	for _, h := range r.Health {
		c := h.Counters
		if h.Closed {
			closed = append(closed, h.EndpointID)
		}
		p.Endpoints = append(p.Endpoints, h.EndpointID)
		p.Tenants = append(p.Tenants, h.TenantID)
		p.Epochs = append(p.Epochs, h.Epoch)
		p.Failures = append(p.Failures, int32(c.ConsecutiveFailures))
		p.Auths = append(p.Auths, int32(c.AuthStreak))
		p.Refused = append(p.Refused, db.OrNull(c.AuthSince))
		p.Exhausted = append(p.Exhausted, int32(c.Exhausted))
		p.Unhealthy = append(p.Unhealthy, db.OrNull(c.UnhealthySince))
		p.TLS = append(p.TLS, db.OrNull(c.TLSOnlySince))
		p.Firsts = append(p.Firsts, db.OrNull(c.FirstFailureAt))
		p.Lasts = append(p.Lasts, db.OrNull(c.LastFailureAt))
		p.Successes = append(p.Successes, db.OrNull(c.LastSuccessAt))
		// A probe in flight is lost with its worker, so the next owner can send another.
		p.Breakers = append(p.Breakers, int16(min(h.Breaker.State, health.Open)))
		p.Probes = append(p.Probes, int32(h.Breaker.Probes))
		p.Opened = append(p.Opened, db.OrNull(h.Breaker.OpenedAt))
		p.NextProbes = append(p.NextProbes, db.OrNull(h.Breaker.NextProbeAt))
		p.Gone = append(p.Gone, db.OrNull(h.GoneAt))
		p.Outages = append(p.Outages, db.OrNull(h.OutageFrom))
		p.Statuses = append(p.Statuses, int16(h.LastError.Status))
		p.LastFailures = append(p.LastFailures, int16(h.LastError.Failure))
		p.Errors = append(p.Errors, h.LastError.Text)
		p.Excerpts = append(p.Excerpts, h.LastError.Excerpt)
	}
	b.Queue(sql.SaveHealth, db.Args(p)...)
	if len(closed) > 0 {
		b.Queue(sql.ReleaseBacklogs, closed)
	}
}

// LogLate writes the attempts of a worker that was declared dead, so that every request is on record. Nothing else
// changes. It skips deleted tenants: their data is possibly erased already.
func LogLate(ctx context.Context, d *db.DB, outcomes []*Outcome) error {
	lateOutcomes, expunged, deleted := lateAnswers(outcomes, Applied{}), map[id.UUID]bool{}, map[id.UUID]bool{}
	if err := hot(ctx, d, func(b *pgx.Batch) {
		tenants := make([]id.UUID, len(outcomes))
		for i, o := range outcomes {
			tenants[i] = o.TenantID
		}
		b.Queue(sql.DeletedTenants, tenants).Query(collectIDs(deleted))
		queueExpunged(b, lateOutcomes, expunged)
	}); err != nil {
		return err
	}
	forgetAnswers(lateOutcomes, expunged)
	outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o *Outcome) bool { return deleted[o.TenantID] })
	return hot(ctx, d, func(b *pgx.Batch) {
		queueAttempts(b, outcomes, Applied{})
	})
}

// lateAnswers are the late outcomes with a stored response: their event was possibly expunged during the request.
func lateAnswers(outcomes []*Outcome, matched Applied) (late []*Outcome) {
	for _, o := range outcomes {
		if !matched[o.DeliveryID] && o.Attempt != nil && (o.Attempt.ResponseExcerpt != nil ||
			o.Attempt.ResponseHeaders != "") {
			late = append(late, o)
		}
	}
	return late
}

func queueExpunged(b *pgx.Batch, outcomes []*Outcome, expunged map[id.UUID]bool) {
	days := map[int64]*sql.ExpungedEventsParams{}
	for _, o := range outcomes {
		created := o.EventID.Time()
		p := days[created.Unix()/86400]
		if p == nil {
			p = &sql.ExpungedEventsParams{}
			days[created.Unix()/86400] = p
		}
		p.Tenants = append(p.Tenants, o.TenantID)
		p.Ids = append(p.Ids, o.EventID)
		p.Created = append(p.Created, created)
		p.Low, p.High = db.Widen(p.Low, p.High, created)
	}
	for _, p := range days {
		b.Queue(sql.ExpungedEvents, db.Args(*p)...).Query(collectIDs(expunged))
	}
}

// forgetAnswers removes the responses and keeps the attempts.
func forgetAnswers(outcomes []*Outcome, expunged map[id.UUID]bool) {
	for _, o := range outcomes {
		if expunged[o.EventID] {
			o.Attempt.ResponseExcerpt, o.Attempt.ResponseHeaders = nil, ""
		}
	}
}
