package send

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

// Tester tests connections to receivers. It is safe for concurrent use.
type Tester struct {
	guard *guard
	slots chan struct{}
}

const (
	maxTests    = 16               // concurrent tests of a process
	testTimeout = 10 * time.Second // of each request of a test, at most
)

// NewTester returns a tester that connects only to addresses that the policy allows.
func NewTester(policy egress.Policy) *Tester {
	return &Tester{guard: newGuard(policy), slots: make(chan struct{}, maxTests)}
}

// Test connects to the receiver of an HTTP endpoint step by step, on new connections and with a new access token: it
// resolves the name, connects, makes the TLS session, requests a token, and sends a test event that is recorded
// nowhere. secret signs that event; empty: a new one does. The settings are those that Check returned.
func (ts *Tester) Test(ctx context.Context, settings endpoint.Settings, secret string) ([]show.ConnectionStep, error) {
	select {
	case ts.slots <- struct{}{}:
		defer func() { <-ts.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := newHTTPTransport(ts.guard)
	defer h.close()
	to, err := h.configure(settings)
	if err != nil {
		return nil, err
	}
	d, err := testDestination(settings, to.(*httpAddress), secret)
	if err != nil {
		return nil, err
	}
	c := show.Connected{Timeout: d.timeout, Tokens: settings.Auth.Tokens(), Encrypt: !to.(*httpAddress).plain}
	_, err = netip.ParseAddr(to.(*httpAddress).url.Hostname())
	c.Literal = err == nil
	h.testDial(ctx, d, &c)
	if c.Dial.Failure == delivery.FailNone {
		h.testRequest(ctx, d, &c)
	}
	return show.NewConnectionSteps(c), ctx.Err()
}

// testDestination is an endpoint that is possibly not saved yet.
func testDestination(s endpoint.Settings, to *httpAddress, secret string) (*Destination, error) {
	wire := s.Wire()
	if secret == "" {
		var r endpoint.SecretRequest
		_, _ = rand.Read(r.Random[:]) // never fails (crypto/rand)
		own, err := r.Secret(wire, false)
		if err != nil {
			return nil, err
		}
		secret = own.Text
	}
	key, err := wire.ParseKey(secret)
	if err != nil {
		return nil, err
	}
	d := &Destination{
		Endpoint:  "ep_test",
		Masked:    egress.Mask(s.URL),
		kind:      endpoint.HTTP,
		to:        to,
		typeField: wire.Field(),
		headers:   fixedHeaders(s),
		timeout:   min(time.Duration(s.TimeoutSeconds)*time.Second, testTimeout),
		expires:   []time.Time{{}},
		signing: signature.Signing{
			Format:   s.Format,
			Prefix:   s.Prefix,
			Rotation: s.Rotation,
			Shape:    s.Shape,
			Keys:     []signature.Key{key},
		},
	}
	d.signing.Prepare()
	return d, d.signing.Validate()
}

// testDial resolves, connects and makes the TLS session, without a request.
func (h *httpTransport) testDial(ctx context.Context, d *Destination, c *show.Connected) {
	to := d.to.(*httpAddress)
	to.once.Do(to.prepare)
	p := &phases{began: time.Now(), plain: to.plain}
	conn, err := h.small.dial(ctx, to, p.began.Add(d.timeout), p)
	if err == nil {
		_ = conn.Close()
	} else {
		c.Dial.Failure, c.Error = classify(err, p)
	}
	a := &queue.Attempt{}
	p.fill(a)
	total := time.Duration(a.Total) * time.Microsecond
	c.Phases = show.Phases{DNS: micros(a.DNS), Connect: micros(a.Connect), TLS: micros(a.TLS), Total: total}
	if c.Phases.Connect == 0 && a.DNS < a.Total {
		c.Phases.Connect = micros(a.Total - a.DNS) // it failed
	}
}

func micros(n int32) time.Duration { return time.Duration(n) * time.Microsecond }

// testRequest requests a token if need be, and sends a test event.
func (h *httpTransport) testRequest(ctx context.Context, d *Destination, c *show.Connected) {
	if tokens := d.to.(*httpAddress).tokens; tokens != nil {
		began := time.Now()
		_, err := tokens.token(ctx)
		if c.TokenTook = time.Since(began); err != nil {
			c.TokenError = err.Error()
			return
		}
	}
	s := &Sender{now: time.Now}
	r := s.ask(d, db.NewID(), endpoint.TestType, json.RawMessage(`{"test":true}`), 1)
	a := &queue.Attempt{}
	began := time.Now()
	response, answer := h.challenge(ctx, d, r, challenge{mode: "simple"}, a)
	c.Sent, c.Response, c.RequestTook, c.ResponseError = true, response, time.Since(began), a.Error
	c.Answer = diagnosis.Response{URL: d.to.(*httpAddress).url.String(), Headers: delivery.HeaderText(answer), Body: a.ResponseExcerpt}
	if c.Response.Stale && c.Response.Status == http.StatusUnauthorized {
		c.Response.Stale = false // the token was new
	}
}
