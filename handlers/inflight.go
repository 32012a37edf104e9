package handlers

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Bodies bounds the bytes of request bodies in memory, from their arrival until their request ends. Strangers, whose
// requests have neither a key nor a session, have bounds of their own: they take nothing from the others.
type Bodies struct {
	Process   int64 // of all requests with a key or a session together; 0 is defaultBodies.Process
	Sender    int64 // of one tenant, platform key, or person; 0 is defaultBodies.Sender
	Anonymous int64 // of all strangers together; 0 is defaultBodies.Anonymous
	Network   int64 // of the strangers of one network; 0 is defaultBodies.Network
}

// defaultBodies hold 25 of the largest batches, six of them from one tenant, and 2,000 forms of strangers, 250 of them
// from one network.
var defaultBodies = Bodies{Process: 256 << 20, Sender: 64 << 20, Anonymous: 64 << 20, Network: 8 << 20}

// anonymousCost is what a stranger's body counts before a byte of it has arrived: its connection takes memory too.
const anonymousCost = 32 << 10

var (
	errBodies = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "bodies_in_flight",
		RetryAfter: 2,
		Detail:     "This server has reached its memory limit for request bodies. Wait for the time in Retry-After, then send the request again.",
	}
	errSenderBodies = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "bodies_in_flight",
		RetryAfter: 2,
		Detail:     "Your concurrent requests have reached the memory limit for one sender. Send fewer requests at a time, or smaller batches.",
	}
	// ErrNetwork is for a stranger whose network has too many requests in flight.
	ErrNetwork = &fault.Error{
		Kind:       fault.Limited,
		Code:       "network_busy",
		RetryAfter: 5,
		Detail:     "Too many requests without a key or a session are in flight from your network. Wait a few seconds, then try again.",
	}
)

// sender is who sends a body: a tenant, a platform key, a signed-in person, a portal link, or a stranger's network.
type sender = id.UUID

func newBodies(b Bodies) (known, anonymous *Shares) {
	known = NewShares(
		Share{Limit: or(b.Process, defaultBodies.Process), Err: errBodies},
		Share{Limit: or(b.Sender, defaultBodies.Sender), Err: errSenderBodies})
	anonymous = NewShares(
		Share{Limit: or(b.Anonymous, defaultBodies.Anonymous), Err: errBodies},
		Share{Limit: or(b.Network, defaultBodies.Network), Err: ErrNetwork})
	anonymous.Scarce = scarceShare
	return known, anonymous
}

func or(n, fallback int64) int64 {
	if n > 0 {
		return n
	}
	return fallback
}

// countedBody is a request's body whose bytes are counted as they arrive.
type countedBody struct {
	io.ReadCloser
	in   *Shares
	who  sender
	held int64
	done bool // read to its end
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if over := b.in.Hold(b.who, int64(n)); over != nil {
			return 0, over
		}
		b.held += int64(n)
	}
	b.done = b.done || err == io.EOF
	return n, err
}

func (b *countedBody) release() {
	if b.held > 0 {
		b.in.Release(b.who, b.held)
		b.held = 0
	}
}

// count applies the limits to the request's body. The result is nil if there is no body, or if it is counted already.
func (k *Kit) count(c *Call) (*countedBody, error) {
	if c.Request.Body == nil || c.Request.ContentLength == 0 {
		return nil, nil
	}
	if _, counted := c.Request.Body.(*arrivedBody); counted {
		return nil, nil
	}
	body := &countedBody{ReadCloser: c.Request.Body, in: k.bodies, who: c.sender()}
	if body.who.IsZero() {
		if err := k.countAnonymous(c.Writer, body, c.Actor.Address); err != nil {
			return nil, err
		}
	}
	c.Request.Body = body
	return body, nil
}

// countAnonymous counts a body for its sender's network. A body that is rejected is not waited for.
func (k *Kit) countAnonymous(w http.ResponseWriter, body *countedBody, address string) error {
	body.in, body.who = k.anonymous, Network(address)
	if err := body.in.Hold(body.who, anonymousCost); err != nil {
		w.Header().Set("Connection", "close")
		return err
	}
	body.held = anonymousCost
	return nil
}

// sender says who sends the request. A tenant's keys count together, because it can create as many as it likes. Zero is
// a stranger.
func (c *Call) sender() sender {
	switch a := &c.Actor; {
	case !a.Key.IsZero() && !a.Platform && !a.Tenant.IsZero():
		return a.Tenant
	case !a.Key.IsZero():
		return a.Key
	case !a.Operator.ID.IsZero():
		return a.Operator.ID
	case a.Portal != nil:
		return a.Portal.ID
	}
	return c.Actor.Person.ID
}

// hurry gives a sender whose request is rejected, or handled without its body, a short time to finish the body. The
// server reads what is left of it before it responds, and closes the connection if the body does not end in time.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		// a writer that can set no deadline is no connection, as in tests
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(discardTime))
	}
}

// arrivedBody is a body that has arrived whole and is counted.
type arrivedBody struct{ bytes.Reader }

func (*arrivedBody) Close() error { return nil }

func newArrived(text []byte) *arrivedBody {
	b := &arrivedBody{}
	b.Reset(text)
	return b
}

// Arrive reads the whole body of a request into memory, before anything is taken for the request that others need. The
// bytes count as those of a sender; the zero id is a stranger, who counts by network. The returned function releases
// them. most bounds the body, in bytes.
func (k *Kit) Arrive(w http.ResponseWriter, r *http.Request, who id.UUID, most int64) (release func(), err error) {
	body := &countedBody{ReadCloser: r.Body, in: k.bodies, who: who}
	if _, arrived := r.Body.(*arrivedBody); arrived || r.Body == nil || r.Body == http.NoBody {
		return func() {}, nil
	}
	if who.IsZero() {
		if err := k.countAnonymous(w, body, k.proxies.client(r)); err != nil {
			return nil, err
		}
	}
	text, err := readBody(w, r, body, most)
	if err != nil {
		body.release()
		return nil, err
	}
	// The deadline was for the body. The response can be a stream.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body, r.ContentLength, r.TransferEncoding = newArrived(text), int64(len(text)), nil
	return body.release, nil
}
