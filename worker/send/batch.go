package send

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Sent is what came of one of several events in a request.
type Sent struct {
	Result  delivery.Result
	Attempt *queue.Attempt
	Own     bool // the receiver's response names it
	Left    bool // it did not fit, or is behind an event of its key that waits: nothing happened to it
}

// DeliverBatch sends several events in one request and returns what came of each, in their order. The results of the
// events are those of the response, unless it is a 207 that lists others.
func (s *Sender) DeliverBatch(ctx context.Context, to *Destination, events []Message) []Sent {
	name := db.NewID()
	b := batch{request: request{contentType: to.kind.BatchStart()}, to: to, now: name.Time(), sent: make([]Sent, len(events)), ids: make([]string, len(events)), wires: map[int64]string{}}
	b.signing = to.signingAt(b.now)
	for i, m := range events {
		s.add(&b, i, m)
	}
	if b.events == 0 {
		return b.sent
	}
	about := signature.Batch{ID: id.Batch.Format(name), Events: b.events}
	r := &b.request
	r.body, r.message = signature.AppendBatchEnd(r.body, r.contentType), about.Message(r.message, b.now)
	headers := b.signing.Headers(make([]signature.Header, 0, 8), r.message, r.body, signature.Send{At: b.now, Attempt: 1})
	public := s.publicHeaders(to, r.body, r.contentType, headers, b.now)
	shared := queue.Attempt{StartedAt: b.now, URL: to.Masked, Signature: signature.KeptWith(b.signing.Kept(headers), public)}
	r.headers = append(headers, public...)
	result := s.transports[to.kind].deliver(ctx, to, r, &shared)
	b.spread(result, shared, about)
	return b.sent
}

// batch is a request in the making.
type batch struct {
	to      *Destination
	now     time.Time
	signing signature.Signing
	request request
	events  int
	sent    []Sent
	ids     []string         // of the events that are in it, as their bodies have them; empty: it is not in it
	wires   map[int64]string // by the version of the transformation that made an event
	used    []int64          // those versions, of each event
	waits   []string         // keys of events that can't be sent now
	full    bool
}

// add renders an event into the body of a batch, if it fits.
func (s *Sender) add(b *batch, i int, m Message) {
	b.used = append(b.used, 0)
	key := ""
	if m.Event.Key != nil {
		key = *m.Event.Key
	}
	for _, waits := range b.waits {
		b.full = b.full || waits == key && key != ""
	}
	if b.full {
		b.sent[i].Left = true
		return
	}
	var one request
	used, failure, err := s.render(b.to, &one, m, b.signing.Format)
	if failure != delivery.FailNone {
		a := &queue.Attempt{ID: db.NewID(), StartedAt: b.now, URL: b.to.Masked}
		if err != nil {
			a.Error = err.Error()
			b.waits = append(b.waits, key)
		}
		b.sent[i] = Sent{Result: delivery.Result{Failure: failure}, Attempt: a}
		return
	}
	if b.events > 0 && len(b.request.body)+len(one.body)+2 > b.to.batch.Bytes {
		b.full, b.sent[i].Left = true, true
		return
	}
	if b.events == 0 {
		b.request.message = one.message
	}
	b.request.method = one.method
	b.request.body, b.request.contentType = signature.AppendItem(b.request.body, b.request.contentType, one.body, one.contentType)
	if b.events++; b.to.kind == endpoint.S3 {
		b.request.parts = append(b.request.parts, m.Delivery)
	}
	b.used[i], b.ids[i] = used, one.message.EventID
}

// spread gives each event of the request its result and its record.
func (b *batch) spread(of delivery.Result, shared queue.Attempt, about signature.Batch) {
	var results map[string]int
	if of.Status == http.StatusMultiStatus && of.Failure == delivery.FailNone {
		var err error
		if results, err = delivery.ReadResults(shared.ResponseExcerpt); err != nil {
			of.Failure, shared.Error = delivery.FailProtocol, err.Error()
		}
	}
	shared.ResponseExcerpt = shared.ResponseExcerpt[:min(len(shared.ResponseExcerpt), delivery.MaxExcerpt)]
	for i, name := range b.ids {
		if name == "" {
			continue
		}
		a, result := shared, of
		a.ID, a.Format = db.NewID(), b.wire(b.used[i], about)
		if results != nil {
			if result.Status = http.StatusOK; results[name] != 0 {
				result.Status = results[name]
			}
		}
		b.sent[i] = Sent{Result: result, Attempt: &a, Own: results != nil}
	}
}

// wire is how an event of the request was rendered, as stored with its attempt.
func (b *batch) wire(transformed int64, about signature.Batch) string {
	text := b.wires[transformed]
	if text == "" {
		w := b.to.shape
		w.Transformed, w.Batch = transformed, &about
		text = w.String()
		b.wires[transformed] = text
	}
	return text
}

// alone makes a batch of a body that is no event's.
func (r *request) alone(start string) {
	body, kind := signature.AppendItem(nil, start, r.body, r.contentType)
	r.body, r.contentType = signature.AppendBatchEnd(body, kind), kind
}
