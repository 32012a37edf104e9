package api_test

import (
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
)

func TestAPlatformPausesDispatchAndResumesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	ep := w.active(acme, nil)
	for body, want := range map[string]string{
		`{"scope":"platform","reason":"incident"}`:                                         "",
		`{"scope":"tenant","tenant_id":"` + acme.id + `","reason":"incident"}`:             acme.id,
		`{"scope":"host","host":"Hooks.example.com","reason":"incident"}`:                  "hooks.example.com",
		`{"scope":"endpoint","endpoint_id":"` + ep + `","reason":"incident"}`:              ep,
		`{"scope":"host","host":"other.example.com:8443","reason":"incident"}`:             "other.example.com:8443",
		`{"scope":"host","host":"https://third.example.com/hook?x=1","reason":"incident"}`: "third.example.com",
	} {
		made := w.do("POST", "/api/v1/platform/pauses", w.platform, body).want(201)
		again := w.do("POST", "/api/v1/platform/pauses", w.platform, body).want(200)
		if again.text("id") != made.text("id") || made.text("reason") != "incident" {
			t.Errorf("%s: %s, then %s", body, made.Body, again.Body)
		}
		named := ""
		for _, field := range []string{"tenant_id", "host", "endpoint_id"} {
			if text, is := made.get(field).(string); is {
				named = text
			}
		}
		if named != want {
			t.Errorf("%s names %q: %s", body, named, made.Body)
		}
	}
	list := ids(w.do("GET", "/api/v1/platform/pauses", w.platform, nil).want(200))
	if len(list) != 6 {
		t.Fatalf("%q", list)
	}
	for _, u := range list {
		w.do("POST", "/api/v1/platform/pauses/"+u+"/resume", w.platform, `{"reason":"over"}`).want(200)
		w.do("POST", "/api/v1/platform/pauses/"+u+"/resume", w.platform, nil).problem(404, "not_found")
	}
	if list := ids(w.do("GET", "/api/v1/platform/pauses", w.platform, nil).want(200)); len(list) != 0 {
		t.Errorf("still paused: %q", list)
	}
}

func TestAPauseThatNamesNothingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for body, want := range map[string]string{
		`{"scope":"platform"}`:                                 "text_length reason",
		`{"scope":"platform","reason":""}`:                     "text_length reason",
		`{"scope":"tenant","reason":"x"}`:                      "field_missing tenant_id",
		`{"scope":"tenant","tenant_id":"x","reason":"x"}`:      "id_malformed tenant_id",
		`{"scope":"host","host":"a b","reason":"x"}`:           "host_malformed host",
		`{"scope":"moon","reason":"x"}`:                        "pause_scope scope",
		`{"scope":"platform","host":"a.example","reason":"x"}`: "pause_scope host",
	} {
		code, field, _ := strings.Cut(want, " ")
		w.do("POST", "/api/v1/platform/pauses", w.platform, body).problem(400, code, field)
	}
	w.do("POST", "/api/v1/platform/pauses", w.platform, `{"scope":"tenant","tenant_id":"`+id.Tenant.Format(db.NewID())+`","reason":"x"}`).problem(404, "not_found")
	w.do("POST", "/api/v1/platform/pauses/"+id.Pause.Format(db.NewID())+"/resume", w.platform, nil).problem(404, "not_found")
	w.do("POST", "/api/v1/platform/pauses", acme.key, `{"scope":"platform","reason":"x"}`).problem(403, "platform_key_required")
}

func TestADeliverySaysWhichPauseKeepsItAndSinceWhen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	ep := w.active(acme, map[string]any{"url": "https://hooks.example.com/a"})
	event := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1}`).want(202).text("id")
	delivery := ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", acme.key, nil).want(200))[0]
	says := func(by, since any) {
		t.Helper()
		one := w.do("GET", "/api/v1/deliveries/"+delivery, acme.key, nil).want(200)
		list := w.do("GET", "/api/v1/deliveries?status=pending", acme.key, nil).want(200)
		for _, got := range []any{one.get("paused_by"), list.get("data").([]any)[0].(map[string]any)["paused_by"]} {
			if got != by {
				t.Errorf("paused by %v, want %v", got, by)
			}
		}
		if got := one.get("paused_since"); since != nil && got != since || (got == nil) != (by == nil) {
			t.Errorf("paused since %v, want %v", got, since)
		}
	}
	says(nil, nil)
	for _, body := range []string{`{"scope":"endpoint","endpoint_id":"` + ep + `","reason":"x"}`, `{"scope":"host","host":"hooks.example.com","reason":"x"}`, `{"scope":"tenant","tenant_id":"` + acme.id + `","reason":"x"}`} {
		made := w.do("POST", "/api/v1/platform/pauses", w.platform, body).want(201)
		says(made.text("scope"), made.text("created_at"))
	}
	w.do("POST", "/api/v1/tenants/"+acme.id+"/suspend", w.platform, nil).want(200)
	says("suspended", nil)
	all := w.do("POST", "/api/v1/platform/pauses", w.platform, `{"scope":"platform","reason":"x"}`).want(201)
	says("suspended", nil) // which a resume of everything does not end
	w.do("POST", "/api/v1/tenants/"+acme.id+"/resume", w.platform, nil).want(200)
	says("platform", all.text("created_at"))
	for _, u := range ids(w.do("GET", "/api/v1/platform/pauses", w.platform, nil).want(200)) {
		w.do("POST", "/api/v1/platform/pauses/"+u+"/resume", w.platform, nil).want(200)
	}
	says(nil, nil)
}
