package worker

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/event"
	"posthorn/domain/id"
)

// The relay of the outbox: how many rows one transaction takes, and how often it looks without a notification.
const (
	relayMost  = 500
	relayEvery = time.Second
	// How long the rows of one tenant can be tried in one round: its schemas and filters decide how long each takes.
	relayPatience = time.Second
)

// runRelay stores the events that products emitted in SQL (posthorn.emit), until the context ends. They go through a
// committer like every other event, and keep the ids of their rows.
func (w *Worker) runRelay(ctx context.Context) {
	committer := emit.New(emit.Config{
		DB:           w.db,
		Log:          w.log,
		OnCommit:     w.Committed,
		BeforeCommit: w.BeforeCommit,
		Tracer:       w.tracer,
	})
	committing, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = committer.Run(committing)
	}()
	defer func() {
		stop()
		<-done
	}()
	r := &relay{db: w.db, committer: committer, patience: relayPatience}
	for {
		n, err := r.round(ctx)
		if err != nil && ctx.Err() == nil && !db.IsPassing(err) {
			w.log.Warn("the outbox could not be relayed; it is tried again", "error", err)
		}
		if (n == relayMost || len(r.slow) > 0) && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-w.outbox:
		case <-time.After(relayEvery):
		case <-ctx.Done():
			return
		}
	}
}

// tellRelay wakes the relay: there can be rows.
func (w *Worker) tellRelay() {
	loop.Wake(w.outbox)
}

// relay is what the relay knows from one round to the next. A tenant whose rows did not all get their turn in a round
// is slow: every second round leaves its rows out, so that the rows of the others behind them are reached.
type relay struct {
	db        *db.DB
	committer *emit.Committer
	patience  time.Duration
	slow      map[id.UUID]bool
	leaveOut  bool // in the next round
	mappings  mappings
}

// round relays one page of rows and returns how many there were.
func (r *relay) round(ctx context.Context) (int, error) {
	without := []id.UUID{}
	if r.leaveOut {
		without = slices.AppendSeq(without, maps.Keys(r.slow))
	}
	slow := map[id.UUID]bool{}
	n, err := queue.RelayOutbox(ctx, r.db, relayMost, without, func(rows []sql.Outbox) (errs []error) {
		errs, slow = r.store(context.WithoutCancel(ctx), rows)
		return errs
	})
	if !r.leaveOut {
		r.slow = map[id.UUID]bool{}
	}
	maps.Copy(r.slow, slow)
	r.leaveOut = !r.leaveOut && len(r.slow) > 0
	return n, err
}

// store emits rows, the tenants side by side, each tenant's in their order. The errors follow the rows. It also returns
// the tenants that had no time for all of their rows.
func (r *relay) store(ctx context.Context, rows []sql.Outbox) (errs []error, slow map[id.UUID]bool) {
	errs, slow = make([]error, len(rows)), map[id.UUID]bool{}
	places := map[id.UUID][]int{}
	of := map[id.UUID][]*sql.Outbox{}
	r.mappings.read(ctx, r.db, rows)
	for i := range rows {
		tenant := rows[i].TenantID
		places[tenant] = append(places[tenant], i)
		of[tenant] = append(of[tenant], &rows[i])
	}
	var tenants sync.WaitGroup
	var mu sync.Mutex
	for tenant, list := range of {
		wasSlow := r.slow[tenant]
		tenants.Go(func() {
			outcome, all := r.emit(ctx, tenant, list, wasSlow)
			for k, err := range outcome {
				errs[places[tenant][k]] = err
			}
			if !all {
				mu.Lock()
				defer mu.Unlock()
				slow[tenant] = true
			}
		})
	}
	tenants.Wait()
	return errs, slow
}

// emit emits the rows of one tenant as far as they get within the patience, and reports whether all had their turn. The
// rows of a slow tenant are emitted in small steps, the first of one row: a step that ends too late has stored nothing.
func (r *relay) emit(ctx context.Context, tenant id.UUID, rows []*sql.Outbox, slow bool) (errs []error, all bool) {
	until, step := time.Now().Add(r.patience), len(rows)
	if slow {
		step = 1
	}
	for len(errs) < len(rows) {
		began := time.Now()
		if began.After(until) && len(errs) > 0 {
			break
		}
		limited, cancel := ctx, context.CancelFunc(func() {})
		if step > 1 {
			limited, cancel = context.WithDeadline(ctx, until)
		}
		outcome := r.step(limited, tenant, rows[len(errs):min(len(errs)+step, len(rows))])
		ended := limited.Err() != nil
		cancel()
		if ended && slices.ContainsFunc(outcome, func(err error) bool { return err != nil }) {
			break
		}
		errs = append(errs, outcome...)
		if step *= 2; time.Since(began) > r.patience/10 {
			step = 1
		}
	}
	all = len(errs) == len(rows)
	for len(errs) < len(rows) {
		errs = append(errs, queue.ErrNotYet)
	}
	return errs, all
}

// step emits some rows of a tenant. If the context ends first, those that it did not come to have its error.
func (r *relay) step(ctx context.Context, tenant id.UUID, rows []*sql.Outbox) []error {
	errs := make([]error, len(rows))
	items, places := make([]emit.Item, 0, len(rows)), make([]int, 0, len(rows))
	for i, row := range rows {
		var item emit.Item
		if errs[i] = ctx.Err(); errs[i] == nil {
			item, errs[i] = r.mappings.item(row)
		}
		if errs[i] == nil {
			items, places = append(items, item), append(places, i)
		}
	}
	for i, result := range r.committer.Emit(ctx, tenant, items) {
		errs[places[i]] = result.Err
	}
	return errs
}

// outboxItem reads a row as the API reads a request, and rejects the same input.
func outboxItem(row *sql.Outbox) (emit.Item, error) {
	head := struct {
		Type           string     `json:"type"`
		Key            *string    `json:"key,omitempty"`
		Channels       []string   `json:"channels,omitempty"`
		Version        *string    `json:"version,omitempty"`
		OccurredAt     *time.Time `json:"occurred_at,omitempty"`
		DeliverAt      *time.Time `json:"deliver_at,omitempty"`
		IdempotencyKey *string    `json:"idempotency_key,omitempty"`
		EventID        *string    `json:"event_id,omitempty"`
		ExpiresIn      *int32     `json:"expires_in,omitempty"`
		ExpiresAt      *time.Time `json:"expires_at,omitempty"`
	}{row.Type, row.Key, row.Channels, row.Version, row.OccurredAt, row.DeliverAt, row.IdempotencyKey, row.ExternalID, row.ExpiresIn, row.ExpiresAt}
	body, err := json.Marshal(head)
	if err != nil {
		return emit.Item{}, err
	}
	body = append(body[:len(body)-1], `,"data":`...) // Marshal would rewrite the data
	body = append(append(body, row.Data...), '}')
	// posthorn.emit rejects reserved types, so rows with such types are Posthorn's own. The limits on times were
	// checked at the emission: after a long outage the relay must not reject what was valid then.
	e, err := event.Parse(body, event.Limits{MaxPayload: event.DefaultMaxPayload, Reserved: true}, row.ID.Time())
	if err != nil {
		return emit.Item{}, err
	}
	item := emit.Keyed(e, body)
	item.ID = row.ID
	return item, nil
}
