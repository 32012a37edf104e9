package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db/listen"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/views/components"
)

func TestAnEventShowsItsRouting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description = "takes all" })
	w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description, s.EventTypes = "carts alone", []string{"cart.*"} })
	data := `{"b":1.0,  "a":"<b>"}`
	ev := w.emit(tn, "order.paid", data)
	path := tn.path + "/events/" + id.Event.Format(ev)
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	dev.get(path).want(200, "Matched 1 of 2 endpoints; held for 1 of them", "takes all", "carts alone", "not matched", `<span class="json-name">&#34;a&#34;</span>: <span class="json-string">&#34;&lt;b&gt;&#34;</span>`, "pending", ">Replay<")
	if got := dev.get(path + "/data").want(200); got.Body != data {
		t.Errorf("the exact bytes are %s", got.Body)
	}
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(path).want(200, "Your role can't see payloads").lacks("&lt;b&gt;", ">Replay<")
	viewer.get(path + "/data").want(http.StatusForbidden)

	dev.post(path+"/replay", nil).want(http.StatusConflict, "Not replayed", "still has a delivery in progress")
	w.attempt(w.delivery(ev), tried{status: 200, terminal: 2})
	dev.post(path+"/replay", url.Values{"reason": {"again"}}).to(path)
	dev.get(path).want(200, "1 new delivery sends it again.")
	if n := w.audited(tn, "event.replay"); n != 1 {
		t.Errorf("the replay is audited %d times", n)
	}
	dev.post(path+"/replay", url.Values{"endpoint": {"ep_nonsense"}}).want(http.StatusNotFound)
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", ev.String())
	dev.get(path).want(200, "has been deleted").lacks(">Replay<")
	dev.get(path + "/data").want(http.StatusGone)
}

func TestAnEventsDataIsDestroyedFromItsPageWithAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	box, boxEndpoint := w.inboxOf(tn)
	w.SetStatus(boxEndpoint.String(), "active")
	ev := w.emit(tn, "order.paid", `{"card":"canary-card"}`)
	w.receive(tn, boxEndpoint, listen.InboxRequest{Header: http.Header{}, Body: []byte(`{"card":"canary-card"}`)})
	path := tn.path + "/events/" + id.Event.Format(ev)
	admin := tn.of[access.Admin]
	tn.of[access.Developer].get(path).want(200).lacks("Delete event data")
	tn.of[access.Developer].post(path+"/expunge", url.Values{"reason": {"x"}}).want(http.StatusForbidden)
	admin.get(path).want(200, "Delete event data", "2 waiting deliveries are canceled", "can&#39;t be undone").keep("event")
	admin.post(path+"/expunge", nil).want(http.StatusBadRequest, "Nothing changed", "Enter a reason", "canary-card", `id="expunge-event" class="dialog" popover open`, `formmethod="dialog"`).keep("event-refused")
	admin.post(path+"/expunge", url.Values{"reason": {strings.Repeat("é", 501)}}).want(http.StatusBadRequest, "at most 500 characters", "éé", `id="expunge-event-reason-error"`, "canary-card")
	admin.post(path+"/expunge", url.Values{"reason": {"asked by <i>42</i>"}}).to(path)
	admin.get(path).want(200, "Event data deleted", "has been deleted", "Deleted on", "asked by &lt;i&gt;42", "canceled").keep("event-destroyed").lacks("canary-card", ">Replay<", "Delete event data")
	admin.get(box).want(200).lacks("canary-card")
	admin.post(path+"/expunge", url.Values{"reason": {"again"}}).to(path)
	if n := w.audited(tn, "event.expunge"); n != 1 {
		t.Errorf("it is audited %d times", n)
	}
}

func TestAReasonThatIsTooLongIsSaidBesideItsField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	ev := w.emit(tn, "order.paid", `{}`)
	dlv := w.delivery(ev)
	w.attempt(dlv, tried{status: 500, terminal: 3, reason: 1})
	dev, long := tn.of[access.Developer], url.Values{"reason": {"because " + strings.Repeat("é", 500)}}
	for path, dialog := range map[string]string{"/deliveries/" + id.Delivery.Format(dlv): "confirm-replay", "/events/" + id.Event.Format(ev): "replay-event"} {
		dev.post(tn.path+path+"/replay", long).want(http.StatusBadRequest, "<html", "at most 500 characters", "because éé", `id="`+dialog+`-reason-error"`)
	}
	if n := one[int](w, "SELECT count(*)::int FROM deliveries WHERE tenant_id = $1", tn.id.String()); n != 1 {
		t.Errorf("%d deliveries after two refusals", n)
	}
}

// A row says what became of the event, and a value by which people know it. Events that reached nobody are one click
// away.
func TestTheListOfEventsAnswersWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.EventTypes = []string{"order.*"} })
	failed := w.emit(tn, "order.paid", `{"amount":1,"order_id":"ord_failed"}`)
	w.attempt(w.delivery(failed), tried{status: 500, terminal: 3, reason: 1})
	sent := w.emit(tn, "order.sent", `{"order_id":"ord_sent"}`)
	w.attempt(w.delivery(sent), tried{status: 204, terminal: 2})
	w.emit(tn, "cart.left", `{"object":{"id":"cart_7"}}`)
	viewer := tn.of[access.Viewer]
	all := viewer.get(tn.path+"/events").want(200, "1 failed", "1 delivered", "matched nothing", "ord_failed", "object.id", "cart_7", `form="search"`).keep("events")
	for label, want := range map[string]string{"With failures": "ord_failed", "Matched nothing": "cart_7"} {
		list := viewer.get(pressed(all, label)).want(200, want, "1 row on this page")
		for _, other := range []string{"ord_failed", "ord_sent", "cart_7"} {
			if other != want {
				list.lacks(other)
			}
		}
	}
	viewer.get(searchFor(tn, "ord_failed")).want(200, "1 failed")
	viewer.get(tn.path+"/events/"+id.Event.Format(sent)).want(200, "Routing and deliveries", "delivered", "204, ")
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(tn.path+"/events").want(200, "1 failed").lacks("ord_failed", "cart_7")
}

// pressed is the address of the link with a text.
func pressed(a *page, label string) string {
	m := regexp.MustCompile(`href="([^"]*)"[^>]*>` + regexp.QuoteMeta(label) + `</a>`).FindStringSubmatch(a.Body)
	if m == nil {
		return "no link " + label
	}
	return html.UnescapeString(m[1])
}

func TestEventsAreListedAndFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	viewer := tn.of[access.Viewer]
	viewer.get(tn.path+"/events").want(200, "No events yet").lacks("Emit test event")
	for i := range 45 {
		w.emit(tn, "order.paid", fmt.Sprint(i))
	}
	w.emit(tn, "cart.left", "1")
	first := viewer.get(tn.path+"/events").want(200, "cart.left", "40 rows")
	second := viewer.get(leads(first, "next")).want(200, "6 rows")
	viewer.get(leads(second, "prev")).want(200, "cart.left")
	viewer.get(tn.path+"/events?type=cart.left&channel=").want(200, "1 row on this page", `value="cart.left"`)
	viewer.get(tn.path+"/events?type=no.such").want(200, "No events match these filters")
	viewer.get(tn.path+"/events?type=not%20a%20type").want(400, "Type is an event type")
}

func TestATestEventIsEmittedOnceWithItsExactBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	tn.of[access.Viewer].get(tn.path + "/events/new").want(http.StatusForbidden)
	form := confirmed(dev.get(tn.path+"/events/new?type=order.paid").want(200, `value="order.paid"`))
	form.Set("type", "order paid")
	form.Set("data", "{\r\n\"a\": }")
	dev.post(tn.path+"/events", form).want(400, "(line 2), where a value is expected", "&#34;a&#34;: }", `value="order paid"`)
	form.Set("data", `1,"key":"smuggled"`)
	dev.post(tn.path+"/events", form).want(400, "Invalid JSON")
	form.Set("data", "{\r\n  \"a\": 1.0\r\n}")
	dev.post(tn.path+"/events", form).want(400, "event type")
	form.Set("type", "order.paid")
	form.Set("channels", "eu, us")
	first := dev.post(tn.path+"/events", form).to(tn.path + "/events/evt_")
	if second := dev.post(tn.path+"/events", form).to(tn.path + "/events/evt_"); second != first {
		t.Error("pressing twice emitted twice")
	}
	dev.get(first).want(200, "1 endpoint matched.", "eu, us")
	if got := dev.get(first + "/data"); got.Body != "{\n  \"a\": 1.0\n}" {
		t.Errorf("the data is %q", got.Body)
	}
	form.Set("data", `"`+strings.Repeat("x", 300<<10)+`"`)
	form.Del("token")
	dev.post(tn.path+"/events", form).want(http.StatusRequestEntityTooLarge, "At most 262144 bytes.")
	if w.audited(tn, "event.emitted") != 1 {
		t.Error("who emitted it is not audited once")
	}
}

// A test event has the catalog's example, or the data of the last real event, without anybody typing it; and nothing is
// emitted by filling.
func TestATestEventIsFilledFromTheCatalogOrTheLastEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	w.SetStatus(ep.String(), "active")
	dev := tn.of[access.Developer]
	dev.post(tn.path+"/event-types", url.Values{"name": {"order.paid"}, "schema_check": {"off"}, "example": {`{"total":1.50}`}}).to(tn.path + "/event-types/order.paid")
	w.emit(tn, "order.paid", `{"real":12345678901234567890}`)
	w.emit(tn, "order.sent", `{"parcel":"<1Z>"}`)
	emitted := func() int { return one[int](w, "SELECT count(*)::int FROM events") }
	before := emitted()
	example, last := "{\n  &#34;total&#34;: 1.50\n}", "{\n  &#34;real&#34;: 12345678901234567890\n}"
	for form, send := range map[string]string{
		tn.path + "/events/new": tn.path + "/events",
		tn.path + "/endpoints/" + id.Endpoint.Format(ep) + "/test": tn.path + "/endpoints/" + id.Endpoint.Format(ep) + "/test",
	} {
		dev.get(form).want(200, `<option value="order.paid"`, "data-json", "Format", "Use the example", "Use the last real event")
		dev.get(form+"?type=order.paid").want(200, `value="order.paid"`, example)
		dev.get(form+"?type=order.sent").want(200, "&lt;1Z&gt;")
		typed := func(kind, data, fill string) url.Values {
			return url.Values{"type": {kind}, "data": {data}, "fill": {fill}, "key": {"k_1"}}
		}
		for fill, want := range map[string]string{"example": example, "last": last, "format": "{\n  &#34;b&#34;: 2,\n  &#34;a&#34;: 1e400\n}"} {
			dev.get(dev.post(send, typed("order.paid", `{"b":2,"a":1e400}`, fill)).to(form)).want(200, want, `value="order.paid"`)
		}
		dev.post(send, typed("order.paid", `{"b":}`, "format")).want(400, "Invalid JSON", "{&#34;b&#34;:}")
		dev.post(send, typed("order.lost", "{}", "example")).want(400, "no example")
		dev.post(send, typed("order.lost", `{"mine":1}`, "last")).want(400, "no event of this type", "mine")
	}
	if n := emitted(); n != before {
		t.Errorf("filling the forms emitted %d events", n-before)
	}
}

// TestALargeEventSaysWhereItsDataIs: its page shows the reference and the size of the data, and no download gives the
// reference for the data.
func TestALargeEventSaysWhereItsDataIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ev := w.emit(tn, "file.stored", `{}`)
	w.SQL("UPDATE events SET content_type = $2, data = $3 WHERE id = $1", ev.String(), event.ReferenceType, []byte(`{"size":1048576,"sha256":"00ff"}`))
	path, dev := tn.path+"/events/"+id.Event.Format(ev), tn.of[access.Developer]
	dev.get(path).want(200, "in object storage", "00ff", components.Bytes(1<<20)+" as received")
	dev.get(path+"/data").want(http.StatusServiceUnavailable, "can&#39;t be read right now").lacks("00ff")
}
