package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/domain/id"
)

func TestADifferenceIsAcceptedWithAReasonOnce(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	w.worker("worker-1", 0, false)
	w.exec(`INSERT INTO book_differences (tenant_id, day, found_at, seen_at, amount, gap, details)
		VALUES ($1, '2026-11-20', now(), now(), 3, 'delivered -3', '{"books":{"delivered":9},"tables":{"delivered":6}}')`, tenant)
	w.holds("/console", []string{"The books differ from the deliveries by 3 deliveries."}, nil)
	at := "/console/books/" + id.Tenant.Format(tenant) + "/accept"
	w.holds("/console/books", []string{"differs by 3", "1 page differs", at, `value="delivered -3"`}, []string{"differs by 3, accepted", "is accounted for"})
	form := url.Values{"day": {"2026-11-20"}, "gap": {"delivered -3"}}
	res := w.send("POST", at, form, w.cookie)
	if body := res.Body.String(); res.Code != http.StatusBadRequest || strings.Count(body, "popover open") != 1 ||
		!strings.Contains(body, "Enter a reason") {
		t.Errorf("without a reason: %d", res.Code)
	}
	form.Set("reason", "lost with the disk")
	for path, not := range map[string]url.Values{
		at: {"day": {"2026-11-20"}, "gap": {"delivered -2"}, "reason": {"x"}},
		"/console/books/" + id.Tenant.Format(w.tenant("Other")) + "/accept": form,
		at + "?": {"day": {"yesterday"}, "gap": {"delivered -3"}, "reason": {"x"}},
	} {
		if res := w.send("POST", path, not, w.cookie); res.Code != http.StatusSeeOther {
			t.Errorf("%s %v: %d", path, not, res.Code)
		}
		w.holds("/console/books", []string{"This discrepancy has changed", "differs by 3"}, []string{"lost with the disk"})
	}
	for _, want := range []string{"It stays on record", "was already accepted"} {
		if res := w.send("POST", at, form, w.cookie); res.Code != http.StatusSeeOther {
			t.Fatalf("%d", res.Code)
		}
		w.holds("/console/books", []string{want, "differs by 3, accepted", "is accounted for, except for discrepancies on 1 page", "Olga", "lost with the disk"}, []string{at})
	}
	w.holds("/console", []string{"All clear"}, []string{"The books differ"})
	w.holds("/console/audit?tenant="+id.Tenant.Format(tenant), []string{"books.accepted", "lost with the disk"}, nil)
}
