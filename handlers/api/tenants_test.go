package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers/api"
)

func TestAPlatformMakesTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.do("POST", "/api/v1/tenants", w.platform, `{"name":"Acme","retention_days":30}`).want(201)
	key := made.text("api_key")
	own := w.do("GET", "/api/v1/tenant", key, nil).want(200)
	if own.text("id") != made.text("id") || own.text("name") != "Acme" || own.get("retention_days").(float64) != 30 || own.text("state") != "active" {
		t.Errorf("own: %s", own.Body)
	}
	for _, s := range access.TenantScopes() {
		if !strings.Contains(string(w.do("GET", "/api/v1/keys", key, nil).want(200).Body), string(s)) {
			t.Errorf("the first key lacks %s", s)
		}
	}
	for _, action := range []string{"tenant.created", "key.created"} {
		if got := ids(w.do("GET", "/api/v1/audit-log?action="+action, key, nil).want(200)); len(got) != 1 {
			t.Errorf("the audit log has %d entries %s", len(got), action)
		}
	}
	if got := w.do("GET", "/api/v1/tenants/"+made.text("id"), w.platform, nil).want(200); string(got.Body) != string(own.Body) {
		t.Errorf("read by the platform: %s", got.Body)
	}
	var all []string
	cursor := ""
	w.tenant("B")
	w.tenant("C")
	for {
		page := w.do("GET", "/api/v1/tenants?limit=2&order=asc"+cursor, w.platform, nil).want(200)
		all = append(all, ids(page)...)
		next, more := page.get("next_cursor").(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(all) != 3 || all[0] != made.text("id") || !slices.IsSorted(all) {
		t.Errorf("tenants: %q", all)
	}
	for _, path := range []string{"/api/v1/tenants", "/api/v1/tenants/" + made.text("id"), "/api/v1/tenants/nonsense"} {
		w.do("GET", path, key, nil).problem(403, "platform_key_required")
	}
	w.do("GET", "/api/v1/tenants/nonsense", w.platform, nil).problem(404, "not_found")
	w.do("GET", "/api/v1/tenant", w.platform, nil).problem(400, "tenant_required")
}

func TestBadTenantSettingsAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for body, want := range map[string]string{
		`{"name":""}`:                             "text_length name",
		`{"name":7}`:                              "field_type name",
		`{"retention_days":0}`:                    "retention_range retention_days",
		`{"retention_days":91}`:                   "retention_range retention_days",
		`{"retention_days":1.5}`:                  "field_type retention_days",
		`{"retention_days":"5"}`:                  "field_type retention_days",
		`{"retention_days":99999999999999999999}`: "field_type retention_days",
		`{"strict_types":null}`:                   "field_type strict_types",
		`{"strict_types":1}`:                      "field_type strict_types",
		`{"state":"suspended"}`:                   "unknown_field state",
		`{"name":"a","name":"b"}`:                 "duplicate_field name",
		`{"name":"\u0000"}`:                       "field_type name",
	} {
		code, fields, _ := strings.Cut(want, " ")
		w.do("PATCH", "/api/v1/tenant", acme.key, body).problem(400, code, fields)
		w.do("PATCH", "/api/v1/tenants/"+acme.id, w.platform, body).problem(400, code, fields)
	}
	if got := w.do("PATCH", "/api/v1/tenant", acme.key, `{}`).want(200).text("name"); got != "Acme" {
		t.Errorf("name: %s", got)
	}
	narrow := w.scoped(acme, access.WebhooksWrite)
	w.do("GET", "/api/v1/tenant", narrow, nil).want(200)
	w.do("PATCH", "/api/v1/tenant", narrow, `{}`).problem(403, "scope_missing")
}

func TestASuspendedTenantCanOnlyRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Run(w.auth.Run)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	emit := func(key, prefix string) *answer {
		return w.do("POST", "/api/v1"+prefix+"/events", key, `{"type":"a","data":1}`)
	}
	named := "/tenants/" + acme.id
	emit(acme.key, "").want(202)
	emit(w.platform, named).want(202)
	if got := w.do("POST", "/api/v1/tenants/"+acme.id+"/suspend", w.platform, `{"reason":"unpaid"}`).want(200).text("state"); got != "suspended" {
		t.Errorf("state: %s", got)
	}
	suspended := time.Now()
	makeKey := func() *answer {
		return w.do("POST", "/api/v1/keys", acme.key, `{"name":"a","scopes":["events:read"]}`)
	}
	for emit(acme.key, "").Status == 202 || emit(w.platform, named).Status == 202 || makeKey().Status == 201 {
		if time.Since(suspended) > time.Second {
			t.Fatal("a suspended tenant goes on for longer than a second")
		}
	}
	emit(acme.key, "").problem(403, "tenant_suspended")
	emit(w.platform, named).problem(403, "tenant_suspended")
	makeKey().problem(403, "tenant_suspended")
	w.do("GET", "/api/v1/events", acme.key, nil).want(200)
	emit(other.key, "").want(202)
	w.do("POST", "/api/v1/tenants/"+acme.id+"/suspend", w.platform, nil).want(200)
	w.do("POST", "/api/v1/tenants/"+acme.id+"/resume", w.platform, nil).want(200)
	for resumed := time.Now(); emit(acme.key, "").Status != 202; {
		if time.Since(resumed) > 2*time.Second {
			t.Fatal("a resumed tenant does not emit")
		}
	}
	log := w.do("GET", "/api/v1/audit-log?action=tenant.suspended", acme.key, nil).want(200)
	if got := strings.Count(string(log.Body), `"tenant.suspended"`); got != 1 || !strings.Contains(string(log.Body), `"reason":"unpaid"`) {
		t.Errorf("%d entries: %s", got, log.Body)
	}
}

func TestTheCatalogueOfEventTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *api.Deps) { d.Settings.TypesPerTenant = 5 })
	acme, other := w.tenant("Acme"), w.tenant("Other")
	const path = "/api/v1/event-types"
	for _, name := range []string{"order.completed", "Order", "a-b", "a.b", "z"} {
		w.do("POST", path, acme.key, map[string]string{"name": name, "description": "About " + name}).want(201)
	}
	w.do("POST", path, acme.key, `{"name":"one.more"}`).problem(409, "event_types_limit")
	w.do("POST", path, acme.key, `{"name":"z"}`).problem(409, "event_type_exists")
	w.do("POST", path, acme.key, `{"name":"a b"}`).problem(400, "type_malformed", "name")
	w.do("POST", path, acme.key, `{}`).problem(400, "type_malformed", "name")
	w.do("POST", path, acme.key, `{"name":"a","description":"`+strings.Repeat("x", 1001)+`"}`).problem(400, "text_length", "description")
	w.do("POST", path, other.key, `{"name":"z"}`).want(201)

	names := func(query string) (out []string) {
		cursor := ""
		for {
			page := w.do("GET", path+"?limit=2"+query+cursor, acme.key, nil).want(200)
			for _, row := range page.get("data").([]any) {
				out = append(out, fmt.Sprint(row.(map[string]any)["name"]))
			}
			next, more := page.get("next_cursor").(string)
			if !more {
				return out
			}
			cursor = "&cursor=" + next
		}
	}
	want := []string{"Order", "a-b", "a.b", "order.completed", "z"}
	if got := names(""); !slices.Equal(got, want) {
		t.Errorf("names: %q", got)
	}
	slices.Reverse(want)
	if got := names("&order=desc"); !slices.Equal(got, want) {
		t.Errorf("names, descending: %q", got)
	}

	if got := w.do("PATCH", path+"/z", acme.key, `{"description":"New"}`).want(200).text("description"); got != "New" {
		t.Errorf("description: %s", got)
	}
	w.do("PATCH", path+"/z", acme.key, `{"name":"y"}`).problem(400, "unknown_field", "name")
	if got := w.do("GET", path+"/z", other.key, nil).want(200).text("description"); got != "" {
		t.Errorf("another tenant's description: %s", got)
	}
	w.do("DELETE", path+"/z", acme.key, nil).want(204)
	for _, method := range []string{"GET", "DELETE"} {
		w.do(method, path+"/z", acme.key, nil).problem(404, "not_found")
		w.do(method, path+"/no%20type", acme.key, nil).problem(404, "not_found")
	}
	w.do("PATCH", path+"/z", acme.key, `{}`).problem(404, "not_found")
	w.do("GET", path+"/z", other.key, nil).want(200)
}

func TestWhatIsChangedIsAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	w.do("POST", "/api/v1/event-types", acme.key, `{"name":"a"}`).want(201)
	w.do("PATCH", "/api/v1/event-types/a", acme.key, `{"description":"x"}`).want(200)
	w.do("PATCH", "/api/v1/event-types/a", acme.key, `{"description":"x"}`).want(200)
	w.do("DELETE", "/api/v1/event-types/a", acme.key, nil).want(204)
	key := w.do("POST", "/api/v1/keys", acme.key, `{"name":"k","scopes":["events:read"]}`).want(201).text("id")
	w.do("DELETE", "/api/v1/keys/"+key, acme.key, nil).want(204)
	w.do("PATCH", "/api/v1/tenants/"+acme.id, w.platform, `{"name":"Acme 2"}`).want(200)
	w.do("PATCH", "/api/v1/tenant", acme.key, `{"name":"Acme 2"}`).want(200) // changes nothing
	a := w.do("GET", "/api/v1/audit-log?order=asc", acme.key, nil).want(200)
	var page api.AuditPage
	a.into(&page)
	var got []string
	for _, e := range page.Data {
		got = append(got, e.Action)
		if e.ActorKind != "command" && (e.ActorKind != "key" || !strings.HasPrefix(e.ActorID, "key_") || e.Address == "") {
			t.Errorf("who and where from: %+v", e)
		}
	}
	want := []string{"tenant.created", "key.created", "event_type.created", "event_type.updated", "event_type.deleted", "key.created", "key.revoked", "tenant.updated"}
	if !slices.Equal(got, want) {
		t.Errorf("actions: %q", got)
	}
	if n := len(ids(w.do("GET", "/api/v1/audit-log", other.key, nil).want(200))); n != 2 {
		t.Errorf("another tenant sees %d entries", n)
	}
	last := page.Data[len(page.Data)-1]
	if string(last.Details) != `{"name":["Acme","Acme 2"]}` && string(last.Details) != `{"name": ["Acme", "Acme 2"]}` {
		t.Errorf("details: %s", last.Details)
	}
	one := w.do("GET", "/api/v1/audit-log?action=key.created&limit=1", acme.key, nil).want(200)
	if len(ids(one)) != 1 {
		t.Errorf("by action: %s", one.Body)
	}
	w.do("GET", "/api/v1/audit-log?action=Drop%20table", acme.key, nil).problem(400, "action_malformed", "action")
	w.do("GET", "/api/v1/audit-log", w.scoped(acme, access.EventsRead), nil).problem(403, "scope_missing")
}

func TestParametersOfListsAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for query, want := range map[string]string{
		"limit=0":                     "limit_range limit",
		"limit=251":                   "limit_range limit",
		"limit=x":                     "limit_range limit",
		"limit=5&limit=6":             "duplicate_parameter limit",
		"order=up":                    "order_unknown order",
		"since=yesterday":             "time_malformed since",
		"until=2026-01-31":            "time_malformed until",
		"type=a%20b":                  "type_malformed type",
		"type=":                       "type_malformed type",
		"channel=%00":                 "channel_malformed channel",
		"trace_id=x":                  "trace_id_malformed trace_id",
		"stauts=failed":               "unknown_parameter stauts",
		"status=failed":               "unknown_parameter status",
		"limit=0&order=up&since=x":    "limit_range limit order since",
		"%zz":                         "query_malformed",
		"since=0000-01-01T00:00:00Z":  "time_malformed since",
		"since=2026-01-31T12:00:00":   "time_malformed since",
		"until=99999-01-01T00:00:00Z": "time_malformed until",
	} {
		code, fields, _ := strings.Cut(want, " ")
		w.do("GET", "/api/v1/events?"+query, acme.key, nil).problem(400, code, strings.Fields(fields)...)
	}
	w.do("GET", "/api/v1/events?since=2026-01-31T12:00:00+02:00&until=2026-01-31T12:00:00.123456789Z&limit=250&order=asc", acme.key, nil).want(200)
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for _, path := range []string{"/api/v1", "/api/v1/", "/api/v1/events/", "/api/v2/events", "/nothing", "/api/v1/tenants/" + acme.id + "/tenant"} {
		w.do("GET", path, acme.key, nil).problem(404, "no_such_path")
	}
	for _, method := range []string{"PUT", "DELETE", "OPTIONS"} {
		a := w.do(method, "/api/v1/events", acme.key, nil)
		a.problem(405, "method_not_allowed")
		if a.Header.Get("Allow") == "" || a.Header.Get("X-Request-Id") == "" || a.Header.Get("RateLimit-Remaining") == "" {
			t.Errorf("%s: headers %v", method, a.Header)
		}
	}
}

func TestEveryAnswerNamesItsRequestAndItsLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for given, kept := range map[string]bool{"abc-1_2.3": true, "": false, "a b": false, strings.Repeat("x", 129): false, "<script>": false} {
		a := w.do("GET", "/api/v1/events", acme.key, nil, "X-Request-Id", given).want(200)
		if got := a.Header.Get("X-Request-Id"); got == "" || (got == given) != kept {
			t.Errorf("%q became %q", given, got)
		}
		for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-Content-Type-Options", "Cache-Control"} {
			if a.Header.Get(name) == "" {
				t.Errorf("no %s", name)
			}
		}
	}
}

func TestATenantReadsItsLimitsAndGets429Beyond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	fresh := w.do("GET", "/api/v1/usage", acme.key, nil).want(200)
	if fresh.get("events_this_month") != 0.0 || fresh.get("limits.events_per_month") != nil || fresh.get("limits.endpoints") != 50.0 || fresh.get("limits.payload_bytes") != 262144.0 {
		t.Errorf("%s", fresh.Body)
	}
	w.SQL(`UPDATE tenants SET settings = '{"limits":{"events_per_month":2,"max_payload":1024},"endpoints":{"max":1}}', routing_version = routing_version + 1 WHERE id = $1`, w.uuid(id.Tenant, acme.id))
	w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":"`+strings.Repeat("x", 1024)+`"}`).problem(413, "payload_too_large", "data")
	w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1,"idempotency_key":"k"}`).want(202)
	batch := w.do("POST", "/api/v1/events/batch", acme.key, `{"events":[{"type":"a","data":2},{"type":"a","data":3}]}`).want(207)
	if batch.get("accepted") != 1.0 || batch.get("refused") != 1.0 || !strings.Contains(string(batch.Body), `"status":429`) ||
		!strings.Contains(string(batch.Body), "events_per_month_limit") {
		t.Errorf("an item beyond the limit fails alone: %s", batch.Body)
	}
	over := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":4}`).problem(429, "events_per_month_limit")
	if over.Header.Get("Retry-After") == "" || over.Header.Get("Ratelimit-Limit") != "2" || over.Header.Get("Ratelimit-Remaining") != "0" ||
		over.Header.Get("Ratelimit-Reset") != over.Header.Get("Retry-After") {
		t.Errorf("%v", over.Header)
	}
	w.do("POST", "/api/v1/events/batch", acme.key, `{"events":[{"type":"a","data":2}]}`).problem(429, "events_per_month_limit")
	if again := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1,"idempotency_key":"k"}`).want(202); again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat over the limit: %v", again.Header)
	}
	w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://hooks.example.com/1"}`).want(201)
	w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://hooks.example.com/2"}`).problem(409, "endpoints_limit")
	used := w.do("GET", "/api/v1/usage", acme.key, nil).want(200)
	if used.get("events_this_month") != 2.0 || used.get("limits.events_per_month") != 2.0 || used.get("endpoints") != 1.0 || used.get("limits.endpoints") != 1.0 || used.get("limits.payload_bytes") != 1024.0 {
		t.Errorf("%s", used.Body)
	}
}

func TestAPlatformKeySetsATenantsLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	at := "/api/v1/tenants/" + acme.id + "/limits"
	fresh := w.do("GET", at, w.platform, nil).want(200)
	if fresh.get("limits.events_per_month") != nil || fresh.get("limits.endpoints") != 50.0 || fresh.get("own.endpoints") != nil || fresh.get("own.payload_bytes") != nil {
		t.Errorf("%s", fresh.Body)
	}
	set := w.do("PATCH", at, w.platform, `{"events_per_month":2,"endpoints":1,"payload_bytes":2048}`).want(200)
	if set.get("limits.events_per_month") != 2.0 || set.get("own.endpoints") != 1.0 || set.get("limits.payload_bytes") != 2048.0 || set.get("own.events_per_second") != nil {
		t.Errorf("%s", set.Body)
	}
	emit := func() *answer { return w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1}`) }
	emit().want(202)
	emit().want(202)
	emit().problem(429, "events_per_month_limit")
	// An absent field stays, 0 is unlimited, and null is the platform's default.
	w.SQL(`UPDATE platform SET settings = '{"limits":{"events_per_month":3}}'`)
	free := w.do("PATCH", at, w.platform, `{"events_per_month":0,"endpoints":null}`).want(200)
	if free.get("limits.events_per_month") != nil || free.get("own.events_per_month") != 0.0 || free.get("limits.endpoints") != 50.0 || free.get("own.payload_bytes") != 2048.0 {
		t.Errorf("%s", free.Body)
	}
	if back := w.do("PATCH", at, w.platform, `{"events_per_month":null}`).want(200); back.get("limits.events_per_month") != 3.0 || back.get("own.events_per_month") != nil {
		t.Errorf("%s", back.Body)
	}
	for body, field := range map[string]string{
		`{"events_per_second":-1}`:  "events_per_second",
		`{"endpoints":0}`:           "endpoints",
		`{"payload_bytes":2000000}`: "payload_bytes",
		`{"events_per_month":-5}`:   "events_per_month",
	} {
		w.do("PATCH", at, w.platform, body).problem(400, "out_of_range", field)
	}
	w.do("PATCH", at, acme.key, `{"endpoints":9}`).want(403)
	w.do("GET", "/api/v1/tenants/"+id.Tenant.Format(db.NewID())+"/limits", w.platform, nil).problem(404, "not_found")
	w.do("PATCH", "/api/v1/tenants/ten_x/limits", w.platform, `{"endpoints":9}`).problem(404, "not_found")
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE tenant_id = $1 AND action = 'tenant.updated'", w.uuid(id.Tenant, acme.id)); n != 3 {
		t.Errorf("%d changes in the audit log", n)
	}
}
