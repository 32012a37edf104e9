package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/tools/pagetest"
)

// operator is an operator's browser.
type operator struct {
	*browser
	id, session id.UUID
}

func (w *world) operator() operator {
	w.t.Helper()
	o := operator{id: db.NewID()}
	w.SQL("INSERT INTO operators (id, email, name, created_at) VALUES ($1, $2, 'Olga', now())", o.id.String(), o.id.String()+"@example.com")
	o.browser = w.signedIn(accounts.NewSession{Operator: &o.id, Life: time.Hour})
	o.cookie.Name = handlers.NewSessions(w.db, base).Cookie(account.Operator)
	o.session = id.UUID(one[[16]byte](w, "SELECT id FROM sessions WHERE operator_id = $1", o.id.String()))
	return o
}

func (o operator) author() db.Author {
	return db.Author{Kind: "operator", ID: id.Operator.Format(o.id)}
}

// looksAt lets the operator view a tenant's dashboard.
func (o operator) looksAt(tn tenant) {
	o.w.t.Helper()
	err := accounts.BeginView(o.w.t.Context(), o.w.db, accounts.NewView{
		Session:  o.session,
		Operator: o.id,
		Tenant:   tn.id,
		Reason:   "ticket 4711",
		Life:     access.MaxView,
	}, o.author())
	if err != nil {
		o.w.t.Fatal(err)
	}
}

func TestAVisitingOperatorSeesEveryPageAndSendsNoForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	own := w.things(tn)
	for name, kind := range kinds {
		if own[name] == "" {
			own[name] = kind.Format(db.NewID())
		}
	}
	own["format"] = "openapi"
	tn.of[access.Owner].post(tn.path+"/event-types", url.Values{"name": {"order.paid"}, "schema_check": {"off"}}).to(tn.path)
	_, box := w.inboxOf(tn)
	o := w.operator()
	o.looksAt(tn)
	before, pages := w.state(tn), 0
	for _, r := range w.routes {
		path := fill(r.Path, tn.path, own)
		if strings.HasSuffix(r.Path, "/:endpoint_id/inbox") {
			path = tn.path + "/endpoints/" + id.Endpoint.Format(box) + "/inbox"
		}
		entered := w.audited(tn, "view_as.page_viewed") + w.audited(tn, "view_as.form_sent")
		got := o.send(r.Method, path+queries[strings.TrimPrefix(r.Path, "/t/:tenant_id")], nil)
		if n := w.audited(tn, "view_as.page_viewed") + w.audited(tn, "view_as.form_sent"); n != entered+1 {
			t.Errorf("%s %s is entered %d times in the audit log", r.Method, r.Path, n-entered)
		}
		last := one[string](w, "SELECT concat_ws(' ', actor_kind, actor_id, object_id, reason) FROM audit_log WHERE tenant_id = $1 ORDER BY id DESC LIMIT 1", tn.id.String())
		if want := "operator " + id.Operator.Format(o.id) + " " + "/" + strings.TrimPrefix(strings.TrimPrefix(path, tn.path), "/") +
			" ticket 4711"; last != want {
			t.Errorf("%s %s is entered as %q, want %q", r.Method, r.Path, last, want)
		}
		if r.Method != http.MethodGet {
			if got.Status != http.StatusForbidden || !strings.Contains(got.Body, "view_as_read_only") {
				t.Errorf("%s %s answers an operator who looks %d", r.Method, r.Path, got.Status)
			}
			continue
		}
		pages++
		if strings.HasSuffix(r.Path, "/keys/:key_id/created") {
			got.to(tn.path + "/keys") // the page shows a key to the person who has just created it
			continue
		}
		if got.Status != http.StatusOK && got.Status != 286 {
			t.Errorf("%s %s answers an operator who looks %d: %s", r.Method, r.Path, got.Status, got.Body)
		}
		if strings.Contains(got.Body, "<html") && (!strings.Contains(got.Body, `class="view-as"`) || !strings.Contains(got.Body, "/console/view-as/end")) {
			t.Errorf("%s has no banner", r.Path)
		}
		for _, action := range pagetest.Actions(got.Body) {
			if strings.HasPrefix(action, "/t/") {
				t.Errorf("%s has a form to %s, which is refused", r.Path, action)
			}
		}
		for _, secret := range []string{"whsec_A", "phk_"} {
			if at := strings.Index(got.Body, secret); at >= 0 && len(got.Body) > at+40 &&
				!strings.ContainsAny(got.Body[at:at+40], " <…\"") {
				t.Errorf("%s shows a secret", r.Path)
			}
		}
	}
	if after := w.state(tn); after != before {
		t.Errorf("the tenant was %s and is %s", before, after)
	}
	if pages < 20 {
		t.Fatalf("%d pages", pages)
	}
	tn.of[access.Viewer].get(tn.path+"/audit-log?action=view_as.began").want(200, "view_as.began", "ticket 4711", id.Operator.Format(o.id))
	tn.of[access.Viewer].get(tn.path+"/audit-log").want(200, "view_as.page_viewed", "view_as.form_sent", "ticket 4711", id.Operator.Format(o.id))
	tn.of[access.Owner].post(tn.path+"/settings", url.Values{"name": {"Acme 2"}, "retention_days": {"30"}}).to(tn.path)
}

// TestAPageThatRenewsAPartOfItselfIsOneView: pages ask for parts of themselves every few seconds.
func TestAPageThatRenewsAPartOfItselfIsOneView(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	page := "/endpoints/" + id.Endpoint.Format(w.endpoint(tn, "https://hooks.example.com/in"))
	o := w.operator()
	o.looksAt(tn)
	o.get(tn.path + page).want(200)
	for range 3 {
		o.get(tn.path+page+"/verification", "HX-Request", "true").lacks("<html")
		o.get(tn.path+"/live", "HX-Request", "true").want(200)
	}
	got := one[string](w, "SELECT string_agg(object_id, ' ' ORDER BY id) FROM audit_log WHERE tenant_id = $1 AND action = 'view_as.page_viewed'", tn.id.String())
	if want := page + " /"; got != want {
		t.Errorf("the audit log has the pages %s, want %s", got, want)
	}
}

func TestAVisitEndsAndIsLimitedToOneTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, other := w.tenant("Mine"), w.tenant("Other")
	o := w.operator()
	closed := func(tn tenant) {
		t.Helper()
		before := w.counts(tn)
		o.get(tn.path+"/deliveries").want(http.StatusForbidden, "view_as_over", "/console/tenants/").lacks("view-as-actions")
		if w.counts(tn) != before {
			t.Error("a page that was not shown is entered in the audit log")
		}
	}
	closed(mine)
	o.looksAt(mine)
	o.get(mine.path+"/deliveries").want(200, "ticket 4711")
	closed(other)
	o.looksAt(other)
	o.get(other.path + "/deliveries").want(200)
	closed(mine)
	if w.audited(mine, "view_as.ended") != 1 {
		t.Error("the look at the first tenant did not end with the second")
	}
	w.SQL("UPDATE operator_views SET began_at = began_at - interval '61 minutes', expires_at = expires_at - interval '61 minutes'")
	closed(other)
	o.looksAt(other)
	if _, err := accounts.EndView(t.Context(), w.db, o.session, o.author()); err != nil {
		t.Fatal(err)
	}
	closed(other)
	o.looksAt(other)
	w.SQL("DELETE FROM sessions WHERE id = $1", o.session.String())
	if got := o.get(other.path + "/deliveries"); got.Status != http.StatusSeeOther {
		t.Errorf("a look outlives its session: %d", got.Status)
	}
}

func TestAnOperatorActsOnlyAfterAskingAndNeverWithSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	ep := id.Endpoint.Format(w.endpoint(tn, "https://hooks.example.com/in"))
	o := w.operator()
	o.looksAt(tn)
	o.post(tn.path+"/endpoints/"+ep+"/pause", nil).want(http.StatusForbidden, "view_as_read_only")
	if err := accounts.ActInView(t.Context(), w.db, o.session, tn.id, "they asked us to", o.author()); err != nil {
		t.Fatal(err)
	}
	o.get(tn.path+"/").want(200, "view-as-acting", "until <time")
	o.post(tn.path+"/endpoints/"+ep+"/pause", nil).to(tn.path)
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'endpoint.pause' AND actor_kind = 'operator' AND actor_id = $1", id.Operator.Format(o.id)); n != 1 {
		t.Errorf("the pause is entered %d times as the operator's", n)
	}
	email := o.id.String() + "@example.com"
	if got := one[string](w, "SELECT reason || ' ' || actor_name FROM audit_log WHERE action = 'endpoint.pause'"); got != "they asked us to "+email {
		t.Errorf("the pause is entered with %q", got)
	}
	tn.of[access.Owner].get(tn.path+"/audit-log?action=endpoint.pause").want(200, "Operator "+email, "they asked us to")
	w.portalSession(tn, access.Viewer).get(tn.path + "/audit-log").lacks(email)
	for path, form := range map[string]url.Values{
		"/endpoints/" + ep + "/secrets": {"overlap": {"0"}},
		"/keys":                         {"name": {"k"}, "scopes": {"events:write"}},
		"/members/invite":               {"email": {"x@example.com"}, "role": {"owner"}},
		"/settings/transfer":            {"member": {"mem_x"}},
	} {
		o.post(tn.path+path, form).want(http.StatusForbidden, "role_missing")
	}
	// Nor is it offered the forms that would be refused.
	o.get(tn.path + "/keys/new").want(200).lacks(`action="` + tn.path + `/keys"`)
	o.get(tn.path+"/settings").want(200).lacks(tn.path+"/settings/delete", tn.path+"/settings/transfer")
	if got := o.get(tn.path + "/settings/delete"); got.Status == http.StatusOK {
		got.lacks(`method="post" action="`+tn.path+`/settings/delete"`, `action="`+tn.path+`/settings/export"`, "you included")
	}
	if got := o.post(tn.path+"/endpoints", url.Values{"url": {"https://new.example.com/in"}, "event_types": {"*"}}); strings.Contains(got.Body, "whsec_") {
		t.Error("an operator is shown the secret of a new endpoint")
	}
}

// If a visit can't be written to the audit log, the dashboard stays closed.
func TestAPageThatCantBeAuditedIsNotShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	o := w.operator()
	o.looksAt(tn)
	owner, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.Background()) }()
	if _, err := owner.Exec(t.Context(), "ALTER TABLE posthorn.audit_log ADD CHECK (action <> 'view_as.page_viewed') NOT VALID"); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", base+tn.path+"/members", nil)
	r.AddCookie(o.cookie)
	res := httptest.NewRecorder()
	w.engine.ServeHTTP(res, r)
	if res.Code != http.StatusInternalServerError || strings.Contains(res.Body.String(), "owner-") {
		t.Errorf("%d %s", res.Code, res.Body)
	}
}
