package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/pause"
	"posthorn/tools/pagetest"
)

// pagesOfAll are pages that every tenant has.
var pagesOfAll = []string{"/", "/endpoints", "/deliveries", "/events", "/event-types", "/keys", "/members", "/settings", "/audit-log", "/notices", "/alerts", "/portal", "/signature"}

func TestASuspendedTenantIsToldOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	path := w.add()
	by := db.Author{Kind: "operator", ID: "opr_x"}
	if _, err := accounts.SetTenantState(t.Context(), w.db, w.tn.id, "suspended", "invoice <42> is overdue", by); err != nil {
		t.Fatal(err)
	}
	owner := w.as(access.Owner)
	for _, page := range append([]string{strings.TrimPrefix(path, w.root), strings.TrimPrefix(path, w.root) + "/settings", "/endpoints/new", "/keys/new"},
		pagesOfAll...) {
		got := owner.get(w.root+page).want(200, "This tenant is suspended", "Suspended since", "invoice &lt;42&gt; is overdue").lacks("Add endpoint</a>")
		for _, action := range pagetest.Actions(got.Body) {
			own := strings.Contains(action, "/notices/") || strings.HasSuffix(action, "/leave")
			if strings.HasPrefix(action, "/t/") && !own {
				t.Errorf("%s offers a form to %s, which is rejected", page, action)
			}
		}
	}
	owner.get(w.root + "/").want(200).keep("suspended-overview")
	owner.get(w.root + "/endpoints/new").want(200).keep("suspended-new")
	owner.post(w.root+"/settings", url.Values{"name": {"A better name"}, "retention_days": {"30"}}).
		want(http.StatusForbidden, "<h1>This tenant is suspended</h1>", "A better name", "invoice &lt;42&gt; is overdue", "tenant_suspended").keep("suspended-refused")
	owner.post(path+"/secrets", url.Values{"secret": {"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"}}).want(http.StatusForbidden).lacks("whsec_")
	owner.post(w.root+"/notices/preferences", nil).to(w.root + "/alerts")
	w.portalSession(w.tn, access.Developer).get(w.root+"/").want(200, "This tenant is suspended").lacks("overdue")
	owner.get(w.root+"/notices").want(200, "The tenant was suspended by the operator", "overdue")

	if _, err := accounts.SetTenantState(t.Context(), w.db, w.tn.id, "active", "paid", by); err != nil {
		t.Fatal(err)
	}
	owner.get(w.root+"/endpoints").want(200, "Add endpoint").lacks("This tenant is suspended")
	owner.get(w.root+"/notices").want(200, "The tenant was resumed by the operator")
	if n := one[int](w.world, "SELECT count(*) FROM notices WHERE tenant_id = $1 AND kind IN ('tenant.suspended', 'tenant.resumed')", w.tn.id.String()); n != 2 {
		t.Errorf("%d notices", n)
	}
}

func TestATenantIsToldThatAnOperatorPausedItsDeliveries(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	other := w.tenant("Other")
	by := db.Author{Kind: "operator", ID: "opr_x"}
	row, made, err := accounts.PauseDispatch(t.Context(), w.db, pause.Pause{Scope: pause.Tenant, Tenant: w.tn.id}, "your receiver is down", by)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	viewer := w.as(access.Viewer)
	for _, page := range []string{"/", "/endpoints", "/deliveries", "/events", "/notices"} {
		viewer.get(w.root+page).want(200, "Deliveries of this tenant are paused by the operator", "Paused since", "your receiver is down")
	}
	w.as(access.Owner).get(w.root+"/endpoints").want(200, "Add endpoint").keep("paused-endpoints")
	other.of[access.Viewer].get(other.path+"/").want(200).lacks("paused by the operator", "receiver is down")
	if _, err := accounts.ResumeDispatch(t.Context(), w.db, row.ID, "it works again", by); err != nil {
		t.Fatal(err)
	}
	viewer.get(w.root + "/").want(200).lacks("are paused by the operator")
	viewer.get(w.root+"/notices").want(200, "Deliveries were paused by the operator", "Deliveries were resumed by the operator")
	if _, _, err := accounts.PauseDispatch(t.Context(), w.db, pause.Pause{Scope: pause.Platform}, "moving the database", by); err != nil {
		t.Fatal(err)
	}
	other.of[access.Viewer].get(other.path+"/").want(200, "Deliveries are paused for all tenants").lacks("moving the database")
}
