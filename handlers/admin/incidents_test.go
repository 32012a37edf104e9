package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/tools/pagetest"
)

// holds checks that a page contains some texts and not others.
func (w *console) holds(path string, words, not []string) {
	w.t.Helper()
	page := w.page(path)
	for _, word := range words {
		if !strings.Contains(page, word) {
			w.t.Errorf("%s does not show %q", path, word)
		}
	}
	for _, word := range not {
		if strings.Contains(page, word) {
			w.t.Errorf("%s shows %q", path, word)
		}
	}
}

// worker stores a worker whose last beat was the given time ago.
func (w *console) worker(name string, silent time.Duration, dead bool) id.UUID {
	w.t.Helper()
	uuid := db.NewID()
	w.exec("INSERT INTO workers (id, name, dead, beat_at) VALUES ($1, $2, $3, now() - make_interval(secs => $4))", uuid, name, dead, silent.Seconds())
	return uuid
}

func TestTheOverviewNamesWhatNeedsAnOperator(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	w.holds("/console", []string{"No worker is running"}, []string{"All clear"})
	alive := w.worker("worker-1", time.Second, false)
	w.holds("/console", []string{"All clear", "No failing hosts"}, nil)

	noisy, quiet := w.tenant("Noisy"), w.tenant("Quiet")
	loud, soft := w.endpoint(noisy, "https://loud.example.com/in?token=s3cr3t", "active", 0), w.endpoint(quiet, "https://soft.example.com/in", "active", 0)
	w.queued(quiet, soft, 3, 3)
	w.exec(`INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, due_at) SELECT $1, u, u, $2, now() - interval '6 minutes'
		FROM (SELECT (left(posthorn.first_id(now())::text, 24) || lpad(to_hex(i), 12, '0'))::uuid AS u FROM generate_series(1, 1200) i) x`, noisy, loud)
	w.exec("UPDATE lanes SET owner = $1, leased_at = now() - interval '2 hours' WHERE endpoint_id = $2", alive, loud)
	for i := range 2 {
		tenant := w.tenant(fmt.Sprintf("Down %d", i))
		w.endpoint(tenant, fmt.Sprintf("https://down.example.com/%d", i), "active", 12)
	}
	w.worker("worker-2", 10*time.Minute, true)
	w.exec("INSERT INTO outbox_rejected (id, tenant_id, type, data, code, detail) VALUES ($1, $2, 'a', '{}', 'x', 'y')", db.NewID(), quiet)
	w.exec("INSERT INTO mails (id, key, recipient, kind, state, tries, last_error, created_at) VALUES ($1, 'k', 'a@example.com', 'notice', 'failed', 9, 'refused', now())", db.NewID())
	w.holds("/console", []string{
		"Deliveries of Noisy are overdue: the oldest has been due for 6 minutes.", "https://loud.example.com/in", "worker-1", "1 worker stopped without signing off.",
		"down.example.com: down for 2 tenants.", "1 event that was emitted in SQL was rejected.", "1 email failed permanently.", "/console/health/endpoints?host=down.example.com", "/console/pauses?of=down.example.com&amp;scope=host#pause",
		`name="of" value="` + id.Tenant.Format(noisy) + `"`, "Pause Noisy?", "Noisy has 1,200 deliveries ready to send, 100% of all.", "/console/pauses?of=" + id.Tenant.Format(noisy) + "&amp;scope=tenant#pause",
	}, []string{"All clear", "s3cr3t", "Quiet has"})
	w.holds("/console/pauses?of="+id.Tenant.Format(noisy)+"&scope=tenant", []string{`value="` + id.Tenant.Format(noisy) + `"`, `value="tenant" selected`}, nil)
	w.holds("/console/queue", []string{"Waiting, by age", "1,203 ready to send", "leased", "its lanes are released", "worker-2"}, nil)
}

// The console shows a killed worker as silent even if no other worker is left to declare it dead.
func TestAWorkerWithoutAHeartbeatIsSilent(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	w.worker("worker-1", 40*time.Second, false)
	w.holds("/console/queue", []string{"worker-1", "silent"}, []string{"alive"})
	w.holds("/console", []string{"No worker is running", "1 worker stopped", "No other worker can take over its lanes"}, nil)
	w.exec("UPDATE workers SET dead = true")
	w.holds("/console/queue", []string{"its lanes are released"}, []string{"silent", "alive"})
	// Older versions store no time of their beats. A missing time is no fault.
	w.exec("UPDATE workers SET dead = false, beat_at = NULL")
	w.holds("/console/queue", []string{"alive"}, []string{"silent"})
}

func TestAHostLeadsToItsEndpointsAcrossTenants(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme, umbrella := w.tenant("Acme"), w.tenant("Umbrella")
	w.endpoint(acme, "https://Hooks.example.com/acme?key=s3cr3t", "active", 12)
	w.endpoint(umbrella, "https://hooks.example.com/umbrella", "active", 0)
	w.endpoint(umbrella, "https://off.example.com/x", "disabled", 0)
	w.endpoint(umbrella, "https://well.example.com/x", "active", 0)
	w.worker("worker-1", time.Second, false)
	w.holds("/console/health", []string{"1 of 2 failing", "disabled", "well.example.com", "/console/health/endpoints?host=hooks.example.com"}, nil)
	w.holds("/console/health?state=failing", []string{"hooks.example.com", "1 of 2 failing"}, []string{"well.example.com", "off.example.com"})
	w.holds("/console", []string{"hooks.example.com: 1 of 2 failing for 2 tenants."}, []string{": down for"})
	w.holds("/console/health/endpoints?host=hooks.example.com", []string{"/acme", "/umbrella", ">Acme<", ">Umbrella<", ">failing<", ">active<"}, []string{"off.example.com", "s3cr3t"})
	w.holds("/console/health/endpoints", []string{"/acme", "off.example.com", "disabled"}, []string{"/umbrella", "well.example.com"})
	w.holds("/console/health/endpoints?host=nowhere.example.com", []string{"No endpoint"}, nil)
}

func TestTenantsAreFoundByIdAndInOtherOrders(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	b, a, c := w.tenant("beta"), w.tenant("Alpha"), w.tenant("gamma")
	ep := w.endpoint(c, "https://a.example.com/", "active", 0)
	w.queued(c, ep, 2, 2)
	w.queued(b, w.endpoint(b, "https://b.example.com/", "active", 0), 1, 1)
	w.endpoint(b, "https://down.example.com/", "active", 12) // its breaker is open
	for sort, want := range map[string]string{
		"":        "beta gamma Alpha",
		"newest":  "gamma Alpha beta",
		"name":    "Alpha beta gamma",
		"waiting": "gamma beta Alpha",
	} {
		page, got := w.page("/console/tenants?sort="+sort), []string{}
		for part := range strings.SplitSeq(page, `class="row-link"`) {
			_, rest, _ := strings.Cut(part, ">")
			if name, _, found := strings.Cut(rest, "</a>"); found && (name == "Alpha" || name == "beta" || name == "gamma") {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("in the order %q: %q, want %s", sort, got, want)
		}
	}
	page := w.page("/console/tenants?sort=name&after=" + id.Tenant.Format(a))
	if strings.Contains(page, ">Alpha</a>") || !strings.Contains(page, ">beta</a>") || !strings.Contains(page, ">gamma</a>") {
		t.Error("the page behind Alpha")
	}
	page = w.page("/console/tenants?after=" + id.Tenant.Format(b))
	if strings.Contains(page, ">beta</a>") || !strings.Contains(page, ">Alpha</a>") || !strings.Contains(page, ">gamma</a>") {
		t.Error("the page behind the tenant with the most failing endpoints")
	}
	w.exec("UPDATE tenants SET external_id = 'acct_7' WHERE id = $1", b)
	w.exec("INSERT INTO books (tenant_id, day, accepted, events) VALUES ($1, (now() AT TIME ZONE 'UTC')::date - 1, 40, 1234)", b)
	w.holds("/console/tenants", []string{"1 failing", "acct_7", "1,234"}, nil)
	w.holds("/console/tenants/"+id.Tenant.Format(b), []string{"acct_7", "Members", "API keys", "Last event", "1,234"}, nil)
	for text, to := range map[string]string{
		id.Tenant.Format(a): "/console/tenants/" + id.Tenant.Format(a),
		id.Endpoint.Format(ep): "/console/deliveries?endpoint=" +
			id.Endpoint.Format(ep),
	} {
		if res := w.send("GET", "/console/tenants?q="+text, nil, w.cookie); res.Code != http.StatusSeeOther || res.Header().Get("Location") != to {
			t.Errorf("%s: %d to %s", text, res.Code, res.Header().Get("Location"))
		}
	}
	w.holds("/console/tenants?q="+id.Tenant.Format(db.NewID()), []string{"No tenants match these filters"}, nil)
	w.holds("/console/tenants?q=no_such", []string{"No tenants match these filters"}, nil)
}

func TestTheAuditLogIsFilteredByTenantAndNamesOperators(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	at := "/console/tenants/" + id.Tenant.Format(acme)
	if res := w.send("POST", at+"/suspend", url.Values{"reason": {"invoices are not paid"}}, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d", res.Code)
	}
	w.holds("/console/audit?tenant="+id.Tenant.Format(acme), []string{"tenant.suspended", "invoices are not paid", "Olga"}, []string{">Other<"})
	w.holds("/console/audit?tenant="+id.Tenant.Format(other), []string{"title=\"tenant.created"}, []string{"title=\"tenant.suspended"})
	w.holds("/console/audit?action=tenant.susp", []string{"title=\"tenant.suspended"}, []string{"title=\"tenant.created"})
	// A second operator sees on the page who did it, and why.
	w.holds(at, []string{"Suspended: invoices are not paid", "By Olga", "/console/audit?tenant=" + id.Tenant.Format(acme)}, nil)
	for _, list := range []string{"audit", "mail", "jobs", "outbox"} {
		if res := w.send("GET", "/console/"+list+"?tenant=x", nil, w.cookie); res.Code != http.StatusBadRequest ||
			len(pagetest.Faults(res.Body.String())) > 0 {
			t.Errorf("%s of a tenant that is none: %d %v", list, res.Code, pagetest.Faults(res.Body.String()))
		}
	}
	for i, of := range []id.UUID{acme, other} {
		w.exec("INSERT INTO mails (id, tenant_id, key, recipient, kind, state, tries, last_error, created_at) VALUES ($1, $2, $3, 'a@example.com', 'notice', 'sent', 1, '', now())", db.NewID(), of, fmt.Sprint("k", i))
	}
	w.holds("/console/mail?tenant="+id.Tenant.Format(acme), []string{">Acme</a>"}, []string{">Other</a>"})
	w.holds("/console/mail?state=failed", []string{"No emails match these filters"}, []string{">Acme</a>"})
	w.exec("INSERT INTO chores (name, done_at) VALUES ('fold', now()) ON CONFLICT (name) DO UPDATE SET done_at = now()")
	w.holds("/console/jobs", []string{"Aggregate results"}, nil)
	w.holds("/console/jobs?state=failed&tenant="+id.Tenant.Format(acme), []string{"No bulk jobs match these filters", "Periodic jobs"}, nil)
}

// A rejected form is visible with its errors and values, even far down the page or in a dialog.
func TestARejectedFormIsVisibleAgain(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	at := "/console/tenants/" + id.Tenant.Format(w.tenant("Acme"))
	if res := w.send("POST", "/console/pauses", url.Values{"scope": {"platform"}, "of": {"everything"}, "reason": {"flood"}}, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d", res.Code)
	}
	end := "/console/pauses/" + pauseIn(t, w.page("/console/pauses")) + "/resume"
	long := strings.Repeat("x", 501)
	for path, tt := range map[string]struct {
		form  url.Values
		field string
	}{
		at + "/suspend":     {url.Values{"reason": {" "}}, "state-reason"},
		at + "/view-as":     {url.Values{"reason": {long}, "minutes": {"15"}}, "view-as-reason"},
		at + "/export":      {url.Values{"reason": {long}}, "export-reason"},
		at + "/limits":      {url.Values{"retention_days": {"0"}}, "f-retention_days"},
		"/console/pauses":   {url.Values{"scope": {"host"}, "of": {"a b"}, "reason": {"x"}}, "f-of"},
		"/console/settings": {url.Values{"endpoints.max": {"no number"}}, "set-"},
		end:                 {url.Values{"reason": {long}}, ""},
	} {
		res := w.send("POST", path, tt.form, w.cookie)
		body := res.Body.String()
		if res.Code != http.StatusBadRequest || !strings.Contains(body, "aria-invalid") || len(pagetest.Faults(body)) > 0 {
			t.Errorf("%s: %d %v", path, res.Code, pagetest.Faults(body))
			continue
		}
		if tt.field != "" && !strings.Contains(body, `<a href="#`+tt.field) {
			t.Errorf("%s: nothing leads to %s", path, tt.field)
		}
		if tt.field == "" && (!strings.Contains(body, " popover open") || !strings.Contains(body, long) || strings.Count(body, "popover open") != 1) {
			t.Errorf("%s: the dialog is closed, or forgot what was typed", path)
		}
	}
	if page := w.page("/console/pauses"); strings.Contains(page, "popover open") {
		t.Error("a dialog is open that nobody opened")
	}
	gone := "/console/pauses/" + id.Pause.Format(db.NewID()) + "/resume"
	if res := w.send("POST", gone, url.Values{"reason": {long}}, w.cookie); res.Code != http.StatusSeeOther {
		t.Errorf("a pause that is gone: %d", res.Code)
	}
}
