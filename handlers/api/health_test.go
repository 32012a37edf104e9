package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/handlers/api"
)

// bucket is the time that a roll-up is of.
type bucket struct {
	width int // seconds
	ago   time.Duration
}

// rollUp stores what a fold leaves: n attempts of a kind.
func (w *world) rollUp(tn tenant, ep string, b bucket, eventType string, kind, n int) {
	w.t.Helper()
	w.SQL(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
		VALUES ($1, $2, $3, date_bin(make_interval(secs => $3::int), now() - $4 * interval '1 second', '2000-01-01Z'), $5, $6::int, $7::int, $7::int * 1000)`,
		tn.uuid.String(), w.uuid(id.Endpoint, ep), b.width, b.ago.Seconds(), eventType, kind, n)
	w.longActive(ep)
}

// longActive makes an endpoint active for longer than any attempt is old.
func (w *world) longActive(ep string) {
	w.t.Helper()
	w.SQL("UPDATE endpoints SET status_at = now() - interval '3 days' WHERE id = $1", w.uuid(id.Endpoint, ep))
}

// unfolded stores what the recorder leaves in the ledger.
func (w *world) unfolded(ep, eventType string, kind, n int) {
	w.t.Helper()
	w.SQL(`INSERT INTO ledger (stat_endpoint, stat_type, stat_minute, stat_kind, stat_count, stat_us)
		VALUES (ARRAY[$1::uuid], ARRAY[$2], ARRAY[(extract(epoch FROM now()) / 60)::int - 1], ARRAY[$3::smallint], ARRAY[$4::int], ARRAY[1000])`,
		w.uuid(id.Endpoint, ep), eventType, kind, n)
	w.longActive(ep)
}

const (
	kindOK     = 0*16 + 6
	kindServer = 3*16 + 6
	kindRetry  = 128
)

func (w *world) health(tn tenant) (h api.Health) {
	w.t.Helper()
	w.do("GET", "/api/v1/health", tn.key, nil).want(http.StatusOK).into(&h)
	return h
}

func TestHealthSaysHowThingsAreAndWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	if h := w.health(tn); h.Severity != "ok" || h.Action != "" || h.Day.Attempts != 0 || h.Reason != "No problems detected." {
		t.Errorf("nothing yet: %+v", h)
	}
	good, bad := w.active(tn, nil), w.active(tn, map[string]any{"url": hook + "?token=secret"})
	theirs := w.active(other, nil)
	w.rollUp(tn, good, bucket{3600, 5 * time.Hour}, "order.paid", kindOK, 900)
	w.rollUp(tn, bad, bucket{3600, 5 * time.Hour}, "order.open", kindServer+kindRetry, 60)
	w.rollUp(tn, good, bucket{60, 2 * time.Minute}, "order.paid", kindOK, 20)
	w.rollUp(tn, good, bucket{3600, 30 * time.Hour}, "order.paid", kindServer, 1000) // too long ago
	w.unfolded(bad, "order.open", kindServer, 10)
	w.unfolded(theirs, "order.open", kindServer, 500)
	failed := w.onlyDelivery(other, nil)
	w.settle(failed, 3, 1)
	h := w.health(tn)
	if h.Severity != "critical" || h.Day.Attempts != 990 || h.Day.Succeeded != 920 || h.Hour.Attempts != 30 ||
		h.Hour.Succeeded != 20 ||
		h.RetriesDay != 60 || h.ActiveEndpoints != 2 || h.FailedDeliveriesDay != 0 || h.P50Ms < 50 || h.P50Ms > 100 {
		t.Errorf("%+v", h)
	}
	if p, _ := h.DominantProblem.Get(); p != "server_error" || !strings.Contains(h.Action, "returned server errors") || len(h.Findings) != 2 {
		t.Errorf("%+v", h)
	}
	if len(h.TopEndpoints) != 1 || h.TopEndpoints[0].EndpointID != bad || h.TopEndpoints[0].Failed != 70 ||
		strings.Contains(h.TopEndpoints[0].URL, "secret") {
		t.Errorf("%+v", h.TopEndpoints)
	}
	if len(h.TopTypes) != 1 || h.TopTypes[0].Type != "order.open" || h.TopTypes[0].Attempts != 70 {
		t.Errorf("%+v", h.TopTypes)
	}
	if !h.LastDigestAt.IsNull() {
		t.Errorf("a digest that never was: %v", h.LastDigestAt)
	}
	for _, day := range []string{"2026-01-02", "2026-01-03"} {
		w.SQL("INSERT INTO digests (tenant_id, day, notice_id, created_at) VALUES ($1, $2::date, gen_random_uuid(), $2::date + interval '9 hours')", tn.uuid.String(), day)
		w.SQL("INSERT INTO digests (tenant_id, day, notice_id, created_at) VALUES ($1, $2::date + 7, gen_random_uuid(), now())", other.uuid.String(), day)
	}
	if at, err := w.health(tn).LastDigestAt.Get(); err != nil || time.Time(at).Format(time.DateOnly) != "2026-01-03" {
		t.Errorf("the last digest: %v, %v", at, err)
	}
	w.do("GET", "/api/v1/health?limit=5", tn.key, nil).problem(http.StatusBadRequest, "unknown_parameter", "limit")
}

func TestHealthCountsWhatIsDueAndWhatWasDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	waiting := w.onlyDelivery(tn, nil)
	w.SQL("UPDATE queue SET due_at = now() - interval '20 minutes' WHERE delivery_id = $1", w.uuid(id.Delivery, waiting))
	w.SQL("UPDATE endpoints SET status_at = now() - interval '1 hour'")
	if h := w.health(tn); h.Severity != "critical" || h.Findings[0].Code != "oldest_due" || h.OldestDueSeconds < 1200 ||
		h.OldestDueSeconds > 1260 {
		t.Errorf("due: %+v", h)
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(http.StatusOK)
	if h := w.health(tn); h.OldestDueSeconds != 0 || h.Severity != "ok" || h.ActiveEndpoints != 0 {
		t.Errorf("held: %+v", h)
	}
	w.disabled(tn, ep, "unhealthy")
	w.settle(waiting, 3, 1)
	if h := w.health(tn); h.DisabledDay != 1 || h.FailedDeliveriesDay != 1 || h.Findings[0].Code != "endpoint_disabled" {
		t.Errorf("disabled: %+v", h)
	}
}

func TestHealthNamesWhatFailsAndWhoseBreakerIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	w.rollUp(tn, ep, bucket{60, time.Minute}, "order.paid", 2*16+6, 30)
	w.failures(tn, ep, map[int]int{401: 30})
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, auth_streak, first_failure_at, last_failure_at, last_status,
		breaker_state, opened_at, next_probe_at) VALUES ($1, $2, 30, 6, now() - interval '1 day', now(), 401, 1, now(), now())`, tn.uuid.String(), w.uuid(id.Endpoint, ep))
	waiting := w.onlyDelivery(tn, nil)
	w.SQL("UPDATE queue SET due_at = now() - interval '20 minutes' WHERE delivery_id = $1", w.uuid(id.Delivery, waiting))
	w.SQL("UPDATE endpoints SET status_at = now() - interval '1 hour'")
	h := w.health(tn)
	if p, _ := h.DominantProblem.Get(); p != "auth" || h.BreakersOpen != 1 || h.WarningsRunning != 1 ||
		h.OldestDueSeconds != 0 {
		t.Errorf("%+v", h)
	}
}

// disabled stores what disabling an endpoint leaves: its state and the notice.
func (w *world) disabled(tn tenant, ep, reason string) {
	w.t.Helper()
	u := w.uuid(id.Endpoint, ep)
	w.SQL("UPDATE endpoints SET status = 'disabled', status_reason = $2, status_at = now() WHERE id = $1", u, reason)
	n := db.NewID()
	w.SQL(`INSERT INTO notices (tenant_id, id, kind, key, endpoint_id, details, created_at)
		VALUES ($1, $2::uuid, 'endpoint.disabled', $2::uuid::text, $3, jsonb_build_object('reason', $4::text), now())`, tn.uuid.String(), n.String(), u, reason)
}

// failures stores how failed attempts of the last minutes ended.
func (w *world) failures(tn tenant, ep string, codes map[int]int) {
	w.t.Helper()
	for code, n := range codes {
		w.SQL("INSERT INTO endpoint_failures (tenant_id, endpoint_id, bucket, code, n) VALUES ($1, $2, date_trunc('minute', now()) - interval '1 minute', $3, $4)",
			tn.uuid.String(), w.uuid(id.Endpoint, ep), code, n)
	}
}

// The last failure of an endpoint says nothing about the many before it.
func TestTheDominantProblemIsCountedAttemptByAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	shop, billing := w.active(tn, map[string]any{"description": "Shop"}), w.active(tn, map[string]any{"description": "Billing"})
	w.rollUp(tn, shop, bucket{60, time.Minute}, "order.paid", 3*16+6, 8)
	w.rollUp(tn, shop, bucket{60, time.Minute}, "order.paid", 2*16+6, 1)
	w.failures(tn, shop, map[int]int{500: 8, 404: 1})
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, consecutive_failures, first_failure_at, last_failure_at, last_status)
		VALUES ($1, $2, 9, now() - interval '1 hour', now(), 404)`, tn.uuid.String(), w.uuid(id.Endpoint, shop))
	w.rollUp(tn, billing, bucket{60, time.Minute}, "order.paid", 2*16+6, 5)
	w.rollUp(tn, billing, bucket{60, time.Minute}, "order.paid", 6, 5)
	w.failures(tn, billing, map[int]int{422: 5})
	h := w.health(tn)
	problem, _ := h.DominantProblem.Get()
	endpoint, _ := h.DominantEndpointID.Get()
	if problem != "server_error" || endpoint != shop {
		t.Errorf("dominant: %s of %s, want server_error of %s", problem, endpoint, shop)
	}
	if of, _ := h.ActionEndpointID.Get(); of != shop || !strings.Contains(h.Action, "5xx") {
		t.Errorf("the action is %q of %s", h.Action, of)
	}
	var details []string
	for _, a := range h.Alerts {
		details = append(details, a.EndpointID+" "+a.Detail)
	}
	want := []string{shop + " Shop: 8 of 9 attempts failed with 500.", billing + " Billing: 5 of 10 attempts were rejected with 422."}
	if !slices.Equal(details, want) {
		t.Errorf("alerts %q, want %q", details, want)
	}
}

func TestHealthCountsAnEndpointThatWasResumedSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	one, two := w.active(tn, map[string]any{"description": "Shop"}), w.active(tn, nil)
	w.disabled(tn, one, "gone")
	w.disabled(tn, two, "auth")
	w.setStatus(two, "active")
	h := w.health(tn)
	if h.DisabledDay != 2 || h.Findings[0].Detail != "1 endpoint is disabled: Shop." {
		t.Errorf("%d disabled: %+v", h.DisabledDay, h.Findings)
	}
	if of, _ := h.Findings[0].EndpointID.Get(); of != one || !strings.Contains(h.Action, "410") {
		t.Errorf("%s: %s", of, h.Action)
	}
}

// What keeps deliveries from being sent is in the summary, whoever keeps them.
func TestHealthSaysWhatStopsDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, map[string]any{"description": "Shop", "when_held": "drop"})
	w.onlyDelivery(tn, nil)
	says := func(severity, code, detail string) {
		t.Helper()
		h := w.health(tn)
		if string(h.Severity) != severity || len(h.Findings) != 1 || h.Findings[0].Code != code || h.Reason != detail {
			t.Errorf("%s: %s %+v", code, h.Severity, h.Findings)
		}
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(http.StatusOK)
	says("ok", "endpoint_paused", "1 endpoint is paused: Shop. 1 delivery waits. New events create no deliveries to it.")
	w.setStatus(ep, "active")
	w.SQL(`INSERT INTO dispatch_pauses (id, scope, host, reason, actor_kind, created_at)
		SELECT gen_random_uuid(), 'host', posthorn.url_host(url), 'test', 'operator', now() FROM endpoints WHERE id = $1`, w.uuid(id.Endpoint, ep))
	if h := w.health(tn); h.Severity != "warning" || h.Findings[0].Code != "paused_by_operator" || !strings.HasPrefix(h.Reason, "The operator paused deliveries to ") {
		t.Errorf("host paused: %s %+v", h.Severity, h.Findings)
	}
	w.SQL("DELETE FROM dispatch_pauses")
	w.SQL("UPDATE workers SET dead = true")
	says("critical", "no_worker", "1 endpoint is served by no live worker, so nothing is sent to it: Shop. 1 delivery waits.")
	w.SQL("UPDATE tenants SET state = 'suspended', state_at = now() WHERE id = $1", tn.uuid.String())
	says("critical", "suspended", "The operator of this platform suspended this tenant. Nothing is sent, and nothing is lost.")
}

// The breaker has closed: what failed is told as over, and asks for nothing.
func TestHealthTellsOfARecoveryAsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, map[string]any{"description": "Shop"})
	w.rollUp(tn, ep, bucket{60, time.Minute}, "order.paid", kindServer, 30)
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, last_failure_at, last_success_at, closed_at)
		VALUES ($1, $2, now() - interval '20 seconds', now(), now() - interval '10 seconds')`, tn.uuid.String(), w.uuid(id.Endpoint, ep))
	h := w.health(tn)
	if h.Severity != "ok" || h.Action != "" || len(h.Alerts) != 0 || len(h.Recovered) != 1 ||
		h.Recovered[0].Detail != "Shop recovered: 30 of 30 attempts failed in the last 24 hours." {
		t.Errorf("%+v", h)
	}
}

func TestHealthAsCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	w.rollUp(tn, ep, bucket{60, time.Minute}, "order.paid", kindServer, 3)
	got := w.do("GET", "/api/v1/health", tn.key, nil, "Accept", "text/csv").want(http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(string(got.Body))).ReadAll()
	if err != nil || got.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatal(err, got.Header)
	}
	values := map[string]string{}
	for _, r := range rows {
		values[r[0]] = r[1]
	}
	for field, want := range map[string]string{
		"field":            "value",
		"severity":         "warning",
		"findings.0.code":  "success_day",
		"day.attempts":     "3",
		"top_types.0.type": "order.paid",
		"last_digest_at":   "",
	} {
		if values[field] != want {
			t.Errorf("%s is %q, want %q", field, values[field], want)
		}
	}
	w.do("GET", "/api/v1/health?format=xml", tn.key, nil).problem(http.StatusBadRequest, "choice_unknown", "format")
}

// A percentile lies between the shortest and the longest attempt.
func TestPercentilesLieWithinWhatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	w.SQL(`INSERT INTO ledger (stat_endpoint, stat_type, stat_minute, stat_kind, stat_count, stat_us, stat_least, stat_most)
		VALUES (ARRAY[$1::uuid], ARRAY['order.paid'], ARRAY[(extract(epoch FROM now()) / 60)::int - 1], ARRAY[9::smallint], ARRAY[20], ARRAY[12000000], ARRAY[590000], ARRAY[610000])`,
		w.uuid(id.Endpoint, ep))
	if h := w.health(tn); h.P50Ms != 600 || h.P95Ms != 609 {
		t.Errorf("p50 %v ms, p95 %v ms", h.P50Ms, h.P95Ms)
	}
}

func TestAnalyticsAddUpTheRollUpsAndTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	one, two, theirs := w.active(tn, nil), w.active(tn, nil), w.active(other, nil)
	w.rollUp(tn, one, bucket{3600, 5 * time.Hour}, "order.paid", kindOK, 40)
	w.rollUp(tn, two, bucket{3600, 5 * time.Hour}, "-cmd", kindServer+kindRetry, 4)
	w.rollUp(tn, one, bucket{60, time.Minute}, "order.paid", kindOK, 5)
	w.unfolded(two, "order.paid", kindServer, 1)
	w.rollUp(other, theirs, bucket{3600, 5 * time.Hour}, "order.paid", kindOK, 1000)
	w.unfolded(theirs, "order.paid", kindServer, 1000)
	ask := func(query string) (a api.Analytics, attempts int) {
		t.Helper()
		w.do("GET", "/api/v1/analytics/deliveries?"+query, tn.key, nil).want(http.StatusOK).into(&a)
		for _, r := range a.Data {
			attempts += r.Attempts
		}
		return a, attempts
	}
	for query, want := range map[string]int{
		"":                   50,
		"by=day":             50,
		"group=endpoint":     50,
		"group=type":         50,
		"group=status_class": 50,
		"type=order.paid":    46,
		"endpoint=" + one:    45,
		"endpoint=" + theirs: 0,
		"endpoint=" + id.Endpoint.Format(db.NewID()): 0,
		"by=minute":                       6,
		"type=order.paid&endpoint=" + two: 1,
	} {
		if a, n := ask(query); n != want {
			t.Errorf("%q: %d attempts, want %d: %+v", query, n, want, a)
		}
	}
	a, _ := ask("by=day&group=status_class")
	classes := map[api.StatusClass]api.AnalyticsRow{}
	for _, r := range a.Data {
		c, _ := r.StatusClass.Get()
		r.Failed += classes[c].Failed // two days if midnight is between
		classes[c] = r
	}
	if r := classes["server_error"]; len(classes) != 2 || r.Failed != 5 || r.P95Ms <= 0 {
		t.Errorf("%+v", a.Data)
	}
}

func TestAnalyticsAsCSV(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	w.rollUp(tn, ep, bucket{3600, 5 * time.Hour}, "-cmd|calc", kindOK, 3)
	for _, header := range [][]string{{"Accept", "text/csv"}, {}} {
		path := "/api/v1/analytics/deliveries?group=type"
		if len(header) == 0 {
			path += "&format=csv"
		}
		got := w.do("GET", path, tn.key, nil, header...).want(http.StatusOK)
		if got.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(got.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%v", got.Header)
		}
		rows, err := csv.NewReader(strings.NewReader(string(got.Body))).ReadAll()
		if err != nil || len(rows) != 2 || rows[0][0] != "start" || rows[1][2] != "'-cmd|calc" || rows[1][4] != "3" {
			t.Errorf("%v %q", err, rows)
		}
	}
	if got := w.do("GET", "/api/v1/analytics/deliveries?format=json", tn.key, nil, "Accept", "text/csv").want(http.StatusOK); got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", got.Header)
	}
}

func TestAnalyticsRefuseWhatIsOutOfRange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.RFC3339) }
	for query, want := range map[string][]string{
		"by=week":                    {"choice_unknown", "by"},
		"group=url":                  {"choice_unknown", "group"},
		"format=xml":                 {"choice_unknown", "format"},
		"limit=5":                    {"unknown_parameter", "limit"},
		"since=yesterday":            {"time_malformed", "since"},
		"since=" + day(2):            {"window_empty", "since"},
		"by=minute&since=" + day(-2): {"window_too_long", "since"},
		"by=hour&since=" + day(-40):  {"window_too_long", "since"},
		fmt.Sprintf("by=day&since=%s", day(-400)): {"window_too_long", "since"},
	} {
		w.do("GET", "/api/v1/analytics/deliveries?"+query, tn.key, nil).problem(http.StatusBadRequest, want[0], want[1:]...)
	}
}
