//go:build e2e && unix

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/tools/look"
)

// shaped is a tenant whose events are transformed, batched, too large, or late, and its pages by name.
type shaped struct {
	*firm
	pages map[string]string
}

// textExpression fails on events that have no customer.
const textExpression = `{
  "text": "Invoice " + data.number + " of " + data.customer.name + " is " + data.state,
  "lines": data.lines.map(l, {"sku": l.sku, "total": l.price * l.quantity})
}`

func invoice(n int, customer string) string {
	return fmt.Sprintf(`{"number":"2031-%04d",%s"state":"overdue","lines":[{"sku":"paper-a4","price":5,"quantity":%d},{"sku":"toner","price":79,"quantity":1}]}`, n, customer, n)
}

// shape emits events to endpoints of every shape, and waits until each has ended as it must.
func shape(t *testing.T, s *stage) *shaped {
	t.Helper()
	o := &shaped{firm: s.office(t, "Nordwind Handelsgesellschaft"), pages: map[string]string{}}
	o.transformed()
	o.batched()
	o.ended()
	o.alerted()
	o.read()
	return o
}

// emitOf sends an event with further fields.
func (o *shaped) emitOf(fields settings) (eventID string) {
	o.t.Helper()
	var made struct{ ID string }
	o.manage(http.MethodPost, "/events", fields, &made)
	return made.ID
}

// listed waits until a list of deliveries has a row, and returns the newest one's id.
func (o *shaped) listed(query string) (deliveryID string) {
	o.t.Helper()
	eventually(o.t, patience, "a delivery of "+query, func() bool {
		var list struct{ Data []struct{ ID string } }
		o.manage(http.MethodGet, "/deliveries?limit=1&"+query, nil, &list)
		if len(list.Data) > 0 {
			deliveryID = list.Data[0].ID
		}
		return deliveryID != ""
	})
	return deliveryID
}

func (o *shaped) transformed() {
	o.t.Helper()
	bill, _ := o.endpoint("/hooks/billing", settings{
		"description": "Billing in the ERP", "event_types": []string{"invoice.*"},
		"transformation": settings{"kind": "cel", "expression": textExpression, "method": "PUT", "headers": settings{"X-Invoice": "data.number"}},
	})
	for n := range 3 {
		o.emitted("invoice.overdue", invoice(n+1, `"customer":{"name":"Müller & Söhne","email":"a@example.com"},`))
	}
	sent := o.listed("status=delivered&endpoint=" + bill)
	failing := o.emitted("invoice.overdue", invoice(9, ""))
	held := o.listed("wait=transformation&endpoint=" + bill)
	chat, _ := o.endpoint("/services/T000/B000/slack", settings{"verification": "simple", "event_types": []string{"note.*"}, "transformation": settings{"preset": "slack"}})
	thin, _ := o.endpoint("/thin", settings{"description": "Fetches by link", "event_types": []string{"order.paid"}, "transformation": settings{"preset": "thin"}})
	o.emitted("order.paid", `{"total":4200}`)
	o.pages["transformation"] = "/endpoints/" + bill + "/transformation"
	o.pages["transformation-event"] = "/endpoints/" + bill + "/transformation?event=" + failing
	o.pages["transformation-preset"] = "/endpoints/" + chat + "/transformation"
	o.pages["delivery-put"] = "/deliveries/" + sent
	o.pages["delivery-untransformed"] = "/deliveries/" + held
	o.pages["deliveries-untransformed"] = "/deliveries?wait=transformation"
	o.pages["delivery-thin"] = "/deliveries/" + o.listed("status=delivered&endpoint="+thin)
}

func (o *shaped) batched() {
	o.t.Helper()
	load, _ := o.endpoint("/load", settings{
		"description": "Warehouse", "verification": "simple", "event_types": []string{"row.*"}, "batch_max_events": 3, "batch_max_wait_ms": 2000, "expires_after_seconds": 3600, "large_payloads": "link",
	})
	for n := range 3 {
		o.emitted("row.added", fmt.Sprintf(`{"row":%d}`, n))
	}
	one := o.listed("status=delivered&endpoint=" + load)
	o.pages["delivery-batch"] = "/deliveries/" + one
	o.pages["endpoint-batches"] = "/endpoints/" + load
	o.pages["settings-batches"] = "/endpoints/" + load + "/settings"
	_, _, page := o.owner.page(o.root + o.pages["delivery-batch"])
	batch := regexp.MustCompile(`bat_[a-z0-9]+`).FindString(page)
	if batch == "" {
		o.t.Fatalf("the page of %s names no batch", one)
	}
	o.pages["deliveries-batch"] = "/deliveries?batch=" + batch
}

// ended are deliveries that ended without a request.
func (o *shaped) ended() {
	o.t.Helper()
	late, _ := o.endpoint("/quotes", settings{"event_types": []string{"quote.made"}})
	o.manage(http.MethodPost, "/endpoints/"+late+"/pause", settings{}, nil)
	o.emitOf(settings{"type": "quote.made", "data": settings{"price": 12}, "expires_in": 1})
	o.pages["delivery-expired"] = "/deliveries/" + o.listed("status=expired")
	o.pages["deliveries-expired"] = "/deliveries?status=expired"
	small, _ := o.endpoint("/small", settings{"event_types": []string{"file.*"}})
	large, _ := o.endpoint("/large", settings{"event_types": []string{"file.*"}, "large_payloads": "link"})
	event := o.emitOf(settings{"type": "file.stored", "data": settings{"name": "scan.pdf", "content": strings.Repeat("QUJD", 90_000)}})
	o.pages["delivery-too-large"] = "/deliveries/" + o.listed("status=failed&endpoint="+small)
	o.pages["delivery-link"] = "/deliveries/" + o.listed("status=delivered&endpoint="+large)
	o.pages["event-large"] = "/events/" + event
	if status, _, data := o.owner.page(o.root + "/events/" + event + "/data"); status != http.StatusOK || !strings.Contains(data, strings.Repeat("QUJD", 90_000)) {
		o.t.Errorf("the data of a large event: %d, %d bytes", status, len(data))
	}
}

func (o *shaped) alerted() {
	o.t.Helper()
	o.pages["alerts-none"] = "/alerts"
	o.endpoint("/services/T000/B000/alerts", settings{"description": "#ops in Slack", "verification": "simple", "event_types": []string{"posthorn.*"}, "transformation": settings{"preset": "slack"}})
	o.endpoint("/v2/enqueue", settings{
		"description": "PagerDuty of the team for integrations with customers", "verification": "simple", "event_types": []string{"posthorn.endpoint.*", "posthorn.quota.reached"},
		"transformation": settings{"preset": "pagerduty", "variables": settings{"routing_key": "R0123456789"}},
	})
	o.manage(http.MethodPatch, "/tenant", settings{"muted_notices": []string{"key.created", "secret.rotated"}}, nil)
	o.pages["alerts"] = "/alerts"
	o.pages["endpoint-new-alerts"] = "/endpoints/new?for=alerts"
	o.pages["endpoint-new"] = "/endpoints/new"
}

// read has a source whose queue can't be read, with messages that became no event.
func (o *shaped) read() {
	o.t.Helper()
	var made struct{ ID string }
	o.manage(http.MethodPost, "/sources", settings{
		"name": "orders-of-the-old-shop-system", "kind": "rabbitmq", "mapping": `{"type": "order." + body.status, "key": body.customer_id, "data": body}`,
		"rabbitmq": settings{"url": "amqp://127.0.0.1:5679/a-virtual-host-with-a-long-name", "queue": "orders", "username": "u", "password": "p"},
	}, &made)
	source, err := id.Source.Parse(made.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	tenant, err := id.Tenant.Parse(o.tenant)
	if err != nil {
		o.t.Fatal(err)
	}
	first := db.NewID()
	for i, detail := range []string{"The mapping failed: no such key: customer_id.", "It is no object: a message must be an object, or the mapping must make one of it."} {
		of := first
		if i > 0 {
			of = db.NewID()
		}
		o.asWorker(`INSERT INTO posthorn.outbox_rejected (id, tenant_id, source_id, type, data, code, detail) VALUES ($1, $2, $3, '', $4, 'mapping_failed', $5)`,
			of.String(), tenant.String(), source.String(), []byte(`{"text":"{\"status\":\"paid\"}","key":"k7","headers":{}}`), detail)
	}
	eventually(o.t, patience, "the source fails", func() bool {
		_, _, page := o.owner.page(o.root + "/sources/" + made.ID)
		return strings.Contains(page, "can&#39;t be read")
	})
	o.pages["sources"] = "/sources"
	o.pages["source"] = "/sources/" + made.ID
	o.pages["source-rejected"] = "/sources/" + made.ID + "?rejected=" + id.Event.Format(first)
	o.pages["source-new"] = "/sources/new"
}

// asWorker executes a statement with the rights of a worker.
func (o *shaped) asWorker(statement string, args ...any) {
	o.t.Helper()
	err := pgx.BeginFunc(o.t.Context(), o.sql, func(tx pgx.Tx) error {
		if _, err := tx.Exec(o.t.Context(), "SET LOCAL ROLE posthorn_worker"); err != nil {
			return err
		}
		_, err := tx.Exec(o.t.Context(), statement, args...)
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// alertOperators has alerts of the platform, open and ended, and a channel.
func (o *shaped) alertOperators(operator *visitor) {
	o.t.Helper()
	operator.send("/console/alerts/channels", url.Values{
		"preset": {"pagerduty"}, "pagerduty_routing_key": {"R0123456789"}, "url": {o.customer.url + "/v2/enqueue"}, "description": {"PagerDuty of the night shift"},
	})
	operator.send("/console/alerts/mute", url.Values{"kind": {"tenant_noisy"}, "muted": {"true"}})
	for _, a := range []struct{ kind, title, message, ended string }{
		{"deliveries_overdue", "Deliveries of Nordwind Handelsgesellschaft are overdue", "The oldest has been due for 14 minutes.\n1,204 deliveries wait.", ""},
		{"worker_lost", "A worker stopped without signing off: worker-7c9d8b6f5-x2x4z", "Its last sign was at 02:13 UTC.", "now()"},
	} {
		ended := "NULL::timestamptz"
		if a.ended != "" {
			ended = a.ended
		}
		o.asWorker(`INSERT INTO posthorn.platform_alerts (id, kind, key, title, message, page, opened_at, seen_at, ended_at, sent)
			VALUES ($1, $2, $2, $3, $4, '', now() - interval '20 minutes', now() + interval '1 hour', `+ended+`, true)`, db.NewID().String(), a.kind, a.title, a.message)
	}
}

// TestPagesOfShapedDeliveriesHoldUpInABrowser opens the pages of transformations, batches, expiry, large payloads,
// alerts, and sources with what they have in use, and in the states that only a form leads to. Each holds what every
// page does.
func TestPagesOfShapedDeliveriesHoldUpInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t, "POSTHORN_HISTORY_URL=file://"+t.TempDir(), "POSTHORN_MAX_LARGE_PAYLOAD=1000000")
	o := shape(t, s)
	desk := operator(t, s)
	o.alertOperators(desk)
	t.Run("pages", func(t *testing.T) {
		t.Parallel()
		tab := o.owner.as(t).tab(look.View{})
		for name, path := range o.pages {
			seen(t, tab, s.url+o.root+path, name)
		}
	})
	t.Run("forms", func(t *testing.T) {
		t.Parallel()
		tab := o.owner.as(t).tab(look.View{})
		o.forms(t, tab)
	})
	t.Run("console", func(t *testing.T) {
		t.Parallel()
		tab := desk.as(t).tab(look.View{})
		seen(t, tab, s.url+"/console/alerts", "console-alerts")
		tab.Show(look.View{})
		tab.Open(s.url + "/console/alerts")
		tab.Fill("URL", "ftp://example.com/hooks") // a URL to the browser
		tab.Press("Add channel")
		tab.Sees("No channel added")
		inspectShown(t, tab, "console-alerts-refused")
		for _, name := range []string{"delivery-expired", "delivery-untransformed", "delivery-batch"} {
			seen(t, tab, s.url+"/console/tenants/"+o.tenant+o.pages[name], "console-"+name)
		}
	})
}

// seen opens a page and inspects it under a name.
func seen(t *testing.T, tab *look.Tab, address, name string) {
	t.Helper()
	tab.Show(look.View{})
	tab.Open(address)
	inspectShown(t, tab, name)
}

// as is the visitor in another test.
func (v *visitor) as(t *testing.T) *visitor {
	other := *v
	other.t = t
	return &other
}

// forms are the states of pages that a form leads to.
func (o *shaped) forms(t *testing.T, tab *look.Tab) {
	t.Helper()
	at := o.s.url + o.root
	open := func(name string) {
		tab.Show(look.View{})
		tab.Open(at + o.pages[name])
	}
	tried := func(name string) {
		tab.Press("Try on event")
		page, _, _ := strings.Cut(o.pages[name], "?") // it may show the same for the event that it was opened with
		tab.Arrives(o.root + page + "/try")
	}
	open("transformation")
	tried("transformation")
	tab.Sees("Nothing was sent or changed")
	inspectShown(t, tab, "form-tried")
	open("transformation-event")
	tried("transformation-event")
	tab.Sees("It can't be applied to this event")
	inspectShown(t, tab, "form-tried-failed")
	open("transformation")
	tab.Press("Run over the last 50 events")
	tab.Sees("Events that failed")
	inspectShown(t, tab, "form-ran")
	open("transformation")
	tab.Fill("Expression", `{"text": data.number + }`)
	tab.Press("Save transformation")
	tab.Sees("Invalid transformation")
	inspectShown(t, tab, "form-refused")
	open("source")
	tab.Fill("Sample message", `{"text": "{\"status\": \"paid\"}"}`)
	tab.Press("Try mapping")
	tab.Sees("Nothing was stored")
	inspectShown(t, tab, "form-source-tried")
	open("source-new")
	tab.Press("Create source")
	tab.Sees("The source wasn't created")
	inspectShown(t, tab, "form-source-refused")
	open("settings-batches")
	unfold(tab)
	inspectShown(t, tab, "form-settings-open")
	open("endpoint-new")
	unfold(tab)
	inspectShown(t, tab, "form-new-open")
}

// unfold opens all groups of a form.
func unfold(tab *look.Tab) {
	look.Run(tab, chromedp.Evaluate[bool](`document.querySelectorAll("details.fold").forEach((e) => { e.open = true }), true`))
}
