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
	return result[Accepted](ctx, c, r)
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

// RejectedError says that the server rejected some events of EmitAll and stored all others.
type RejectedError struct {
	Total  int            // events that were sent
	Events []RejectedItem // those that were rejected, in their order
}

// RejectedItem is one event that was rejected: its place in the list that was emitted, and why.
type RejectedItem struct {
	Index int
	Err   *Error
}

// Error is one line for a log: how many events were rejected, and why the first one was.
func (e *RejectedError) Error() string {
	first := e.Events[0]
	return fmt.Sprintf("posthorn: %d of %d events were rejected; the first has the index %d: %s: %s",
		len(e.Events), e.Total, first.Index, first.Err.Code, first.Err.Detail)
}

// String is one line for a log: the id of a stored event, or why the event was rejected.
func (r ItemResult) String() string {
	if r.ID == nil {
		return fmt.Sprintf("%d %s: %s", r.Status, orEmpty(r.Code), orEmpty(r.Detail))
	}
	text := fmt.Sprintf("%d %s to %d endpoints", r.Status, *r.ID, orEmpty(r.Deliveries))
	if orEmpty(r.Replayed) {
		text += ", emitted before"
	}
	for _, w := range orEmpty(r.Warnings) {
		text += fmt.Sprintf(", warning: %s: %s", w.Field, w.Detail)
	}
	return text
}

func orEmpty[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// EmitAll emits any number of events, in batches of the API's maximum, each with an idempotency key as in Emit. The
// results follow the order of the events. A rejected event does not stop the others: it has a Code instead of an ID,
// and the error is a *RejectedError along with the complete results. On any other error (the server is unavailable, the
// key is wrong) it returns the results so far, one for each event of the completed batches.
func (c *Client) EmitAll(ctx context.Context, events []Emission) ([]ItemResult, error) {
	results := make([]ItemResult, 0, len(events))
	for len(results) < len(events) {
		items, err := nextBatch(events[len(results):])
		if err != nil {
			return results, err
		}
		r := newRequest(http.MethodPost, "/events/batch")
		r.body, r.safe = map[string]any{"events": items}, true
		got, err := result[BatchResult](ctx, c, r)
		if err != nil {
			return results, err
		}
		if len(got.Results) != len(items) {
			return results, errors.New("posthorn: the response to a batch has another number of results than it has events")
		}
		results = append(results, got.Results...)
	}
	if rejected := rejections(results); len(rejected) > 0 {
		return results, &RejectedError{Total: len(results), Events: rejected}
	}
	return results, nil
}

func rejections(results []ItemResult) (rejected []RejectedItem) {
	for i, r := range results {
		if r.ID == nil {
			rejected = append(rejected, RejectedItem{
				Index: i,
				Err: &Error{
					Status: r.Status,
					Code:   orEmpty(r.Code),
					Title:  http.StatusText(r.Status),
					Detail: orEmpty(r.Detail),
					Fields: orEmpty(r.Errors),
				},
			})
		}
	}
	return rejected
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
