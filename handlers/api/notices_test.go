package api_test

import (
	"strings"
	"testing"

	"posthorn/domain/access"
)

func TestATenantReadsItsNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	if n := len(ids(w.do("GET", "/api/v1/notices", acme.key, nil).want(200))); n != 0 {
		t.Errorf("a new tenant was told %d things", n)
	}
	ep := w.active(acme, map[string]any{"url": "https://hooks.example.com/a?token=canary", "description": "Orders"})
	secret := w.do("POST", "/api/v1/endpoints/"+ep+"/rotate-secret", acme.key, map[string]any{"overlap_seconds": 60}).want(201)
	key := w.do("POST", "/api/v1/keys", acme.key, `{"name":"deploy","scopes":["webhooks:read"]}`).want(201)
	all := w.do("GET", "/api/v1/notices", acme.key, nil).want(200)
	if found := ids(all); len(found) != 2 || !strings.HasPrefix(found[0], "ntc_") {
		t.Fatalf("%s", all.Body)
	}
	for _, want := range []string{
		`"kind":"key.created"`, key.text("id"), `"name":"deploy"`, `"kind":"secret.rotated"`, `"endpoint_id":"` + ep + `"`, secret.text("id"),
		`"description":"Orders"`, `"old_until"`, `"severity":"info"`, `"endpoint_id":null`,
	} {
		if !strings.Contains(string(all.Body), want) {
			t.Errorf("%s is not in %s", want, all.Body)
		}
	}
	for _, never := range []string{"canary", secret.text("secret"), key.text("api_key")} {
		if strings.Contains(string(all.Body), never) {
			t.Errorf("%s is in %s", never, all.Body)
		}
	}
	rotated := w.do("GET", "/api/v1/notices?kind=secret.rotated", acme.key, nil).want(200)
	if found := ids(rotated); len(found) != 1 || found[0] != ids(all)[1] {
		t.Errorf("%s", rotated.Body)
	}
	first := w.do("GET", "/api/v1/notices?limit=1&order=asc", acme.key, nil).want(200)
	second := w.do("GET", "/api/v1/notices?limit=1&order=asc&cursor="+first.text("next_cursor"), acme.key, nil).want(200)
	if a, b := ids(first), ids(second); len(a) != 1 || len(b) != 1 || a[0] != ids(all)[1] || b[0] != ids(all)[0] {
		t.Errorf("%s then %s", first.Body, second.Body)
	}
	if n := len(ids(w.do("GET", "/api/v1/notices?since=2999-01-01T00:00:00Z", acme.key, nil).want(200))); n != 0 {
		t.Errorf("%d notices of the year 2999", n)
	}
	if n := len(ids(w.do("GET", "/api/v1/notices", other.key, nil).want(200))); n != 0 {
		t.Errorf("another tenant sees %d of them", n)
	}
	w.do("GET", "/api/v1/notices?kind=junk", acme.key, nil).problem(400, "choice_unknown", "kind")
	w.do("GET", "/api/v1/notices", w.scoped(acme, access.EventsRead), nil).problem(403, "scope_missing")
}

// A key that can't be created posts no notice.
func TestWhatWasRolledBackIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.do("POST", "/api/v1/endpoints/ep_00000000000000000000000000/rotate-secret", acme.key, nil).problem(404, "not_found")
	w.do("POST", "/api/v1/keys", acme.key, `{"name":"","scopes":["webhooks:read"]}`)
	if n := len(ids(w.do("GET", "/api/v1/notices", acme.key, nil).want(200))); n != 0 {
		t.Errorf("%d notices", n)
	}
}
