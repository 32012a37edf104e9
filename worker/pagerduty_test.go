package worker

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/transform"
)

// pagerEvent is an event of PagerDuty's Events API v2.
type pagerEvent struct {
	RoutingKey string        `json:"routing_key"`
	Action     string        `json:"event_action"`
	DedupKey   string        `json:"dedup_key"`
	Payload    *pagerPayload `json:"payload"`
	Client     string        `json:"client"`
	ClientURL  string        `json:"client_url"`
	Links      []any         `json:"links"`
	Images     []any         `json:"images"`
}

type pagerPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp"`
	Component string         `json:"component"`
	Group     string         `json:"group"`
	Class     string         `json:"class"`
	Details   map[string]any `json:"custom_details"`
}

// wrong lists what the documentation of the Events API v2 does not permit
// (https://developer.pagerduty.com/docs/send-alert-event).
func (e pagerEvent) wrong() (wrong []string) {
	check := func(ok bool, what string) {
		if !ok {
			wrong = append(wrong, what)
		}
	}
	check(len(e.RoutingKey) == 32, "'routing_key' must be 32 characters")
	check(slices.Contains([]string{"trigger", "acknowledge", "resolve"}, e.Action), "'event_action' is invalid")
	check(len(e.DedupKey) <= 255, "'dedup_key' is too long")
	check(e.Action == "trigger" || e.DedupKey != "", "'dedup_key' is missing")
	check(e.Action != "trigger" || e.Payload != nil, "'payload' is missing")
	if p := e.Payload; p != nil {
		check(p.Summary != "" && len(p.Summary) <= 1024, "'payload.summary' is missing or too long")
		check(p.Source != "", "'payload.source' is missing")
		check(slices.Contains([]string{"critical", "error", "warning", "info"}, p.Severity), "'payload.severity' is invalid")
		_, err := time.Parse(time.RFC3339, p.Timestamp)
		check(p.Timestamp == "" || err == nil, "'payload.timestamp' is invalid")
	}
	return wrong
}

// pager is a local server that speaks the Events API v2 as it is documented: it validates events, and keeps the
// incidents that they open and resolve.
type pager struct {
	*httptest.Server
	mu        sync.Mutex
	events    []pagerEvent
	rejected  []string
	busy      bool            // it responds 429
	refused   int             // while busy
	incidents map[string]bool // by dedup_key: whether it is open
}

const mostPagerBytes = 512 << 10

func newPager(t *testing.T) *pager {
	p := &pager{incidents: map[string]bool{}}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *pager) serve(rw http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	answer := func(status int, body any) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_ = json.NewEncoder(rw).Encode(body)
	}
	refuse := func(status int, why ...string) {
		p.rejected = append(p.rejected, why...)
		answer(status, map[string]any{"status": "invalid event", "message": "Event object is invalid", "errors": why})
	}
	var e pagerEvent
	kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	switch err := json.Unmarshal(body, &e); {
	case p.busy:
		p.refused++
		rw.Header().Set("Retry-After", "1")
		answer(http.StatusTooManyRequests, map[string]any{"status": "throttle exceeded"})
	case req.URL.Path != "/v2/enqueue" || req.Method != http.MethodPost:
		refuse(http.StatusNotFound, req.Method+" "+req.URL.Path)
	case len(body) > mostPagerBytes:
		refuse(http.StatusRequestEntityTooLarge, "the event is too large")
	case kind != "application/json":
		refuse(http.StatusBadRequest, "content type "+kind)
	case err != nil:
		refuse(http.StatusBadRequest, err.Error())
	case len(e.wrong()) > 0:
		refuse(http.StatusBadRequest, e.wrong()...)
	default:
		if e.DedupKey == "" {
			e.DedupKey = strconv.Itoa(len(p.events)) // a trigger without a key opens an incident of its own
		}
		p.events = append(p.events, e)
		switch e.Action {
		case "trigger":
			p.incidents[e.DedupKey] = true
		case "resolve":
			p.incidents[e.DedupKey] = false
		}
		answer(http.StatusAccepted, map[string]any{"status": "success", "message": "Event processed", "dedup_key": e.DedupKey})
	}
}

// is reports how many incidents are open, and how many are resolved.
func (p *pager) is() (open, resolved int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, isOpen := range p.incidents {
		if isOpen {
			open++
		} else {
			resolved++
		}
	}
	return open, resolved
}

// TestAnIncidentAtPagerDutyOpensAndResolves: a worker disables an endpoint, its notice becomes an event, and a channel
// with the preset opens an incident. The alerts of the endpoint are muted after that. Its recovery resolves the
// incident all the same.
func TestAnIncidentAtPagerDutyOpensAndResolves(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	p := newPager(t)
	const key = "0123456789abcdef0123456789abcdef"
	h.endpoint(tenant, p.URL+"/v2/enqueue", func(s *endpoint.Settings) {
		x, err := transform.Parse([]byte(`{"preset":"pagerduty","variables":{"routing_key":"` + key + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		*s = s.ForAlerts("posthorn.endpoint.*")
		s.Transformation = x
	})
	r, well := newFailing(t, http.StatusGone)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.EventTypes = []string{"order.*"} })
	h.worker(true)
	h.run(func(ctx context.Context) error { // as the process does that sends mail
		for ctx.Err() == nil {
			if _, err := accounts.RelayNotices(ctx, h.db, accounts.Links{BaseURL: "https://posthorn.example.com", Keys: h.ring}, 100); err != nil && ctx.Err() == nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	h.emitN(tenant, 1)
	eventually(t, 20*time.Second, "an incident is open", func() bool { open, _ := p.is(); return open == 1 })
	h.exec("UPDATE endpoints SET muted_at = now(), muted_until = now() + interval '1 hour' WHERE id = $1", ep)
	well.Store(true)
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.SetState(t.Context(), q, h.ring, tenant, ep, endpoint.Resume)
		return err
	})
	eventually(t, 20*time.Second, "it is resolved", func() bool { open, resolved := p.is(); return open == 0 && resolved == 1 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) != 2 || len(p.rejected) > 0 {
		t.Fatalf("%d events, rejected: %q", len(p.events), p.rejected)
	}
	opens, ends := p.events[0], p.events[1]
	source := id.Endpoint.Format(ep)
	if opens.Action != "trigger" || ends.Action != "resolve" || opens.DedupKey != ends.DedupKey || opens.DedupKey == "" || opens.RoutingKey != key ||
		opens.Payload.Severity != "critical" || opens.Payload.Source != source || opens.ClientURL != "https://posthorn.example.com/t/"+id.Tenant.Format(tenant)+"/endpoints/"+source {
		t.Errorf("opened by %+v %+v, resolved by %+v", opens, opens.Payload, ends)
	}
}

// TestAnOperatorsIncidentAtPagerDutyOpensAndResolves: a worker disables an endpoint of a tenant. The platform's own
// tenant has a channel with the preset, whose incident opens. It is resolved when the endpoint is active again,
// although PagerDuty takes the request that opens it only after the alert has ended. An event that was emitted in SQL
// and rejected opens another one, by the same look as the console's overview.
func TestAnOperatorsIncidentAtPagerDutyOpensAndResolves(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own, _, err := accounts.EnsurePlatformTenant(t.Context(), h.db, db.Author{Kind: "command"})
	if err != nil {
		t.Fatal(err)
	}
	tenant := h.tenant()
	p := newPager(t)
	p.busy = true
	h.endpoint(own, p.URL+"/v2/enqueue", func(s *endpoint.Settings) {
		x, err := transform.Parse([]byte(`{"preset":"pagerduty","variables":{"routing_key":"0123456789abcdef0123456789abcdef"}}`))
		if err != nil {
			t.Fatal(err)
		}
		*s = s.ForAlerts("posthorn.platform.*")
		s.Transformation, s.RetryPolicy = x, "quick"
	})
	r, well := newFailing(t, http.StatusGone)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.EventTypes = []string{"order.*"} })
	h.worker(true)
	links := accounts.Links{BaseURL: "https://posthorn.example.com", Keys: h.ring}
	h.run(func(ctx context.Context) error { // as the process does that sends mail
		for ctx.Err() == nil {
			if _, err := accounts.MailNotices(ctx, h.db, links, 20); err != nil && ctx.Err() == nil {
				return err
			}
			if err := endpoints.SyncAlerts(ctx, h.db, links, time.Now(), 50); err != nil && ctx.Err() == nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	})
	h.emitN(tenant, 1)
	is := func(busy bool) func() bool {
		return func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.busy = busy
			return p.refused > 0
		}
	}
	eventually(t, 20*time.Second, "an alert was sent", is(true))
	well.Store(true)
	h.as(tenant, func(q *sql.Queries) error {
		_, _, err := endpoints.SetState(t.Context(), q, h.ring, tenant, ep, endpoint.Resume)
		return err
	})
	eventually(t, 20*time.Second, "the alert has ended", func() (ended bool) {
		h.query("SELECT (SELECT count(*) FROM events WHERE tenant_id = $1) = 2", []any{&ended}, own)
		return ended
	})
	is(false)()
	eventually(t, 20*time.Second, "it is resolved", func() bool { open, resolved := p.is(); return open == 0 && resolved == 1 })
	h.exec("INSERT INTO outbox_rejected (tenant_id, id, type, data, code, detail) VALUES ($1, $2, 'a', '{}', 'x', 'y')", tenant, db.NewID())
	eventually(t, 20*time.Second, "what the overview shows opens an incident", func() bool { open, _ := p.is(); return open == 1 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) != 3 || len(p.rejected) > 0 {
		t.Fatalf("%d events, rejected: %q", len(p.events), p.rejected)
	}
	opens, ends, next := p.events[0], p.events[1], p.events[2]
	if opens.Action != "trigger" || ends.Action != "resolve" || opens.DedupKey != ends.DedupKey || opens.Payload.Source != id.Endpoint.Format(ep) ||
		next.Action != "trigger" || next.DedupKey == opens.DedupKey || next.ClientURL != "https://posthorn.example.com/console/outbox" {
		t.Errorf("%+v %+v\n%+v\n%+v %+v", opens, opens.Payload, ends, next, next.Payload)
	}
}
