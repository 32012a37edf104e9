package endpoint

import (
	"fmt"
	"mime"
	"strings"
	"time"

	"posthorn/domain/signature"
)

// The bounds of batches, and what they are where an endpoint doesn't say.
const (
	MaxBatchEvents = 1000
	MaxBatchWait   = 60_000 // milliseconds
	MinBatchBytes  = 1 << 10
	MaxBatchBytes  = 8 << 20

	DefaultBatchWait  = 1000
	DefaultBatchBytes = 1 << 20

	DefaultObjectEvents = MaxBatchEvents
	DefaultObjectWait   = MaxBatchWait
	DefaultObjectBytes  = MaxBatchBytes
)

// Batch is how many events one request has at most.
type Batch struct {
	Events int
	Bytes  int           // of the body; an event that is longer has a request of its own
	Wait   time.Duration // for more events, counted from the first
}

// Batch is how the endpoint's events share requests; nil: each has its own. Those of a bucket always do: an object for
// each event is what nobody can read later.
func (s Settings) Batch() *Batch {
	b := &Batch{Bytes: DefaultBatchBytes, Wait: DefaultBatchWait * time.Millisecond}
	switch {
	case s.Kind == S3:
		b = &Batch{Events: DefaultObjectEvents, Bytes: DefaultObjectBytes, Wait: DefaultObjectWait * time.Millisecond}
	case s.BatchEvents == nil:
		return nil
	}
	if s.BatchEvents != nil {
		b.Events = *s.BatchEvents
	}
	if s.BatchWait != nil {
		b.Wait = time.Duration(*s.BatchWait) * time.Millisecond
	}
	if s.BatchBytes != nil {
		b.Bytes = *s.BatchBytes
	}
	return b
}

// BatchStart is the content type with which a batch for an endpoint of a kind starts (signature.AppendItem).
func (k Kind) BatchStart() string {
	if k == S3 {
		return signature.LinesType
	}
	return ""
}

// Batches reports whether an endpoint of a kind can take several events in one request.
func (k Kind) Batches() bool { return k == HTTP || k == Inbox || k == S3 }

// batches checks whether the endpoint's events can share a request, which is JSON and has one set of headers.
func (c *collector) batches(s Settings) {
	if s.Batch() == nil {
		return
	}
	if !s.Kind.Batches() {
		c.refuse("batch_max_events", "batch_unwanted", fmt.Sprintf(
			"An endpoint of the kind %s takes each event alone. Leave batch_max_events out.", s.Kind))
		return
	}
	if t := s.Transformation; t != nil {
		kind, _, _ := mime.ParseMediaType(t.ContentType)
		switch {
		case len(t.Headers) > 0:
			c.refuse("batch_max_events", "batch_unwanted",
				"The transformation makes headers of each event, but a batch has one set of headers. Remove transformation.headers, or set batch_max_events to null.")
		case kind != "" && kind != "application/json" && !strings.HasSuffix(kind, "+json"):
			c.refuse("batch_max_events", "batch_unwanted", fmt.Sprintf(
				"The transformation makes %s, but a batch is an array of JSON. Make JSON of each event, or set batch_max_events to null.", kind))
		}
	}
}
