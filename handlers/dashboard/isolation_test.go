package dashboard_test

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/domain/access"
	"posthorn/domain/bulk"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/dashboard"
)

// things are the objects that the paths of a tenant's pages name.
func (w *world) things(tn tenant) map[string]string {
	w.t.Helper()
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	ev := w.emit(tn, "order.paid", `{"secret":"of `+tn.path+`"}`)
	dlv := w.delivery(ev)
	w.attempt(dlv, tried{status: 500, answer: "no", terminal: 3, reason: 1})
	var job id.UUID
	err := w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		j, err := deliveries.StartBulkJob(
			w.t.Context(),
			q,
			tn.id,
			db.Author{Kind: "command"},
			deliveries.NewBulkJob{Kind: bulk.Replay, Filter: bulk.Filter{Status: "failed"}},
		)
		job = j.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var share show.DeliveryShare
	err = w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		share, _, err = deliveries.CreateShare(w.t.Context(), q, deliveries.NewShare{Tenant: tn.id, Delivery: dlv, Seconds: 3600})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var key id.UUID
	err = w.db.Tenant(w.t.Context(), tn.id, func(q *db.Tx) error {
		row, _, err := accounts.MakeKey(w.t.Context(), q, accounts.NewKey{
			Tenant: &tn.id,
			Name:   "k",
			Scopes: access.TenantScopes(),
		})
		key = row.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return map[string]string{
		"key_id":          id.Key.Format(key),
		"share_id":        id.Share.Format(share.ID),
		"subscription_id": w.subscription(tn, ep),
		"job_id":          id.Job.Format(job),
		"source_id":       path.Base(tn.of[access.Owner].post(tn.path+"/sources", sourceForm()).to(tn.path + "/sources/src_")),
		"endpoint_id":     id.Endpoint.Format(ep),
		"event_id":        id.Event.Format(ev),
		"delivery_id":     id.Delivery.Format(dlv),
		"name":            "order.paid",
		"member_id":       id.Member.Format(id.UUID(one[[16]byte](w, "SELECT id FROM memberships WHERE tenant_id = $1 AND role = 'viewer'", tn.id.String()))),
	}
}

// kinds are the kinds of ids in paths.
var kinds = map[string]id.Kind{
	"endpoint_id":    id.Endpoint,
	"event_id":       id.Event,
	"delivery_id":    id.Delivery,
	"key_id":         id.Key,
	"job_id":         id.Job,
	"secret_id":      id.Secret,
	"member_id":      id.Member,
	"invitation_id":  id.Invitation,
	"notice_id":      id.Notice,
	"portal_link_id": id.PortalLink,
	"share_id":       id.Share,
	"source_id":      id.Source,
}

// queries are the parameters that pages need beside their path.
var queries = map[string]string{"/deliveries/live": "?rows=&top=dlv_00000000000000000000000000"}

// forms are the fields without which a form can't be read.
var forms = map[string]url.Values{
	"/members/:member_id/role":       {"role": {"developer"}},
	"/deliveries/:delivery_id/share": {"expires_in": {"3600"}},
}

var parameter = regexp.MustCompile(`:([a-z_]+)`)

// fill writes ids into a route's path.
func fill(path, tenant string, ids map[string]string) string {
	path = strings.Replace(path, ":"+handlers.TenantParam, strings.TrimPrefix(tenant, "/t/"), 1)
	return parameter.ReplaceAllStringFunc(path, func(name string) string { return url.PathEscape(ids[name[1:]]) })
}

// requestID is the part in which two equal responses differ.
var requestID = regexp.MustCompile(`req_[a-z0-9…]+`)

func same(a, b *page) bool {
	return a.Status == b.Status && requestID.ReplaceAllString(a.Body, "") == requestID.ReplaceAllString(b.Body, "")
}

// TestForeignPagesAnswerAsUnknownOnes calls every page with the ids of another tenant, with unknown ids, and with
// malformed ids, as a member of the one tenant, as a member of the other, and as nobody.
func TestForeignPagesAnswerAsUnknownOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs := w.tenant("Mine"), w.tenant("Theirs")
	foreign := w.things(theirs)
	unknown, malformed := map[string]string{}, map[string]string{}
	for name, kind := range kinds {
		unknown[name], malformed[name] = kind.Format(db.NewID()), "not-an-id"
	}
	unknown["subscription_id"], malformed["subscription_id"] = mcp.ID("nobody", "", "", ""), "not-an-id"
	unknown["name"], malformed["name"], foreign["name"] = "no.such.type", "no such type!", "theirs.alone"
	unknown["format"], malformed["format"], foreign["format"] = "no-such-format", "no such format!", "no-such-format"
	nowhere := "/t/" + id.Tenant.Format(db.NewID())
	owner, nobody := mine.of[access.Owner], &browser{w: w}
	before := w.counts(theirs)
	for _, r := range w.routes {
		if !r.Access.Session {
			t.Errorf("%s %s is open to who is not signed in", r.Method, r.Path)
		}
		short := strings.TrimPrefix(r.Path, dashboard.Root)
		suffix, form := queries[short], forms[short]
		if got := nobody.send(r.Method, fill(r.Path, theirs.path, foreign), nil); got.Status != http.StatusSeeOther ||
			!strings.HasPrefix(got.Location, "/sign-in") {
			t.Errorf("%s %s answers nobody %d", r.Method, r.Path, got.Status)
		}
		lost := owner.send(r.Method, fill(r.Path, nowhere, foreign)+suffix, form)
		into := owner.send(r.Method, fill(r.Path, theirs.path, foreign)+suffix, form)
		odd := owner.send(r.Method, fill(r.Path, "/t/ten_nonsense", foreign)+suffix, form)
		if lost.Status != http.StatusNotFound || !same(into, lost) || !same(odd, lost) {
			t.Errorf("%s %s in a foreign tenant: %d, in none %d, in a malformed one %d", r.Method, r.Path, into.Status, lost.Status, odd.Status)
		}
		if len(parameter.FindAllString(r.Path, -1)) < 2 || r.Access.Fresh {
			continue
		}
		none := owner.send(r.Method, fill(r.Path, mine.path, unknown)+suffix, form)
		other := owner.send(r.Method, fill(r.Path, mine.path, foreign)+suffix, form)
		bad := owner.send(r.Method, fill(r.Path, mine.path, malformed)+suffix, form)
		if none.Status != http.StatusNotFound || !same(other, none) || !same(bad, none) {
			t.Errorf("%s %s with a foreign id: %d, with an unknown one %d, with a malformed one %d", r.Method, r.Path, other.Status, none.Status, bad.Status)
		}
	}
	if after := w.counts(theirs); after != before {
		t.Errorf("the other tenant was %s and is %s", before, after)
	}
}

// counts are the numbers of a tenant's rows, including its audit log.
func (w *world) counts(tn tenant) string {
	return w.state(tn) + one[string](w, `SELECT ' ' || count(*) FROM audit_log WHERE tenant_id = $1`, tn.id.String())
}

// state counts everything that a tenant has.
func (w *world) state(tn tenant) string {
	return one[string](w, `SELECT concat_ws(' ', (SELECT name || retention_days || strict_types || settings FROM tenants WHERE id = $1),
		(SELECT count(*) FROM events WHERE tenant_id = $1), (SELECT count(*) FROM deliveries WHERE tenant_id = $1),
		(SELECT string_agg(status::text || coalesce(archived_at::text, '-'), ',' ORDER BY id) FROM deliveries WHERE tenant_id = $1),
		(SELECT count(*) FROM queue WHERE tenant_id = $1), (SELECT count(*) FROM invitations WHERE tenant_id = $1),
		(SELECT count(*) FROM memberships WHERE tenant_id = $1), (SELECT string_agg(status, ',' ORDER BY id) FROM endpoints WHERE tenant_id = $1),
		(SELECT count(*) FROM api_keys WHERE tenant_id = $1 AND revoked_at IS NULL), (SELECT count(*) FROM event_types WHERE tenant_id = $1),
		(SELECT string_agg(state, ',') FROM bulk_jobs WHERE tenant_id = $1))`, tn.id.String())
}

// TestAViewerChangesNothing sends every form as a viewer.
func TestAViewerChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	own := w.things(tn)
	before := w.counts(tn)
	for name, kind := range kinds {
		if own[name] == "" {
			own[name] = kind.Format(db.NewID())
		}
	}
	own["name"] = "order.paid"
	for _, r := range w.routes {
		if r.Method == http.MethodGet || r.Access.Action == access.Read {
			continue
		}
		if got := tn.of[access.Viewer].send(r.Method, fill(r.Path, tn.path, own),
			nil); got.Status != http.StatusForbidden || !strings.Contains(got.Body, "role_missing") {
			t.Errorf("%s %s answers a viewer %d", r.Method, r.Path, got.Status)
		}
	}
	if after := w.counts(tn); after != before {
		t.Errorf("the tenant was %s and is %s", before, after)
	}
}
