//go:build e2e && unix

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"posthorn/domain/id"
	"posthorn/tools/look"
)

// stops is what a walk finds on its way: the values of the parameters in paths, and who looks.
type stops struct {
	s        *stage
	office   *firm
	operator *visitor
	values   map[string]string
	queries  map[string]string // by path: what a page is asked with
	// destroyed is an event whose data is gone.
	destroyed string
	// stored is an event of a day in storage.
	stored string
	// feed is an endpoint that consumers read.
	feed string
}

// elsewhere are pages that lead away unless something is under way, which the journeys see, a stream without an end,
// the keys of a bot that no operator has turned on, and the metadata of a sign-in that no owner has set up.
var elsewhere = []string{"/", "/links/:token", "/.well-known/http-message-signatures-directory", "/.well-known/oauth-protected-resource/mcp/:tenant_id", "/portal/open", "/sign-in/code", "/sign-in/link", "/console/sign-in/code", "/console/setup/totp", "/t/:tenant_id/keys/:key_id/created", "/t/:tenant_id/changes", "/sso/:sso_tenant", "/sso/:sso_tenant/again", "/sso/:sso_tenant/callback"}

// forSignedIn are pages that show what they are about to who is signed in, unless operators open them to everybody.
var forSignedIn = []string{"/status"}

// TestEveryPageHoldsUpInABrowser opens every page that the server has, in either theme, wide and narrow: axe-core
// finds nothing wrong with it, it fits, its console is silent, and its content security policy holds. Pages are found
// by asking the server for its routes, so that none is forgotten.
func TestEveryPageHoldsUpInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := inhabit(t, s)
	pages := w.pages(t)
	t.Logf("%d pages", len(pages))
	if len(pages) < 50 {
		t.Errorf("only %d pages were found", len(pages))
	}
	const lanes = 3
	for lane := range lanes {
		t.Run(fmt.Sprintf("part %d", lane+1), func(t *testing.T) {
			t.Parallel()
			tabs := map[*visitor]*look.Tab{}
			for i := lane; i < len(pages); i += lanes {
				p := pages[i]
				if tabs[p.who] == nil {
					as := *p.who
					as.t = t
					tabs[p.who] = as.tab(look.View{})
				}
				inspect(t, tabs[p.who], s.url, p.path)
			}
		})
	}
}

// inspect opens a page in all views and holds it against what every page promises.
func inspect(t *testing.T, tab *look.Tab, url, path string) {
	t.Helper()
	said := len(tab.Messages())
	tab.Show(look.View{})
	tab.Open(url + path)
	inspectShown(t, tab, path)
	for _, message := range tab.Messages()[said:] {
		if strings.Contains(message, "Failed to load resource: the server responded with a status of 4") && look.Run(tab, chromedp.Evaluate[bool](`!!document.querySelector(".refusal, [data-error-summary]")`)) {
			continue // a refusal is what is looked at
		}
		t.Errorf("%s: the console says %s", path, message)
	}
}

// inspectShown is inspect for the page that is open.
func inspectShown(t *testing.T, tab *look.Tab, path string) {
	t.Helper()
	for _, v := range []look.View{{}, {Dark: true}, {Width: 360, Dark: true}, {Width: 360}} {
		tab.Show(v)
		if !v.Dark {
			if wide := tab.Misfit(); wide != "" {
				t.Errorf("%s, %s: %s", path, v, wide)
			}
		}
		// What the theme does not change is looked at once a width.
		var rules []string
		if v.Dark {
			rules = []string{look.Contrast}
		}
		for _, wrong := range tab.Violations(rules...) {
			t.Errorf("%s, %s: %s", path, v, wrong)
		}
		tab.Picture(strings.TrimPrefix(path, "/"), v)
	}
	for _, width := range []int64{900, 1000, 1024, 1200} {
		v := look.View{Width: width}
		tab.Show(v)
		wide := tab.Misfit()
		if wide != "" {
			t.Errorf("%s, %s: %s", path, v, wide)
		}
		if wide != "" || width == 1000 {
			tab.Picture(strings.TrimPrefix(path, "/"), v)
		}
	}
	if look.Pictures() {
		v := look.View{Width: 1000, Dark: true}
		tab.Show(v)
		tab.Picture(strings.TrimPrefix(path, "/"), v)
	}
}

// stopPolling answers who asks for a part of a page again that changes no more.
const stopPolling = 286

// stop is a page and who looks at it.
type stop struct {
	path string
	who  *visitor
}

var parameter = regexp.MustCompile(`:[a-z_]+`)

// pages are all whole pages among the server's routes: answers that are files, parts of pages or data are left out.
func (w *stops) pages(t *testing.T) (all []stop) {
	t.Helper()
	var routes []struct{ Method, Path, Access string }
	command(t, w.s.environ, place{}, &routes, "routes", "--json")
	nobody := w.s.visitor(t, "")
	for _, r := range routes {
		if r.Method != http.MethodGet || strings.HasPrefix(r.Path, "/api/") || strings.HasPrefix(r.Path, "/static/") ||
			strings.HasPrefix(r.Path, "/theme/") || slices.Contains(elsewhere, r.Path) {
			continue
		}
		who := nobody
		switch {
		case strings.HasPrefix(r.Access, "operator"):
			who = w.operator
		case strings.HasPrefix(r.Access, "person"), slices.Contains(forSignedIn, r.Path):
			who = w.office.owner
		}
		path := parameter.ReplaceAllStringFunc(r.Path, func(name string) string {
			value := w.values[r.Path+" "+name]
			if value == "" {
				value = w.values[name]
			}
			if value == "" {
				t.Errorf("%s: say in inhabit what %s is to be", r.Path, name)
			}
			return value
		}) + w.queries[r.Path]
		status, header, body := who.page(path)
		if status == stopPolling {
			continue
		}
		if status != http.StatusOK {
			t.Errorf("%s: %d %.300s", path, status, body)
			continue
		}
		if strings.HasPrefix(header.Get("Content-Type"), "text/html") && strings.Contains(body, "<html") && !strings.HasSuffix(path, "/html") {
			all = append(all, stop{path, who})
		}
	}
	for _, path := range []string{
		"/nothing", w.office.root + "/deliveries?status=failed", w.office.root + "/deliveries?status=nonsense", w.office.root + "/notices?unread=true", w.office.root + "/notices?kind=nonsense",
		w.office.root + "/events/" + w.destroyed, w.office.root + "/events/" + w.stored, w.office.root + "/events?type=order.paid", w.office.root + "/endpoints/ep_nonsense",
		w.office.root + "/endpoints/" + w.feed, w.office.root + "/endpoints/" + w.feed + "/settings",
	} {
		all = append(all, stop{path, w.office.owner})
	}
	return all
}

// inhabit makes a tenant in which everything has happened, by what its product, its customers and its members really
// do.
func inhabit(t *testing.T, s *stage) *stops {
	t.Helper()
	o := s.office(t, "Acme GmbH & Co. KG")
	w := &stops{s: s, office: o, operator: operator(t, s), values: map[string]string{}, queries: map[string]string{}}
	o.manage(http.MethodPost, "/event-types", settings{
		"name":        "order.paid",
		"description": "A customer has paid.",
		"schema":      settings{"type": "object"},
		"example":     settings{"total": 4200},
		"versions":    settings{"2": settings{"example": settings{"total": "42.00"}}},
	}, nil)
	// The platform's own catalogue is public, and the firm's is it.
	if _, err := s.sql.Exec(t.Context(), `UPDATE platform SET settings = settings || jsonb_build_object('tenant', $1::text, 'features', jsonb_build_object('catalogue', 'public'))`, o.tenant); err != nil {
		t.Fatal(err)
	}
	good, _ := o.endpoint("/good", settings{"description": "The shop", "event_types": []string{"order.*"}})
	bad, _ := o.endpoint("/a/path/that/is/rather/long/and/does/not/break/anywhere-because-it-has-no-spaces", settings{"event_types": []string{"order.refused"}})
	pair, _ := o.endpoint("/pair", settings{"secret_type": "ed25519", "public_signature": "both", "event_types": []string{"never.sent"}})
	o.manage(http.MethodPost, "/signing-keys/rotate", settings{}, nil)
	w.subscribe(t, pair)
	var feed struct{ ID string }
	o.manage(http.MethodPost, "/endpoints", settings{"kind": "feed", "description": "The warehouse", "event_types": []string{"order.*"}}, &feed)
	w.feed = feed.ID
	o.manage(http.MethodPost, "/feeds/"+feed.ID+"/consumers", settings{"name": "warehouse", "start": "oldest"}, nil)
	o.manage(http.MethodPost, "/feeds/"+feed.ID+"/consumers", settings{"name": "reports-of-a-department-with-a-long-name"}, nil)
	var queue struct{ ID string }
	o.manage(http.MethodPost, "/sources", settings{
		"name": "orders", "kind": "rabbitmq",
		"rabbitmq": settings{"url": "amqp://127.0.0.1:5679/a-virtual-host-with-a-long-name", "queue": "orders", "username": "u", "password": "p"},
	}, &queue)
	paid := o.emitted("order.paid", `{"order_id":"ord_1","total":4200,"text":"<b>not bold</b>"}`)
	o.await("delivered", 1)
	o.customer.status.Store(http.StatusUnprocessableEntity)
	o.emitted("order.refused", `{"order_id":"ord_2"}`)
	failed := o.await("failed", 1)
	o.customer.status.Store(http.StatusInternalServerError)
	o.emitted("order.late", `{"order_id":"ord_3"}`)
	o.await("retrying", 1)
	o.manage(http.MethodPost, "/endpoints/"+bad+"/pause", settings{}, nil)
	o.emitted("order.refused", `{"order_id":"ord_4"}`)
	o.await("held", 1)
	var job struct{ ID string }
	o.manage(http.MethodPost, "/replays", settings{"filter": settings{"status": "failed"}, "reason": "the receiver is fixed"}, &job)
	o.manage(http.MethodPost, "/invitations", settings{"email": "invited@example.com", "role": "viewer"}, nil)
	invitation := s.mailed(t, "invited@example.com", "/invitations/accept?")
	anonymous := s.visitor(t, "stranger@example.com")
	anonymous.send("/sign-up", url.Values{"tenant": {"Strange"}, "name": {"S"}, "email": {anonymous.email}})
	o.owner.send("/reset", url.Values{"email": {o.owner.email}})
	o.owner.send("/account/email", url.Values{"email": {"new-address@example.com"}, "password": {password}})
	o.owner.send("/account/totp/start", nil)
	w.destroyed = o.emitted("order.paid", `{"order_id":"ord_5"}`)
	o.manage(http.MethodPost, "/events/"+w.destroyed+"/expunge", settings{"reason": "asked by a customer"}, nil)
	o.manage(http.MethodPost, "/portal-links", settings{"role": "viewer", "brand_name": "Shop", "allow_secrets": true}, nil)
	w.rejected(t)
	w.store(t)
	var shared struct{ URL string }
	o.manage(http.MethodPost, "/deliveries/"+failed+"/shares", settings{}, &shared)
	var box struct{ ID, URL string }
	o.manage(http.MethodPost, "/inboxes", settings{}, &box)
	for name, value := range map[string]string{
		"/t/:tenant_id/endpoints/:endpoint_id/secrets :endpoint_id": pair,
		"/t/:tenant_id/endpoints/:endpoint_id/inbox :endpoint_id":   box.ID,
		"/inbox/:token :token":  box.URL[strings.LastIndex(box.URL, "/")+1:],
		":tenant_id":            o.tenant,
		":endpoint_id":          good,
		":delivery_id":          failed,
		":event_id":             paid,
		":name":                 "order.paid",
		":format":               "openapi",
		":job_id":               job.ID,
		":source_id":            queue.ID,
		":id":                   o.tenant,
		":mail_id":              s.aMail(t),
		":page":                 "delivery",
		"/docs/adr/:page :page": "0001-ledger",
		"/docs/ops/:page :page": "backup",
		":group":                "events",
		":operation":            "emitEvent",
		":code":                 "key_missing",
		":token":                strings.TrimPrefix(s.mailed(t, o.owner.email, "/unsubscribe/"), "/unsubscribe/"),
	} {
		w.values[name] = value
	}
	w.queries["/t/:tenant_id/deliveries/live"] = "?rows=&top=" + failed
	for path, link := range map[string]string{
		"/invitations/accept": invitation,
		"/verify-email":       s.mailed(t, anonymous.email, "/verify-email?"),
		"/reset/new":          s.mailed(t, o.owner.email, "/reset/new?"),
		"/change-email":       s.mailed(t, "new-address@example.com", "/change-email?"),
		"/console/setup":      operatorLink(t, s, "second@example.com"),
		"/shared/:tenant_id":  shared.URL,
	} {
		_, query, _ := strings.Cut(link, "?")
		w.queries[path] = "?" + query
	}
	return w
}

// rejected has the tenant's product emit in SQL what Posthorn must reject: other data under a key that was used.
func (w *stops) rejected(t *testing.T) {
	t.Helper()
	for _, data := range []string{`{"total":1}`, `{"total":2}`} {
		if _, err := w.s.sql.Exec(t.Context(), "SELECT posthorn.emit($1, 'order.paid', $2::json, idempotency_key => 'once')", w.office.tenant, data); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patience, "the console shows an event that was rejected", func() bool {
		_, _, page := w.operator.page("/console/outbox")
		return strings.Contains(page, w.office.tenant)
	})
}

// store puts some days of the tenant into storage, as far as pages can tell; one of them is on its way back.
func (w *stops) store(t *testing.T) {
	t.Helper()
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -31)
	w.stored = id.Event.Format(id.New(day.Add(time.Hour), [10]byte{1}))
	for _, statement := range []string{
		`INSERT INTO history_days (tenant_id, day, state, counts)
			SELECT $1, $2::date - n, CASE n WHEN 3 THEN 'returning' ELSE 'stored' END, '{"events":1200,"deliveries":3400}' FROM generate_series(0, 45) n WHERE n % 7 <> 5`,
		`INSERT INTO history_parts (tenant_id, day, low, high, object, digest, lines, n, bytes, size, counts, others, gone)
			SELECT $1, $2::date, $2::date, $2::date + 1, 'x', '', '', 1, 1, 1, '{}', '{}', true`,
	} {
		tenant, err := id.Tenant.Parse(w.office.tenant)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.sql.Exec(t.Context(), statement, tenant.String(), day); err != nil {
			t.Fatal(err)
		}
	}
}

// subscribe makes an endpoint the one of an AI client's subscription.
func (w *stops) subscribe(t *testing.T, endpoint string) {
	t.Helper()
	tenant, err := id.Tenant.Parse(w.office.tenant)
	if err != nil {
		t.Fatal(err)
	}
	endpointID, err := id.Endpoint.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.s.sql.Exec(t.Context(), `INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
		VALUES ($1, 'sub_00000000000000000000000000000000', $2, 'auth0|ada.lovelace@a-company-with-a-long-name.example.com', 'order.paid', '{"currency":"EUR","region":"eu-central-1"}', '', now() + interval '1 day')`,
		tenant.String(), endpointID.String()); err != nil {
		t.Fatal(err)
	}
}

// aMail is the id of a mail that was kept.
func (s *stage) aMail(t *testing.T) string {
	t.Helper()
	_, _, list := s.visitor(t, "").page("/dev/mail")
	return mailID.FindString(list)
}

func operatorLink(t *testing.T, s *stage, email string) string {
	t.Helper()
	var made struct{ Link string }
	command(t, append(slices.Clone(s.environ), "POSTHORN_BASE_URL="+s.url), place{}, &made, "operator", "create", "--email", email, "--json")
	return strings.TrimPrefix(made.Link, s.url)
}

// operator is one who has set their password and is signed in.
func operator(t *testing.T, s *stage) *visitor {
	t.Helper()
	v := s.visitor(t, fmt.Sprintf("operator-%d@example.com", time.Now().UnixNano()))
	v.send("/console/setup", url.Values{"token": {token(t, operatorLink(t, s, v.email))}, "password": {password}, "repeat": {password}, "name": {"Olga"}})
	if status, _, body := v.page("/console"); status != http.StatusOK || !strings.Contains(body, "Operator console") {
		t.Fatalf("the console answers an operator %d %.500s", status, body)
	}
	return v
}
