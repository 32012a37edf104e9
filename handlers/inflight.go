package handlers

import (
	"io"
	"sync"
	"sync/atomic"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Bodies bounds the bytes of request bodies in memory, from their arrival until their request ends.
type Bodies struct {
	Process int64 // of all requests together; 0 is defaultBodies.Process
	Sender  int64 // of one tenant, platform key or person; 0 is defaultBodies.Sender
}

// defaultBodies hold 25 of the largest batches, six of them from one tenant.
var defaultBodies = Bodies{Process: 256 << 20, Sender: 64 << 20}

var (
	errBodies = &fault.Error{
		Kind: fault.Unavailable, Code: "bodies_in_flight", RetryAfter: 2,
		Detail: "This server has reached its memory limit for request bodies. Wait for the time in Retry-After, then send the request again.",
	}
	errSenderBodies = &fault.Error{
		Kind: fault.Unavailable, Code: "bodies_in_flight", RetryAfter: 2,
		Detail: "Your concurrent requests have reached the memory limit for one sender. Send fewer requests at a time, or smaller batches.",
	}
)

// inFlight counts the bytes of bodies by sender. A sender without bodies has no entry.
type inFlight struct {
	bounds Bodies
	total  atomic.Int64

	mu      sync.Mutex
	senders map[sender]int64
}

// sender is who sends a body: a tenant, a platform key, or a signed-in person. All others share the zero id.
type sender = id.UUID

func newInFlight(bounds Bodies) *inFlight {
	if bounds.Process <= 0 {
		bounds.Process = defaultBodies.Process
	}
	if bounds.Sender <= 0 {
		bounds.Sender = defaultBodies.Sender
	}
	return &inFlight{bounds: bounds, senders: map[sender]int64{}}
}

// hold counts n more bytes of a sender, or returns which limit they would exceed.
func (f *inFlight) hold(who sender, n int64) error {
	if f.total.Add(n) > f.bounds.Process {
		f.total.Add(-n)
		return errBodies
	}
	f.mu.Lock()
	held := f.senders[who] + n
	if held <= f.bounds.Sender {
		f.senders[who] = held
	}
	f.mu.Unlock()
	if held > f.bounds.Sender {
		f.total.Add(-n)
		return errSenderBodies
	}
	return nil
}

// release subtracts n bytes of a sender.
func (f *inFlight) release(who sender, n int64) {
	f.total.Add(-n)
	f.mu.Lock()
	if left := f.senders[who] - n; left > 0 {
		f.senders[who] = left
	} else {
		delete(f.senders, who)
	}
	f.mu.Unlock()
}

// countedBody is a request's body whose bytes are counted as they arrive.
type countedBody struct {
	io.ReadCloser
	in   *inFlight
	who  sender
	held int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if over := b.in.hold(b.who, int64(n)); over != nil {
			return 0, over
		}
		b.held += int64(n)
	}
	return n, err
}

// count applies the limits to the request's body. The returned function releases its bytes.
func (k *Kit) count(c *Call) (release func()) {
	if c.Request.Body == nil || c.Request.ContentLength == 0 {
		return func() {}
	}
	body := &countedBody{ReadCloser: c.Request.Body, in: k.bodies, who: c.sender()}
	c.Request.Body = body
	return func() {
		if body.held > 0 {
			k.bodies.release(body.who, body.held)
		}
	}
}

// sender says who sends the request. A tenant's keys count together, because it can create as many as it likes.
func (c *Call) sender() sender {
	switch a := &c.Actor; {
	case !a.Key.IsZero() && !a.Platform && !a.Tenant.IsZero():
		return a.Tenant
	case !a.Key.IsZero():
		return a.Key
	case !a.Operator.ID.IsZero():
		return a.Operator.ID
	}
	return c.Actor.Person.ID
}
