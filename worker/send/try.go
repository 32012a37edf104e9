package send

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/show"
	"posthorn/domain/transform"
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
// nowhere, signed as deliveries are. Without secrets a new one signs. The settings are those that Check returned.
func (ts *Tester) Test(ctx context.Context, f endpoints.Facts) ([]show.ConnectionStep, error) {
	select {
	case ts.slots <- struct{}{}:
		defer func() { <-ts.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h := newHTTPTransport(ts.guard)
	defer h.close()
	d, err := testDestination(f, h)
	if err != nil {
		return nil, err
	}
	to := d.to.(*httpAddress)
	c := show.Connected{
		Timeout:  d.timeout,
		Tokens:   f.Settings.Auth.Tokens(),
		Encrypt:  !to.plain,
		Proxied:  f.Proxy != nil,
		Resolves: f.Proxy != nil && f.Proxy.ResolveNames,
	}
	_, err = netip.ParseAddr(to.url.Hostname())
	c.Literal = err == nil
	h.testDial(ctx, d, &c)
	if c.Dial.Failure == delivery.FailNone {
		h.testRequest(ctx, d, f.Bot, &c)
	}
	return show.NewConnectionSteps(c), ctx.Err()
}

// testDestination is an endpoint that is possibly not saved yet.
func testDestination(f endpoints.Facts, h *httpTransport) (*Destination, error) {
	if f.Endpoint == "" {
		f.Endpoint = "ep_test"
	}
	if len(f.Secrets) == 0 {
		var r endpoint.SecretRequest
		_, _ = rand.Read(r.Random[:]) // never fails (crypto/rand)
		own, err := r.Secret(f.Settings.Wire(), false)
		if err != nil {
			return nil, err
		}
		f.Secrets = []endpoints.Secret{{Text: own.Text}}
	}
	d, err := newDestination(f, h)
	if err != nil {
		return nil, err
	}
	d.timeout = min(d.timeout, testTimeout)
	if x := f.Settings.Transformation; x != nil {
		d.transformations = transform.Versions{{From: 1, T: x}}
	}
	return d, nil
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
	if c.Proxied {
		if c.Proxy = micros(int32(p.reached.Load()) - a.DNS); c.Proxy <= 0 {
			c.Proxy = c.Phases.Connect // it failed
		}
		c.Phases.Connect = max(c.Phases.Connect-c.Proxy, 0)
	}
}

func micros(n int32) time.Duration { return time.Duration(n) * time.Microsecond }

// testRequest requests a token if need be, and sends a test event.
func (h *httpTransport) testRequest(ctx context.Context, d *Destination, bot *httpsig.Bot, c *show.Connected) {
	if tokens := d.to.(*httpAddress).tokens; tokens != nil {
		began := time.Now()
		_, err := tokens.token(ctx)
		if c.TokenTook = time.Since(began); err != nil {
			c.TokenError = err.Error()
			return
		}
	}
	s := &Sender{now: time.Now}
	s.SetBot(bot)
	r := s.ask(d, db.NewID(), endpoint.TestType, testData(d), 1, d.transformations != nil)
	a := &queue.Attempt{}
	began := time.Now()
	response, answer := h.challenge(ctx, d, r, challenge{mode: "simple"}, a)
	c.Sent, c.Response, c.RequestTook, c.ResponseError = true, response, time.Since(began), a.Error
	c.Answer = diagnosis.Response{URL: d.to.(*httpAddress).url.String(), Headers: delivery.HeaderText(answer), Body: a.ResponseExcerpt}
	if c.Response.Stale && c.Response.Status == http.StatusUnauthorized {
		c.Response.Stale = false // the token was new
	}
}
