package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

func TestWhatTheOutboxRejectedIsCountedAndNamedWithoutWhatItCarries(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	if page := w.page("/console/outbox"); !strings.Contains(page, "No rejected events") {
		t.Error("an empty list does not say so")
	}
	acme, umbrella, nobody := w.tenant("Acme"), w.tenant("Umbrella"), db.NewID()
	reject := func(tenant id.UUID, kind, code string, n int) (last string) {
		for i := range n {
			eventID := id.New(time.Now().Add(time.Duration(i)*time.Millisecond), [10]byte{
				byte(len(code)),
				byte(len(kind)), tenant[15],
			})
			w.exec("INSERT INTO outbox_rejected (id, tenant_id, type, data, code, detail) VALUES ($1, $2, $3, '{\"card\":\"s3cr3t\"}', $4, 'Add the type <first>.')", eventID, tenant, kind, code)
			last = id.Event.Format(eventID)
		}
		return last
	}
	a := reject(acme, "order.paid", "unknown_event_type", 3)
	b := reject(umbrella, "order.sent", "schema_mismatch", 2)
	c := reject(nobody, "order.gone", "not_found", 1)
	page := w.page("/console/outbox")
	for _, want := range []string{
		"6 events are waiting", "unknown_event_type", "schema_mismatch", "Acme", "Umbrella", "no such tenant", "order.paid", a, b, c, "17 B", "Add the type &lt;first&gt;.",
		"/console/outbox?code=unknown_event_type&amp;tenant=" + id.Tenant.Format(acme),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "s3cr3t") {
		t.Error("the page shows what an event carries")
	}
	for query, shown := range map[string][]string{
		"?code=schema_mismatch":                                       {b},
		"?tenant=" + id.Tenant.Format(acme):                           {a},
		"?tenant=" + id.Tenant.Format(acme) + "&code=schema_mismatch": nil,
		"?tenant=" + id.Tenant.Format(nobody):                         {c},
		"?code=x":                                                     nil,
	} {
		page := w.page("/console/outbox" + query)
		for _, one := range []string{a, b, c} {
			if want := len(shown) > 0 && shown[0] == one; strings.Contains(page, one) != want {
				t.Errorf("%s: shows %s: %t", query, one, !want)
			}
		}
	}
	if res := w.send("GET", "/console/outbox?tenant=nonsense", nil, w.cookie); res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), "ten_ and 26") {
		t.Errorf("a tenant that is none: %d", res.Code)
	}
	reject(acme, "order.many", "busy", 60)
	first := w.page("/console/outbox")
	_, next, found := strings.Cut(first, `href="/console/outbox?after=`)
	if !found {
		t.Fatal("a long list has no second page")
	}
	next, _, _ = strings.Cut(next, `"`)
	if second := w.page("/console/outbox?after=" + next); !strings.Contains(second, a) || strings.Contains(first, a) {
		t.Error("the second page does not go on")
	}
}
