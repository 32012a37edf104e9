package worker

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/event"
)

// The relay of the outbox: how many rows one transaction takes, and how often it looks without a notification.
const (
	relayMost  = 500
	relayEvery = time.Second
)

// relay stores the events that products emitted in SQL (posthorn.emit), until the context ends. They go through a
// committer like every other event, and keep the ids of their rows.
func (w *Worker) relay(ctx context.Context) {
	committer := emit.New(emit.Config{
		DB: w.db, Log: w.log, OnCommit: w.Committed, BeforeCommit: w.BeforeCommit, Tracer: w.tracer,
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
	store := func(rows []sql.Outbox) []error { return storeOutbox(context.WithoutCancel(ctx), committer, rows) }
	for {
		n, err := queue.RelayOutbox(ctx, w.db, relayMost, store)
		if err != nil && ctx.Err() == nil && !db.IsUnavailable(err) {
			w.log.Warn("the outbox could not be relayed; it is tried again", "error", err)
		}
		if n == relayMost && err == nil && ctx.Err() == nil {
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

// storeOutbox emits rows, tenant by tenant, each tenant's in their order. The errors follow the rows.
func storeOutbox(ctx context.Context, committer *emit.Committer, rows []sql.Outbox) []error {
	errs := make([]error, len(rows))
	places := map[[16]byte][]int{}
	items := map[[16]byte][]emit.Item{}
	for i := range rows {
		item, err := outboxItem(&rows[i])
		if err != nil {
			errs[i] = err
			continue
		}
		tenant := rows[i].TenantID
		places[tenant] = append(places[tenant], i)
		items[tenant] = append(items[tenant], item)
	}
	for tenant, list := range items {
		for k, r := range committer.Emit(ctx, tenant, list) {
			errs[places[tenant][k]] = r.Err
		}
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
	}{row.Type, row.Key, row.Channels, row.Version, row.OccurredAt, row.DeliverAt, row.IdempotencyKey, row.ExternalID}
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
