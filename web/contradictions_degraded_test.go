package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/client"
	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/web/cli"
)

// tried is an endpoint with attempts, and its newest delivery.
type tried struct {
	uuid, delivery    id.UUID
	id, host          string
	failed, attempts  int // of the last 24 hours
	degraded, success bool
}

// insert writes an endpoint whose attempts are partly in the roll-ups, and partly in the ledger.
func (e *tried) insert(ctx context.Context, c *pgx.Conn, tenant id.UUID, minutesAgo int) error {
	e.uuid, e.delivery = db.NewID(), db.NewID()
	e.id = id.Endpoint.Format(e.uuid)
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at)
		VALUES ($1, $2, $3, '{*}', 'active', now() - interval '3 hours', now() - interval '3 hours')`, tenant, e.uuid, "https://"+e.host+"/")
	b.Queue("INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($2, $1, false)", tenant, e.uuid)
	b.Queue("INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.paid', '{}', 1)", tenant,
		e.delivery.Time(), e.delivery)
	b.Queue(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, attempts, last_status, settled_at)
		VALUES ($1, $2, $3, $3, $4, 'order.paid', 2, 1, 200, now())`, tenant, e.delivery.Time(), e.delivery, e.uuid)
	minute := fmt.Sprintf("date_trunc('minute', now() - interval '%d minutes')", minutesAgo)
	for kind, n := range map[int]int{2*16 + 5: e.failed, 5: e.attempts - e.failed} {
		if n == 0 {
			continue
		}
		b.Queue(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
			VALUES ($1, $2, 60, `+minute+`, 'order.paid', $3, $4, 0)`, tenant, e.uuid, kind, n/2)
		b.Queue(`INSERT INTO ledger (stat_endpoint, stat_type, stat_minute, stat_kind, stat_count, stat_us, stat_least, stat_most)
			VALUES (ARRAY[$1::uuid], '{order.paid}', ARRAY[(extract(epoch FROM `+minute+`) / 60)::int], ARRAY[$2::smallint], ARRAY[$3::int], '{0}', '{0}', '{0}')`,
			e.uuid, kind, n-n/2)
	}
	return c.SendBatch(ctx, b).Close()
}

// An endpoint that is sent to and fails too often is degraded on every surface, and one that has recovered on none.
func TestNoSurfaceContradictsAnotherAboutDegradedEndpoints(t *testing.T) {
	t.Parallel()
	s := scene{youngDay: newYoungDay(t)}
	s.signIn()
	rejects := &tried{host: "rejects.example.com", failed: 24, attempts: 24, degraded: true}
	partly := &tried{host: "partly.example.com", failed: 3, attempts: 20, degraded: true, success: true}
	was := &tried{host: "was.example.com", failed: 12, attempts: 14, success: true}
	well := &tried{host: "well.example.com", attempts: 9, success: true}
	all := []*tried{rejects, partly, was, well}
	s.connect(func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, liveWorker); err != nil {
			return err
		}
		for _, e := range all {
			ago := 2
			if e == was {
				ago = 40
			}
			if err := e.insert(ctx, c, s.tenant, ago); err != nil {
				return err
			}
		}
		_, err := c.Exec(ctx, `INSERT INTO endpoint_health (tenant_id, endpoint_id, last_failure_at, last_success_at, closed_at)
			VALUES ($1, $2, now() - interval '40 minutes', now() - interval '20 minutes', now() - interval '20 minutes')`, s.tenant, was.uuid)
		return err
	})
	for _, e := range all {
		s.degradedInAPI(e)
		s.degradedOnPages(e)
	}
	s.degradedFilters(all)
	s.recovered(was)
}

// Whoever looks at an endpoint that answers every delivery with 422 sees that nothing arrives, although none of it
// counts against the endpoint's circuit breaker.
func TestAnEndpointThatRejectsEverythingIsDegraded(t *testing.T) {
	t.Parallel()
	s := scene{youngDay: newYoungDayOf(t, Parts{Web: true, Worker: true}, "POSTHORN_EGRESS_ALLOW=127.0.0.1")}
	s.signIn()
	receiver := echo(t, func() int { return http.StatusUnprocessableEntity })
	c := caller{t, s.program.URL(), s.key}
	var e client.Endpoint
	c.do("POST", "/api/v1/endpoints", `{"url":"`+receiver.URL+`"}`, http.StatusCreated, &e)
	endpoint := "/api/v1/endpoints/" + e.ID
	eventually(t, "the endpoint is verified", func() bool {
		c.do("GET", endpoint, "", http.StatusOK, &e)
		return e.Status == client.EndpointStatusActive
	})
	const sent = 24
	for range sent {
		c.do("POST", "/api/v1/events", `{"type":"order.paid","data":{}}`, http.StatusAccepted, nil)
	}
	var page client.DeliveryPage
	eventually(t, "every delivery has failed", func() bool {
		c.do("GET", "/api/v1/deliveries?status=failed&limit=100", "", http.StatusOK, &page)
		return len(page.Data) == sent
	})
	at, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	made := &tried{id: e.ID, host: at.Host, failed: sent, attempts: sent, degraded: true}
	if made.delivery, err = id.Delivery.Parse(page.Data[0].ID); err != nil {
		t.Fatal(err)
	}
	s.degradedInAPI(made)
	s.degradedOnPages(made)
}

// says is what the condition means.
func (e *tried) says() string {
	if e.degraded {
		return fmt.Sprintf("Deliveries are sent, but %d of %d attempts failed in the last 24 hours.", e.failed, e.attempts)
	}
	return "Deliveries are sent."
}

func (e *tried) word() string {
	if e.degraded {
		return "degraded"
	}
	return "active"
}

func (s scene) degradedInAPI(e *tried) {
	s.t.Helper()
	var got client.Endpoint
	s.json(&situation{key: s.key}, "/api/v1/endpoints/"+e.id, &got)
	if got.Condition.State != client.EndpointStateActive || got.Condition.Degraded != e.degraded || got.Condition.Detail != e.says() {
		s.t.Errorf("API, %s: %s, degraded %t: %s", e.host, got.Condition.State, got.Condition.Degraded, got.Condition.Detail)
	}
	if _, err := got.Health.LastSuccessAt.Get(); e.success != (err == nil) {
		s.t.Errorf("API, %s: last success at %v", e.host, got.Health.LastSuccessAt)
	}
	var stdout, stderr bytes.Buffer
	a := &app{
		program: "posthorn",
		args:    []string{"endpoints", "get", e.id},
		stdin:   strings.NewReader(""),
		stdout:  &stdout,
		stderr:  &stderr,
		environ: []string{"POSTHORN_URL=" + s.program.URL(), "POSTHORN_API_KEY=" + s.key, "HOME=" + s.t.TempDir()},
	}
	if code := a.run(s.t.Context()); code != cli.ExitOK {
		s.t.Errorf("exit code %d: %s", code, stderr.String())
	}
	said := strings.Join(strings.Fields(stdout.String()), " ")
	for _, part := range []string{"State " + e.word(), "Means " + e.says()} {
		if !strings.Contains(said, part) {
			s.t.Errorf("command line, %s, does not say %q: %s", e.host, part, said)
		}
	}
	if strings.Contains(said, "Last success") != e.success {
		s.t.Errorf("command line, %s: %s", e.host, said)
	}
}

func (s scene) degradedOnPages(e *tried) {
	s.t.Helper()
	tenant := s.last["tenant_id"]
	page := s.text("/t/" + tenant + "/endpoints/" + e.id)
	want := []string{e.word()}
	if e.degraded {
		want = append(want, "Endpoint degraded", e.says())
	}
	if !e.success {
		want = append(want, fmt.Sprintf("Failures in a row %d", e.failed), "Last success None no attempt has succeeded yet")
	}
	texts := map[string]string{
		"endpoint":                   page,
		"list of endpoints":          s.row("/t/"+tenant+"/endpoints", e.host),
		"console, tenant":            s.row("/console/tenants/"+tenant, e.host),
		"console, endpoints of host": s.row("/console/health/endpoints?host="+e.host, e.host),
		"console, delivery":          s.text("/console/tenants/" + tenant + "/deliveries/" + id.Delivery.Format(e.delivery)),
		"deliveries of the endpoint": s.text("/t/" + tenant + "/deliveries?endpoint=" + e.id),
	}
	for where, text := range texts {
		lower := strings.ToLower(text)
		if !strings.Contains(lower, e.word()) || strings.Contains(lower, "degraded") != e.degraded {
			s.t.Errorf("%s, %s, is not %s: %.2000s", where, e.host, e.word(), text)
		}
	}
	for _, part := range want {
		if !strings.Contains(strings.ToLower(page), strings.ToLower(part)) {
			s.t.Errorf("endpoint, %s, does not say %q: %.2000s", e.host, part, page)
		}
	}
}

// degradedFilters checks that a degraded endpoint is found by that word, and as an active one too.
func (s scene) degradedFilters(all []*tried) {
	s.t.Helper()
	for word, finds := range map[string]func(*tried) bool{
		"degraded": func(e *tried) bool { return e.degraded },
		"active":   func(*tried) bool { return true },
		"failing":  func(*tried) bool { return false },
	} {
		var page client.EndpointPage
		s.json(&situation{key: s.key}, "/api/v1/endpoints?condition="+word, &page)
		list := s.text("/t/" + s.last["tenant_id"] + "/endpoints?status=" + word)
		for _, e := range all {
			inAPI := slices.ContainsFunc(page.Data, func(one client.Endpoint) bool { return one.ID == e.id })
			if onPage := strings.Contains(list, e.host); inAPI != finds(e) || onPage != finds(e) {
				s.t.Errorf("%s is found as %s: by the API %t, on the page %t", e.host, word, inAPI, onPage)
			}
		}
	}
}

// recovered checks that what is over is told as over.
func (s scene) recovered(e *tried) {
	s.t.Helper()
	var h client.Health
	s.json(&situation{key: s.key}, "/api/v1/health", &h)
	if len(h.Recovered) != 1 || h.Recovered[0].EndpointID != e.id {
		s.t.Errorf("health: recovered are %+v", h.Recovered)
	}
	if slices.ContainsFunc(h.Alerts, func(a client.HealthAlert) bool { return a.EndpointID == e.id }) {
		s.t.Errorf("health: %s has an alert: %+v", e.host, h.Alerts)
	}
	overview := s.text("/t/" + s.last["tenant_id"])
	if want := e.host + "/ recovered: 12 of 14 attempts failed in the last 24 hours."; !strings.Contains(overview, want) {
		s.t.Errorf("the overview does not say %q: %.2000s", want, overview)
	}
}
