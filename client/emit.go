package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// NewEmission makes an event to emit, with data as JSON. Set its other fields before you emit it.
func NewEmission(eventType string, data any) (Emission, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return Emission{}, fmt.Errorf("posthorn: the event's data can't be written as JSON: %w", err)
	}
	return Emission{Type: eventType, Data: bytes.TrimSpace(b.Bytes())}, nil
}

// Emit emits an event. When it returns without an error, the event and its deliveries are stored. An event without an
// idempotency key gets a random one, so that repeating the request makes no second event. To be safe across a crash of
// your own program too, give each event a key that you can make again, such as the id of the row it is about.
func (c *Client) Emit(ctx context.Context, e Emission) (Accepted, error) {
	e.withKey()
	r := newRequest(http.MethodPost, "/events")
	r.body, r.safe = e, true
	return answer[Accepted](ctx, c, r)
}

func (e *Emission) withKey() {
	if e.IdempotencyKey == nil || *e.IdempotencyKey == "" {
		e.IdempotencyKey = new("sdk_" + rand.Text())
	}
}

// What one request of EmitAll holds at most. The API takes 1,000 events and 10 MiB; the rest is room for punctuation.
const (
	maxBatch      = 1000
	maxBatchBytes = 9 << 20
)

// EmitAll emits any number of events, as many at a time as the API takes, each with an idempotency key as in Emit. The
// results follow the order of the events; one that was refused has no ID but a Code, and does not stop the others. On an
// error (the server is away, the key is wrong) the results so far are returned: as many as events were asked about.
func (c *Client) EmitAll(ctx context.Context, events []Emission) ([]ItemResult, error) {
	results := make([]ItemResult, 0, len(events))
	for len(results) < len(events) {
		items, err := nextBatch(events[len(results):])
		if err != nil {
			return results, err
		}
		r := newRequest(http.MethodPost, "/events/batch")
		r.body, r.safe = map[string]any{"events": items}, true
		got, err := answer[BatchResult](ctx, c, r)
		if err != nil {
			return results, err
		}
		if len(got.Results) != len(items) {
			return results, errors.New("posthorn: the answer to a batch has another number of results than it has events")
		}
		results = append(results, got.Results...)
	}
	return results, nil
}

// nextBatch encodes as many events as fit into one request, at least one.
func nextBatch(events []Emission) ([]json.RawMessage, error) {
	var items []json.RawMessage
	size := 0
	for _, e := range events {
		e.withKey()
		r := request{body: e}
		item, err := r.encode()
		if err != nil {
			return nil, err
		}
		size += len(item)
		if len(items) == maxBatch || len(items) > 0 && size > maxBatchBytes {
			break
		}
		items = append(items, item)
	}
	return items, nil
}
