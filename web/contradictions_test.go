package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/client"
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/web/cli"
)

// situation is an endpoint in a condition with one delivery that waits for a reason.
type situation struct {
	state condition.State
	wait  condition.Reason
	make  string // the SQL that makes them so; $1 is the endpoint, $2 the delivery
	drops bool   // the endpoint drops events while it is inactive

	tenant, key                    string
	endpoint, delivery, uuid, host string
	id                             id.UUID // of the delivery and of its event
}

// situations has a situation for every condition and every reason. A new one of these needs an entry here.
func situations() []*situation {
	const later = "now() + interval '1 hour'"
	lane := func(set string) string {
		return "UPDATE lanes SET " + set + " WHERE endpoint_id = $1 AND $2::uuid IS NOT NULL"
	}
	row := func(set string) string {
		return "UPDATE queue SET " + set + " WHERE endpoint_id = $1 AND delivery_id = $2"
	}
	held := func(set string) string {
		return "WITH h AS (UPDATE lanes SET held = true WHERE endpoint_id = $1) UPDATE endpoints SET " + set + " WHERE id = $1 AND $2::uuid IS NOT NULL"
	}
	const live, dead = "(SELECT id FROM workers WHERE NOT dead)", "(SELECT id FROM workers WHERE dead)"
	return []*situation{
		{state: condition.Active, wait: condition.Next},
		{state: condition.Active, wait: condition.InFlight, make: lane("in_flight = jsonb_build_object($2::text, now()), owner = " + live)},
		{
			state: condition.Active,
			wait:  condition.Retry,
			make:  "WITH d AS (UPDATE deliveries SET status = 1, attempts = 1, last_status = 500 WHERE id = $2) " + row("state = 1, attempts = 1, due_at = "+later),
		},
		{state: condition.Active, wait: condition.Transformation, make: row("state = 1, due_at = now() + interval '200 years'")},
		{state: condition.Active, wait: condition.Deferred, make: row("state = 3, due_at = " + later)},
		{
			state: condition.Active,
			wait:  condition.Order,
			make: `WITH first AS (INSERT INTO queue (seq, tenant_id, delivery_id, event_id, endpoint_id, order_key)
				SELECT seq - 1000, tenant_id, gen_random_uuid(), event_id, endpoint_id, 'k' FROM queue WHERE delivery_id = $2)
				` + row("state = 2, order_key = 'k'"),
		},
		{
			state: condition.Active,
			wait:  condition.RateLimit,
			make:  "WITH e AS (UPDATE endpoints SET rate_limit = 1 WHERE id = $1) " + lane("limited_by = 1, owner = "+live),
		},
		{state: condition.Active, wait: condition.Concurrency, make: lane("limited_by = 2, owner = " + live)},
		{state: condition.AskedToWait, wait: condition.RetryAfter, make: lane("not_before = " + later)},
		{
			state: condition.Failing,
			wait:  condition.Breaker,
			make: `INSERT INTO endpoint_health (tenant_id, endpoint_id, breaker_state, opened_at, next_probe_at, consecutive_failures, last_status,
					first_failure_at, last_failure_at, unhealthy_since)
				SELECT tenant_id, id, 1, now() - interval '1 hour', ` + later + `, 12, 503, now() - interval '1 hour', now(), now() - interval '1 hour'
				FROM endpoints WHERE id = $1 AND $2::uuid IS NOT NULL`,
		},
		{state: condition.Unserved, wait: condition.NoWorker, make: lane("owner = " + dead)},
		{
			state: condition.OnHold,
			wait:  condition.OperatorPause,
			make: `WITH h AS (INSERT INTO endpoint_health (tenant_id, endpoint_id, breaker_state, opened_at, next_probe_at, consecutive_failures)
					SELECT tenant_id, id, 1, now(), ` + later + `, 12 FROM endpoints WHERE id = $1)
				INSERT INTO dispatch_pauses (id, scope, tenant_id, endpoint_id, reason, actor_kind, created_at)
				SELECT gen_random_uuid(), 'endpoint', tenant_id, id, 'test', 'operator', now() FROM endpoints WHERE id = $1 AND $2::uuid IS NOT NULL`,
		},
		{state: condition.Paused, wait: condition.EndpointPaused, make: held("status = 'paused'")},
		{state: condition.Unverified, wait: condition.EndpointUnverified, make: held("status = 'unverified'")},
		{state: condition.Disabled, wait: condition.EndpointDisabled, make: held("status = 'disabled', status_reason = 'auth'")},
		{state: condition.Suspended, wait: condition.TenantSuspended, make: "UPDATE tenants SET state = 'suspended', state_at = now() WHERE $1::uuid IS NOT NULL AND id = (SELECT tenant_id FROM queue WHERE delivery_id = $2)"},
		{state: condition.Disconnected, wait: condition.Listener, make: held("kind = 'listen'")},
	}
}

// scene is a platform on which every situation holds at once.
type scene struct {
	*youngDay
	all []*situation
}

// newScene makes the situations, those of a suspended tenant in another tenant.
func newScene(t *testing.T, drops bool) scene {
	t.Helper()
	s := scene{newYoungDay(t), situations()}
	for _, one := range s.all {
		one.drops = drops
	}
	for _, state := range condition.States() {
		if !slices.ContainsFunc(s.all, func(one *situation) bool { return one.state == state }) {
			t.Errorf("no situation has an endpoint that is %s: add one", state)
		}
	}
	for _, reason := range condition.Reasons() {
		if !slices.ContainsFunc(s.all, func(one *situation) bool { return one.wait == reason }) {
			t.Errorf("no situation has a delivery that waits for %s: add one", reason)
		}
	}
	var other made
	succeed(t, databaseEnvironment(s.url), &other, "tenant", "create", "--name", "Late payer", "--json")
	s.signIn()
	suspended, err := id.Tenant.Parse(other.TenantID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.program.pools[0].Console(t.Context(), func(q *db.Tx) error {
		_, err := accounts.AddMember(t.Context(), q, suspended, s.owner, access.Owner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s.fill(suspended, other)
	return s
}

// liveWorker adds a worker that is not there, and counts as live.
const liveWorker = "INSERT INTO workers (id, name, dead, beat_at) VALUES (gen_random_uuid(), 'live', false, now() + interval '1 hour')"

func (s scene) fill(suspended id.UUID, other made) {
	s.t.Helper()
	s.connect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO workers (id, name, dead, beat_at) VALUES (gen_random_uuid(), 'live', false, now() + interval '1 hour'), (gen_random_uuid(), 'dead', true, now())`)
		for i := 0; err == nil && i < len(s.all); i++ {
			one, tenant := s.all[i], s.tenant
			one.tenant, one.key = s.last["tenant_id"], s.key
			if one.state == condition.Suspended {
				tenant, one.tenant, one.key = suspended, other.TenantID, other.APIKey
			}
			err = one.insert(ctx, c, tenant)
		}
		return err
	})
}

// insert writes the endpoint and the delivery, ready to send, and brings them to the situation.
func (one *situation) insert(ctx context.Context, c *pgx.Conn, tenant id.UUID) error {
	e, d := db.NewID(), db.NewID()
	one.host = strings.ReplaceAll(string(one.wait), "_", "-") + ".example.com"
	one.endpoint, one.delivery, one.uuid = id.Endpoint.Format(e), id.Delivery.Format(d), d.String()
	one.id = d
	_, err := c.Exec(ctx, `WITH e AS (
			INSERT INTO endpoints (tenant_id, id, url, event_types, status, status_at, created_at)
			VALUES ($1, $2, $3, '{*}', 'active', now() - interval '1 hour', now())
		), v AS (
			INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $5, $4, 'order.paid', '{}', 1)
		), d AS (
			INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status)
			VALUES ($1, $5, $4, $4, $2, 'order.paid', 0, 0, 0, 0)
		), q AS (INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id) VALUES ($1, $4, $4, $2))
		INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($2, $1, false)`, tenant.String(), e.String(), "https://"+one.host+"/", d.String(), d.Time())
	if one.drops && err == nil {
		_, err = c.Exec(ctx, "UPDATE endpoints SET when_held = 'drop' WHERE id = $1", e.String())
	}
	if err != nil || one.make == "" {
		return err
	}
	if _, err = c.Exec(ctx, one.make, e.String(), d.String()); err != nil {
		return fmt.Errorf("%s: %w", one.wait, err)
	}
	return nil
}

// Every surface says the same of an endpoint and of a delivery that waits for it.
func TestNoSurfaceContradictsAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	s.surfaces()
	s.lists()
	s.health()
	s.metrics()
	s.consoleCounts()
	s.overview()
	s.digest()
	s.mails()
	s.statusPage()
}

// The same holds where the endpoints drop events while they are inactive: wherever that is so now, it is said.
func TestNoSurfaceContradictsAnotherAboutDroppedEvents(t *testing.T) {
	t.Parallel()
	newScene(t, true).surfaces()
}

func (s scene) surfaces() {
	s.t.Helper()
	for _, one := range s.all {
		s.api(one)
		s.commandLine(one)
		s.dashboard(one)
		s.console(one)
	}
}

// is is the condition, with the cause that its SQL records.
func (one *situation) is() condition.Condition {
	c := condition.Condition{State: one.state, Scope: one.scope()}
	switch one.state {
	case condition.Disabled, condition.Unverified, condition.Paused:
		c.Drops = one.drops
	}
	switch one.state {
	case condition.Failing:
		c.Cause = string(health.ProblemServer)
	case condition.Disabled:
		c.Cause = string(health.Auth)
	}
	return c
}

// waits is why the delivery waits, without its times.
func (one *situation) waits() condition.Wait {
	return condition.Wait{Reason: one.wait, Scope: one.scope()}
}

func (one *situation) scope() pause.Scope {
	if one.state == condition.Suspended {
		return pause.Suspended
	}
	return pause.Endpoint
}

// title is the name of the reason for people. A delivery with attempts shows its last failure, with the time of the
// next attempt.
func (one *situation) title() string {
	if one.wait == condition.Retry {
		return "Next attempt in"
	}
	return one.waits().Title()
}

func (s scene) api(one *situation) {
	s.t.Helper()
	var e client.Endpoint
	s.json(one, "/api/v1/endpoints/"+one.endpoint, &e)
	if string(e.Condition.State) != string(one.state) {
		s.t.Errorf("API, %s: the endpoint is %q, want %q", one.wait, e.Condition.State, one.state)
	}
	if e.Condition.Detail != one.is().Detail() || e.Condition.Drops != one.is().Drops || e.Condition.Degraded {
		s.t.Errorf("API, %s: it means %q, drops %t, degraded %t", one.wait, e.Condition.Detail, e.Condition.Drops, e.Condition.Degraded)
	}
	s.held(one, e)
	offered := []condition.Action{}
	for _, a := range e.Condition.Actions {
		offered = append(offered, condition.Action(a))
	}
	if !slices.Equal(offered, one.is().Actions()) {
		s.t.Errorf("API, %s: it offers %v, want %v", one.wait, offered, one.is().Actions())
	}
	if failing := one.state == condition.Failing; failing != (optionalTime(e.Condition.NextProbeAt) != time.Time{}) {
		s.t.Errorf("API, %s: next probe at %v", one.wait, e.Condition.NextProbeAt)
	}
	var d client.DeliveryWithAttempts
	s.json(one, "/api/v1/deliveries/"+one.delivery, &d)
	s.agrees("API", one, d.Wait, d.NextAttemptAt)
	var page client.DeliveryPage
	s.json(one, "/api/v1/deliveries?wait="+string(one.wait), &page)
	if len(page.Data) != 1 || page.Data[0].ID != one.delivery {
		s.t.Errorf("API: the filter wait=%s finds %d deliveries", one.wait, len(page.Data))
	} else {
		s.agrees("API, list", one, page.Data[0].Wait, page.Data[0].NextAttemptAt)
	}
}

// held checks that only one number is called held: what waits at an endpoint that receives nothing.
func (s scene) held(one *situation, e client.Endpoint) {
	s.t.Helper()
	waiting := 1
	if one.state == condition.Active {
		waiting = 0
	}
	held := 0
	if string(e.Status) != "active" {
		held = waiting
	}
	if e.Condition.Waiting != waiting || e.Health.Held != held {
		s.t.Errorf("API, %s: %d deliveries are waiting, and %d held, want %d and %d", one.wait, e.Condition.Waiting, e.Health.Held, waiting, held)
	}
	if _, body := fetch(s.t, s.program.URL()+"/api/v1/endpoints/"+one.endpoint, one.key); strings.Count(body, `"held":`) != 1 {
		s.t.Errorf("API, %s: not one number is called held: %s", one.wait, body)
	}
}

// agrees checks a delivery as the API shows it.
func (s scene) agrees(where string, one *situation, n client.Nullable[client.DeliveryWait], next client.Nullable[time.Time]) {
	s.t.Helper()
	w, err := n.Get()
	if err != nil || string(w.Reason) != string(one.wait) {
		s.t.Errorf("%s: the delivery waits for %q (%v), want %s", where, w.Reason, err, one.wait)
		return
	}
	want := condition.Wait{Reason: one.wait, Until: optionalTime(w.Until)}.NextAttempt()
	if at := optionalTime(next); !at.Equal(want) {
		s.t.Errorf("%s, %s: next attempt at %v, want %v", where, one.wait, at, want)
	}
}

func optionalTime(n client.Nullable[time.Time]) time.Time {
	at, _ := n.Get()
	return at
}

func (s scene) commandLine(one *situation) {
	s.t.Helper()
	shows := func(line string, want ...string) {
		s.t.Helper()
		var stdout, stderr bytes.Buffer
		a := &app{
			program: "posthorn",
			args:    strings.Fields(line),
			stdin:   strings.NewReader(""),
			stdout:  &stdout,
			stderr:  &stderr,
			environ: []string{"POSTHORN_URL=" + s.program.URL(), "POSTHORN_API_KEY=" + one.key, "HOME=" + s.t.TempDir()},
		}
		if code := a.run(s.t.Context()); code != cli.ExitOK {
			s.t.Errorf("posthorn %s: exit code %d\n%s", line, code, stderr.String())
		}
		said := strings.Join(strings.Fields(stdout.String()), " ")
		for _, part := range want {
			if !strings.Contains(said, part) {
				s.t.Errorf("posthorn %s (%s) does not say %q:\n%s", line, one.wait, part, stdout.String())
			}
		}
	}
	shows("endpoints get "+one.endpoint, "State "+spaced(one.state), "Means "+one.is().Detail())
	for _, a := range one.is().Actions() {
		command := a.Command(one.endpoint)
		shows("endpoints get "+one.endpoint, command)
		shows(strings.TrimPrefix(command, "posthorn ")+" --help", "Usage: posthorn ")
	}
	shows("endpoints list --condition "+string(one.state), one.endpoint)
	shows("deliveries get "+one.delivery, "Waits for "+spaced(one.wait), one.waits().Detail())
	shows("deliveries list --waits-for "+string(one.wait), one.delivery)
}

func (s scene) dashboard(one *situation) {
	s.t.Helper()
	root, word, title := "/t/"+one.tenant, one.state.Word(), one.title()
	listed, onHold := root+"/endpoints", ""
	if one.wait == condition.Listener { // lists have it only if it is asked for
		listed, onHold = listed+"?kind=listen", "&endpoint="+one.endpoint
	}
	s.says("list of endpoints", one, s.row(listed, one.host), word)
	s.says("list of endpoints by condition", one, s.row(root+"/endpoints?status="+string(one.state), one.host), word)
	list := s.markup(listed, one.host)
	for _, a := range one.is().Actions() {
		s.says("menu in the list of endpoints", one, list, a.Label())
	}
	if len(one.is().Actions()) > 0 {
		s.says("dialog in the list of endpoints", one, html.UnescapeString(list), one.is().Detail())
	}
	header := s.text(root + "/endpoints/" + one.endpoint)
	s.says("endpoint", one, header, word)
	if one.state != condition.Active {
		s.says("endpoint", one, header, one.is().Title())
		_, last, several := strings.Cut(one.is().Detail(), ". ") // the page says the cause in words of its own
		if several {
			s.says("endpoint", one, header, last)
		}
	}
	if drops := strings.Contains(header, "New events are dropped"); drops != one.is().Drops {
		s.t.Errorf("endpoint (%s, %s) says that events are dropped: %t", one.state, one.wait, drops)
	}
	for _, a := range one.is().Actions() {
		s.says("endpoint", one, header, a.Label())
	}
	s.says("delivery", one, s.text(root+"/deliveries/"+one.delivery), title)
	event := "/events/" + id.Event.Format(one.id)
	if one.wait != condition.Next && one.wait != condition.Retry {
		s.says("event", one, s.row(root+event, one.delivery), one.wait.Word())
		s.says("console, event", one, s.row("/console/tenants/"+one.tenant+event, one.delivery), one.wait.Word())
		s.says("console, list of deliveries", one, s.row("/console/deliveries?tenant="+one.tenant+"&endpoint="+one.endpoint, one.delivery), one.wait.Word())
	}
	list = s.row(root+"/deliveries?wait="+string(one.wait), one.delivery)
	if one.wait != condition.Next && one.wait != condition.Retry {
		s.says("list of deliveries", one, list, one.wait.Word())
	}
	if one.wait.Holds() {
		s.says("list of deliveries on hold", one, s.row(root+"/deliveries?status=on_hold"+onHold, one.delivery), "on hold")
		s.says("console, list of deliveries on hold", one,
			s.row("/console/deliveries?status=on_hold&tenant="+one.tenant+onHold, one.delivery), "on hold")
	}
}

func (s scene) console(one *situation) {
	s.t.Helper()
	page := s.text("/console/tenants/" + one.tenant + "/deliveries/" + one.delivery)
	s.says("console, delivery", one, page, one.title())
	s.says("console, delivery", one, page, one.state.Word())
	s.says("console, queue", one, s.row("/console/queue?all=lanes", one.host), one.state.Word())
	s.says("console, endpoints of a host", one, s.row("/console/health/endpoints?host="+one.host, one.host), one.state.Word())
	tenant := s.row("/console/tenants/"+one.tenant, one.host)
	s.says("console, tenant", one, tenant, one.state.Word())
	_, dialog, _ := strings.Cut(s.read("/console/tenants/"+one.tenant), `id="act-`+one.endpoint)
	dialog, _, _ = strings.Cut(dialog, "</dialog>")
	for _, a := range one.is().Actions() {
		s.says("console, dialog of an endpoint of a tenant", one, plainText(dialog), a.Phrase())
	}
}

// lists checks that the filter of each condition finds all endpoints that are so and no other.
func (s scene) lists() {
	s.t.Helper()
	for _, state := range condition.States() {
		want, got := []string{}, []string{}
		key := s.key
		for _, one := range s.all {
			if one.state == state {
				want, key = append(want, one.endpoint), one.key
			}
		}
		var page client.EndpointPage
		s.json(&situation{key: key}, "/api/v1/endpoints?limit=100&condition="+string(state), &page)
		for _, e := range page.Data {
			got = append(got, e.ID)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.t.Errorf("API: %d endpoints are %s, want %d", len(got), state, len(want))
		}
	}
}

// health checks that the tenant's health summary, and with it the digest and the mails, counts endpoints by their
// condition, and that nothing is overdue that waits for a reason of its endpoint's.
func (s scene) health() {
	s.t.Helper()
	want, patient := map[condition.State]int{}, []string{}
	for _, one := range s.all {
		switch one.wait {
		case condition.Listener, condition.TenantSuspended:
		default:
			want[one.state]++
		}
		switch one.wait {
		case condition.Next, condition.NoWorker, condition.InFlight: // due until the response
		case condition.Order: // its first delivery is ready
		default:
			patient = append(patient, one.uuid)
		}
	}
	s.connect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE queue SET due_at = now() - interval '20 minutes' WHERE state = 0 AND delivery_id = ANY ($1::uuid[])", patient)
		return err
	})
	var h client.Health
	s.json(s.all[0], "/api/v1/health", &h)
	if h.ActiveEndpoints != want[condition.Active] || h.BreakersOpen != want[condition.Failing] {
		s.t.Errorf("health: %d endpoints are active and %d fail, want %d and %d", h.ActiveEndpoints, h.BreakersOpen, want[condition.Active], want[condition.Failing])
	}
	s.findings(h)
	if h.OldestDueSeconds >= 1000 {
		s.t.Errorf("health: a delivery has been due for %d s that waits for a reason of its endpoint's", h.OldestDueSeconds)
	}
	late := s.all[slices.IndexFunc(s.all, func(one *situation) bool { return one.wait == condition.NoWorker })]
	s.connect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "UPDATE queue SET due_at = now() - interval '20 minutes' WHERE delivery_id = $1", late.uuid)
		return err
	})
	if s.json(s.all[0], "/api/v1/health", &h); h.OldestDueSeconds < 1000 {
		s.t.Errorf("health: what no worker serves has been due for %d s, want 20 minutes", h.OldestDueSeconds)
	}
}

// findings checks that the summary of each tenant has a finding for everything that delays deliveries.
func (s scene) findings(h client.Health) {
	s.t.Helper()
	codes := map[string]bool{}
	for _, f := range h.Findings {
		codes[f.Code] = true
	}
	for _, code := range []string{
		"no_worker", "paused_by_operator", "endpoint_disabled", "breaker_open", "asked_to_wait", "endpoint_paused", "endpoint_unverified",
	} {
		if !codes[code] {
			s.t.Errorf("health has no finding %s: %+v", code, h.Findings)
		}
	}
	var other client.Health
	s.json(s.all[slices.IndexFunc(s.all, func(one *situation) bool { return one.state == condition.Suspended })], "/api/v1/health", &other)
	if other.Severity != "critical" || other.Findings[0].Code != "suspended" {
		s.t.Errorf("health of the suspended tenant: %s %+v", other.Severity, other.Findings)
	}
}

// says reports where a surface does not say a text.
func (s scene) says(where string, one *situation, text, want string) {
	s.t.Helper()
	if !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
		s.t.Errorf("%s (%s, %s) does not say %q: %.3000s", where, one.state, one.wait, want, text)
	}
}

func (s scene) json(one *situation, path string, into any) {
	s.t.Helper()
	status, body := fetch(s.t, s.program.URL()+path, one.key)
	if err := json.Unmarshal([]byte(body), into); status != http.StatusOK || err != nil {
		s.t.Errorf("%s: %d, %v: %s", path, status, err, body)
	}
}

var (
	tags   = regexp.MustCompile(`(?s)<(script|style|template|select|dialog)\b.*?</(script|style|template|select|dialog)>|<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// read is the main part of a page.
func (s scene) read(path string) string {
	s.t.Helper()
	res, err := http.DefaultClient.Do(s.request(path))
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Errorf("%s: %d, %v", path, res.StatusCode, err)
	}
	_, main, _ := strings.Cut(string(body), "<main")
	return main
}

func plainText(markup string) string {
	return spaces.ReplaceAllString(html.UnescapeString(tags.ReplaceAllString("<"+markup, " ")), " ")
}

func (s scene) text(path string) string {
	s.t.Helper()
	return plainText(s.read(path))
}

// row is the text of the row of a page's tables that has a text in it.
func (s scene) row(path, with string) string {
	s.t.Helper()
	return plainText(s.markup(path, with))
}

// markup is that row with its tags.
func (s scene) markup(path, with string) string {
	s.t.Helper()
	for _, row := range strings.Split(s.read(path), "<tr")[1:] {
		if row, _, _ = strings.Cut(row, "</tr>"); strings.Contains(row, with) {
			return "<tr" + row
		}
	}
	s.t.Errorf("%s has no row with %s", path, with)
	return ""
}

// spaced is a value of the API as the command line shows it to people.
func spaced[S ~string](value S) string { return strings.ReplaceAll(string(value), "_", " ") }
