//go:build e2e && unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"posthorn/domain/id"
	"posthorn/tools/look"
)

// TestOperatorsRunThePlatformInABrowser follows operators through the console: a real server, a real browser, real
// receivers. A pause of everything concerns everybody, so it comes when the others are done.
func TestOperatorsRunThePlatformInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	desk := operator(t, s)
	t.Run("tenants", func(t *testing.T) {
		for _, j := range []struct {
			name string
			goes func(*testing.T, *stage, *visitor)
		}{
			{"a noisy tenant is found, paused and let go on", noisyTenantIsTamed},
			{"a look at a tenant's dashboard leaves its trail", lookLeavesItsTrail},
			{"a suspended tenant's deliveries wait and then arrive", suspensionLosesNothing},
		} {
			t.Run(j.name, func(t *testing.T) {
				t.Parallel()
				as := *desk
				as.t = t
				j.goes(t, s, &as)
			})
		}
	})
	t.Run("everything is paused by one of two operators", func(t *testing.T) { everythingIsPausedOnce(t, s, desk) })
}

// alert is a rule of docs/ops/alerts.yml that holds one metric against a bound.
type alert struct {
	metric string
	bound  float64
}

func alertOf(t *testing.T, name string) alert {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join("..", "..", "docs", "ops", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`alert: ` + name + `\s+expr: max\((\w+)\) > (\d+)\s`).FindSubmatch(rules)
	if m == nil {
		t.Fatalf("there is no rule %s of that shape", name)
	}
	bound, err := strconv.ParseFloat(string(m[2]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return alert{string(m[1]), bound}
}

// backdate makes a tenant's ready deliveries ready for so long already, as nobody has the time to wait for.
func (o *firm) backdate(by time.Duration) {
	o.t.Helper()
	tenant, err := id.Tenant.Parse(o.tenant)
	if err != nil {
		o.t.Fatal(err)
	}
	tx, err := o.sql.Begin(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(o.t.Context(), "SET LOCAL ROLE posthorn_worker"); err != nil {
		o.t.Fatal(err)
	}
	if _, err := tx.Exec(o.t.Context(), "UPDATE queue SET due_at = now() - make_interval(secs => $2) WHERE tenant_id = $1 AND state = 0", uuid.UUID(tenant), by.Seconds()); err != nil {
		o.t.Fatal(err)
	}
	if err := tx.Commit(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

// finds opens a page until it shows a text: pages of the console are as of when they were opened.
func finds(t *testing.T, tab *look.Tab, url, text string) {
	t.Helper()
	eventually(t, patience, url+" shows "+text, func() bool {
		tab.Open(url)
		return tab.Shows(text)
	})
}

// gives fills in the reason of the form that leads to an address.
func gives(tab *look.Tab, action, reason string) {
	look.Type(tab, chromedp.CSS(fmt.Sprintf(`form[action$=%q] [name="reason"]`, action)), reason)
}

// refusedEvent emits an event and gives the problem's code of the answer; empty where it was taken.
func (o *firm) refusedEvent() (code string) {
	o.t.Helper()
	status, answer, err := o.call(http.MethodPost, o.web()+"/api/v1/events", `{"type":"order.paid","data":{}}`, "")
	if err != nil {
		o.t.Fatal(err)
	}
	if status == http.StatusAccepted {
		return ""
	}
	found := regexp.MustCompile(`"code": ?"([a-z_]+)"`).FindSubmatch(answer)
	if found == nil {
		o.t.Fatalf("an event was answered %d %s", status, answer)
	}
	return strconv.Itoa(status) + " " + string(found[1])
}

// goesOn delivers n further events at one a second, which is time in which something else must not happen.
func (o *firm) goesOn(n int) {
	o.t.Helper()
	had := len(o.customer.requests())
	for range n {
		o.emitted("order.paid", `{}`)
	}
	eventually(o.t, patience, "a tenant beside goes on", func() bool { return len(o.customer.requests()) >= had+n })
}

// each checks that so many events came, each once.
func (c *customer) each(t *testing.T, n int) {
	t.Helper()
	times := map[string]int{}
	for _, r := range c.requests() {
		times[r.header.Get("webhook-id")]++
	}
	if len(times) != n {
		t.Errorf("%d events came, want %d", len(times), n)
	}
	for event, k := range times {
		if k != 1 {
			t.Errorf("%s came %d times", event, k)
		}
	}
}

// oneASecond is what an endpoint that takes one request a second says of itself.
var oneASecond = settings{"rate_limit": 1, "burst": 1}

func noisyTenantIsTamed(t *testing.T, s *stage, desk *visitor) {
	const backlog = 150 // which the endpoint would take minutes for
	noisy, beside := s.office(t, "Noisy Ltd"), s.office(t, "Quiet Ltd")
	ep, _ := noisy.endpoint("/hooks", oneASecond)
	beside.endpoint("/hooks", oneASecond)
	batch := fmt.Sprintf(`{"events":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"type":"order.paid","data":{}},`, backlog), ","))
	if status, answer, err := noisy.call(http.MethodPost, noisy.web()+"/api/v1/events/batch", batch, ""); err != nil ||
		status != http.StatusAccepted {
		t.Fatalf("the backlog: %d %s %v", status, answer, err)
	}
	late := alertOf(t, "PosthornDeliveriesLate")
	noisy.backdate(time.Duration(late.bound+60) * time.Second)

	// What waits for the endpoint's own rate limit is not late: neither the overview nor the alert says so.
	eventually(t, patience, "the API says what the backlog waits for", func() bool {
		_, answer, err := noisy.call(http.MethodGet, noisy.web()+"/api/v1/deliveries?wait=rate_limit&limit=1", "", "")
		return err == nil && strings.Contains(string(answer), `"reason":"rate_limit"`)
	})
	tab := desk.tab(look.View{})
	tab.Open(s.url + "/console")
	tab.Sees("Overdue deliveries")
	if tab.Shows("are overdue: the oldest") {
		t.Error("the overview calls late what waits for its endpoint's own rate limit")
	}
	if lag := s.server.metric(late.metric); lag > late.bound {
		t.Errorf("an alert rings about a lag of %v s, which the endpoint's own rate limit makes", lag)
	}

	// Who it is, and where it is stuck.
	tab.Open(s.url + "/console/queue")
	tab.Sees("Longest backlogs")
	address := noisy.customer.url + "/hooks"
	tab.Sees(address[strings.LastIndex(address, ":"):]) // the end of an address is a part of its own
	tab.Press("Noisy Ltd")
	tab.Arrives("/console/tenants/" + noisy.tenant)

	// Its events are bounded, and its deliveries paused.
	tab.Fill("Events per second", "1")
	tab.Press("Save limits")
	tab.Sees("Settings saved.")
	accepted := backlog
	eventually(t, patience, "what the noisy tenant emits is bounded", func() bool {
		code := noisy.refusedEvent()
		if code == "" {
			accepted++
			return false
		}
		if code != "429 events_per_second_limit" {
			t.Errorf("a noisy tenant's event is answered %s", code)
		}
		return true
	})
	tab.Open(s.url + "/console/pauses")
	tab.Choose("Scope", "One tenant")
	tab.Fill("Which", noisy.tenant)
	tab.Fill("Reason", "its backlog harms the others")
	tab.Press("Pause")
	tab.Sees("Deliveries are paused. In-flight requests finish.")
	finds(t, tab, s.url+"/console/queue", "paused by operator")
	eventually(t, patience, "the worker keeps to the pause", func() bool { return s.server.metric("posthorn_dispatch_pauses") == 1 })
	had := len(noisy.customer.requests())
	beside.goesOn(3)
	if n := len(noisy.customer.requests()); n != had {
		t.Errorf("%d requests went to a tenant that is paused", n-had)
	}
	owner := noisy.owner.tab(look.View{})
	_, waiting := noisy.deliveries("pending")
	owner.Open(s.url + noisy.root + "/deliveries/" + waiting)
	owner.Sees("is sent when the operator ends the pause")
	beside.customer.each(t, 3)

	// Its receiver takes more now, so that it may go on.
	noisy.manage(http.MethodPatch, "/endpoints/"+ep, settings{"rate_limit": nil, "burst": nil}, nil)
	tab.Open(s.url + "/console/pauses")
	tab.Press("Resume")
	tab.Fill("Reason", "it takes more now")
	tab.Press("Resume")
	tab.Sees("The pause has ended.")
	noisy.await("delivered", accepted)
	noisy.customer.each(t, accepted)
	finds(t, tab, s.url+"/console/queue", "Noisy Ltd") // among the shares; its backlog is gone
	if tab.Shows(strings.TrimPrefix(noisy.customer.url, "http://") + "/hooks") {
		t.Error("the queue shows a backlog that is gone")
	}
	owner.Open(s.url + noisy.root + "/audit-log")
	for _, line := range []string{"Dispatch paused", "its backlog harms the others", "Dispatch resumed", "it takes more now", "Tenant updated"} {
		owner.Sees(line)
	}
	quiet(t, tab)
	quiet(t, owner)
}

// lookPages are pages on which members have forms and buttons.
var lookPages = []string{
	"", "/endpoints", "/endpoints/:endpoint_id", "/endpoints/:endpoint_id/settings", "/endpoints/:endpoint_id/filter", "/endpoints/:endpoint_id/transformation", "/endpoints/:endpoint_id/secrets", "/deliveries",
	"/deliveries/:delivery_id", "/events", "/events/:event_id", "/event-types", "/keys", "/members", "/audit-log", "/notices", "/bulk-jobs", "/settings", "/signature",
}

func lookLeavesItsTrail(t *testing.T, s *stage, desk *visitor) {
	o := s.office(t, "Looked At Ltd")
	ep, secret := o.endpoint("/hooks", nil)
	event := o.emitted("order.paid", `{"order_id":"ord_1"}`)
	values := map[string]string{":tenant_id": o.tenant, ":endpoint_id": ep, ":delivery_id": o.await("delivered", 1), ":event_id": event}
	tab := desk.tab(look.View{})
	tab.Open(s.url + o.root + "/deliveries")
	tab.Sees("view_as_over")
	tab.Open(s.url + "/console/tenants/" + o.tenant)
	tab.Press("View as")
	gives(tab, "/view-as", "ticket 4711")
	tab.Press("Open dashboard")
	tab.Arrives(o.root)
	for _, path := range lookPages {
		tab.Open(s.url + o.root + filled(path, values))
		if !tab.Shows("You're viewing Looked At Ltd as an operator (read-only)") || !tab.Shows("ticket 4711") {
			t.Errorf("%s has no banner that says why", path)
		}
		if tab.Shows(secret) {
			t.Errorf("%s shows a secret", path)
		}
		for _, action := range postForms(tab) {
			if action != "/theme" && action != "/console/sign-out" && !strings.HasPrefix(action, "/console/view-as/") {
				t.Errorf("%s has a form to %s for who may only look", path, action)
			}
		}
	}
	inspectOpen(t, tab)
	// What no page offers is refused all the same, when the page itself sends it.
	for _, answer := range sendEverything(t, s, tab, values) {
		if !strings.HasPrefix(answer, "403 view_as_read_only ") {
			t.Errorf("a POST of who looks is answered %s", answer)
		}
	}
	owner := o.owner.tab(look.View{})
	owner.Open(s.url + o.root + "/audit-log")
	for _, line := range []string{"View as tenant form sent", "ticket 4711", "operator"} {
		owner.Sees(line)
	}
	owner.Open(s.url + o.root + "/audit-log?action=view_as.page_viewed")
	for _, path := range []string{"/deliveries", "/endpoints", "/settings"} {
		owner.Sees(path)
	}
	tab.Press("End")
	tab.Sees("You've stopped viewing the tenant.")
	tab.Open(s.url + o.root + "/deliveries")
	tab.Sees("view_as_over")
	for _, action := range []string{"view_as.began", "view_as.ended"} {
		owner.Open(s.url + o.root + "/audit-log?action=" + action)
		owner.Sees("operator")
	}
	if got := len(o.customer.requests()); got != 1 {
		t.Errorf("looking sent %d requests", got-1)
	}
	quiet(t, tab)
	quiet(t, owner)
}

func suspensionLosesNothing(t *testing.T, s *stage, desk *visitor) {
	const events = 20 // one a second: more than can go out before the suspension
	o, beside := s.office(t, "Suspended Ltd"), s.office(t, "Beside Ltd")
	o.endpoint("/hooks", oneASecond)
	beside.endpoint("/hooks", oneASecond)
	for i := range events {
		o.emitted("order.paid", fmt.Sprintf(`{"n":%d}`, i))
	}
	tab := desk.tab(look.View{})
	tab.Open(s.url + "/console/tenants/" + o.tenant)
	tab.Press("More actions")
	tab.Press("Suspend")
	gives(tab, "/suspend", "its invoices are not paid")
	tab.Press("Suspend tenant")
	tab.Sees("Suspended Ltd is suspended.")
	more := 0
	eventually(t, patience, "its events are refused", func() bool {
		code := o.refusedEvent()
		if code == "" {
			more++ // taken before every process knew
			return false
		}
		if code != "403 tenant_suspended" {
			t.Errorf("a suspended tenant's event is answered %s", code)
		}
		return true
	})
	beside.goesOn(2) // within which the worker knows
	had := len(o.customer.requests())
	beside.goesOn(3)
	if n := len(o.customer.requests()); n != had {
		t.Errorf("%d requests went out for a suspended tenant", n-had)
	}
	finds(t, tab, s.url+"/console/queue", "suspended")
	n, waiting := o.deliveries("pending")
	if n != events+more-had {
		t.Errorf("%d deliveries wait, %d of %d have arrived", n, had, events+more)
	}
	owner := o.owner.tab(look.View{})
	owner.Open(s.url + o.root + "/deliveries/" + waiting)
	owner.Sees("On hold: the tenant is suspended")
	tab.Open(s.url + "/console/tenants/" + o.tenant)
	tab.Press("More actions")
	tab.Press("Resume")
	gives(tab, "/resume", "they have paid")
	tab.Press("Resume tenant")
	tab.Sees("Suspended Ltd is resumed.")
	eventually(t, patience, "its events are taken again", func() bool { return o.refusedEvent() == "" })
	o.await("delivered", events+more+1)
	o.customer.each(t, events+more+1)
	owner.Open(s.url + o.root + "/audit-log")
	for _, line := range []string{"Tenant suspended", "its invoices are not paid", "Tenant resumed", "they have paid"} {
		owner.Sees(line)
	}
	quiet(t, tab)
	quiet(t, owner)
}

func everythingIsPausedOnce(t *testing.T, s *stage, desk *visitor) {
	firms := []*firm{s.office(t, "First Ltd"), s.office(t, "Second Ltd")}
	for _, o := range firms {
		o.endpoint("/hooks", nil)
	}
	as := *desk
	as.t = t
	first, second := as.tab(look.View{}), operator(t, s).tab(look.View{})
	for tab, reason := range map[*look.Tab]string{first: "the network is being fixed", second: "me too"} {
		tab.Open(s.url + "/console/pauses")
		tab.Choose("Scope", "Everything")
		tab.Fill("Which", "everything")
		tab.Fill("Reason", reason)
	}
	first.Press("Pause")
	first.Sees("Deliveries are paused. In-flight requests finish.")
	second.Press("Pause") // on a page that knows nothing of it
	second.Sees("It was already paused by operator")
	for _, tab := range []*look.Tab{first, second} {
		tab.Sees("All deliveries are paused. Nothing is sent.")
		tab.Sees("the network is being fixed")
		if tab.Shows("me too") {
			t.Error("two operators made two pauses of one thing")
		}
	}
	eventually(t, patience, "the worker keeps to the pause", func() bool { return s.server.metric("posthorn_dispatch_pauses") == 1 })
	for _, o := range firms {
		for i := range 3 {
			o.emitted("order.paid", fmt.Sprintf(`{"n":%d}`, i))
		}
	}
	firms[0].endpoint("/proves-itself", nil) // so the worker works, and people need not wait
	for _, path := range []string{"", "/tenants", "/tenants/" + firms[0].tenant, "/queue", "/settings", "/audit"} {
		first.Open(s.url + "/console" + path)
		first.Sees("All deliveries are paused. Nothing is sent.")
	}
	for _, o := range firms {
		n, waiting := o.deliveries("pending")
		if got := o.customer.requests(); n != 3 || len(got) != 0 {
			t.Errorf("%d deliveries wait and %d went out although everything is paused", n, len(got))
		}
		owner := o.owner.tab(look.View{})
		owner.Open(s.url + o.root + "/deliveries/" + waiting)
		owner.Sees("is sent when the operator ends the pause")
	}
	first.Open(s.url + "/console/pauses")
	for _, tab := range []*look.Tab{first, second} {
		tab.Press("Resume")
		tab.Sees("Waiting deliveries are sent at their endpoints' own rates.")
		tab.Press("Resume")
		tab.Sees(map[*look.Tab]string{first: "The pause has ended.", second: "This pause has already ended."}[tab])
		tab.Sees("No pauses")
	}
	for _, o := range firms {
		o.await("delivered", 3)
		o.customer.each(t, 3)
	}
	quiet(t, first)
	quiet(t, second)
}
