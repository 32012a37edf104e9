package api_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers/api"
)

func TestAKeyIsShownOnceAndWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	made := w.do("POST", "/api/v1/keys", acme.key, `{"name":"CI","scopes":["events:write","events:write"],"expires_at":null}`).want(201)
	text := made.text("api_key")
	if !strings.HasPrefix(text, made.text("prefix")) || !strings.HasPrefix(text, "phk_") || len(text) < 47 {
		t.Errorf("key %q with prefix %q", text, made.text("prefix"))
	}
	w.do("POST", "/api/v1/events", text, `{"type":"a","data":1}`).want(202)
	w.do("GET", "/api/v1/events", text, nil).problem(403, "scope_missing")
	read := w.do("GET", "/api/v1/keys/"+made.text("id"), acme.key, nil).want(200)
	if strings.Contains(string(read.Body), text[12:]) || fmt.Sprint(read.get("scopes")) != "[events:write]" {
		t.Errorf("read: %s", read.Body)
	}
	for _, a := range []*answer{w.do("GET", "/api/v1/keys", acme.key, nil), w.do("GET", "/api/v1/audit-log", acme.key, nil)} {
		if strings.Contains(string(a.want(200).Body), text[12:]) {
			t.Errorf("%s shows the key", a.what)
		}
	}
	if strings.Contains(w.log.String(), text[12:]) {
		t.Error("the log shows the key")
	}
}

func TestBadKeysAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *api.Deps) { d.Settings.KeysPerTenant = 4 })
	acme := w.tenant("Acme")
	weak := w.scoped(acme, access.KeysWrite, access.EventsRead)
	for _, c := range []struct{ body, code, fields string }{
		{``, "not_json", ""},
		{`[]`, "not_object", ""},
		{`{"name":"a","scopes":["events:write"],"scope":1,"x":{"y":1}}`, "unknown_field", "scope x"},
		{`{"name":"","scopes":["events:write"]}`, "text_length", "name"},
		{`{"name":"a\nb","scopes":["events:write"]}`, "text_characters", "name"},
		{`{"name":" ","scopes":["events:write"]}`, "text_characters", "name"},
		{`{"name":"` + strings.Repeat("é", 101) + `","scopes":["events:write"]}`, "text_length", "name"},
		{`{"name":null,"scopes":["events:write"]}`, "field_type", "name"},
		{`{"name":"a","scopes":[]}`, "scopes_missing", "scopes"},
		{`{"name":"a"}`, "scopes_missing", "scopes"},
		{`{"name":"a","scopes":["all"]}`, "scope_unknown", "scopes"},
		{`{"name":"a","scopes":["tenants:write"]}`, "scope_platform_only", "scopes"},
		{`{"name":"a","scopes":"events:write"}`, "field_type", "scopes"},
		{`{"name":"a","scopes":[7]}`, "field_type", "scopes.0"},
		{`{"name":"a","scopes":["events:write"],"expires_at":"tomorrow"}`, "time_malformed", "expires_at"},
		{`{"name":"a","scopes":["events:write"],"expires_at":"2020-01-01T00:00:00Z"}`, "expires_at_past", "expires_at"},
		{`{"name":"","scopes":["x"],"expires_at":"2020-01-01T00:00:00Z"}`, "text_length", "name scopes expires_at"},
	} {
		w.do("POST", "/api/v1/keys", acme.key, c.body).problem(400, c.code, strings.Fields(c.fields)...)
	}
	good := `{"name":"a","scopes":["events:write"]}`
	w.do("POST", "/api/v1/keys", weak, good).problem(403, "scope_beyond_own")
	w.do("POST", "/api/v1/keys", weak, `{"name":"a","scopes":["events:read"]}`).want(201)
	last := w.do("POST", "/api/v1/keys", acme.key, good).want(201)
	w.do("POST", "/api/v1/keys", acme.key, good).problem(409, "keys_limit")
	w.do("DELETE", "/api/v1/keys/"+last.text("id"), acme.key, nil).want(204)
	w.do("POST", "/api/v1/keys", acme.key, good).want(201)
}

func TestARevokedKeyStopsWithinASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Run(w.auth.Run)
	acme := w.tenant("Acme")
	made := w.do("POST", "/api/v1/keys", acme.key, `{"name":"CI","scopes":["events:write"]}`).want(201)
	emit := func() *answer { return w.do("POST", "/api/v1/events", made.text("api_key"), `{"type":"a","data":1}`) }
	emit().want(202)
	for range 3 { // until the key is cached
		emit().want(202)
	}
	w.do("DELETE", "/api/v1/keys/"+made.text("id"), acme.key, nil).want(204)
	revoked := time.Now()
	for emit().Status == 202 {
		if time.Since(revoked) > time.Second {
			t.Fatal("a revoked key emits for longer than a second")
		}
	}
	emit().problem(401, "key_revoked")
	w.do("DELETE", "/api/v1/keys/"+made.text("id"), acme.key, nil).want(204)
	if w.do("GET", "/api/v1/keys/"+made.text("id"), acme.key, nil).get("revoked_at") == nil {
		t.Error("no revoked_at")
	}
}

func TestWithoutAGoodKeyThereIsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	expired := w.MakeKey(accounts.NewKey{
		Tenant:    &acme.uuid,
		Name:      "old",
		Scopes:    access.TenantScopes(),
		ExpiresAt: &time.Time{},
	})
	for name, c := range map[string]struct{ header, code string }{
		"none":          {"", "key_missing"},
		"another":       {"Basic abc", "key_missing"},
		"no key":        {"Bearer ", "key_missing"},
		"nonsense":      {"Bearer nonsense", "key_unknown"},
		"one more":      {"Bearer " + acme.key + "x", "key_unknown"},
		"one different": {"Bearer " + acme.key[:len(acme.key)-1] + "#", "key_unknown"},
		"never made":    {"Bearer phk_" + strings.Repeat("a", 49), "key_unknown"},
		"expired":       {"Bearer " + expired, "key_expired"},
	} {
		a := w.do("GET", "/api/v1/events", "", nil, "Authorization", c.header)
		a.problem(401, c.code)
		if a.Header.Get("WWW-Authenticate") == "" || a.Header.Get("RateLimit-Limit") == "" {
			t.Errorf("%s: headers %v", name, a.Header)
		}
	}
	w.do("GET", "/api/v1/events?api_key="+acme.key, "", nil).problem(401, "key_missing")
	w.do("GET", "/api/v1/events", "", nil, "Authorization", "bearer   "+acme.key).want(200)
}

func TestLastUseIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	made := w.do("POST", "/api/v1/keys", acme.key, `{"name":"CI","scopes":["events:read"]}`).want(201)
	if made.get("last_used_at") != nil {
		t.Errorf("new key: %s", made.Body)
	}
	t.Run("used", func(t *testing.T) { // the authenticator stops with the subtest and writes what it knows
		w.on(t).Run(w.auth.Run)
		w.on(t).do("GET", "/api/v1/events", made.text("api_key"), nil).want(200)
	})
	read := w.do("GET", "/api/v1/keys/"+made.text("id"), acme.key, nil).want(200)
	at, err := time.Parse(time.RFC3339, fmt.Sprint(read.get("last_used_at")))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("last_used_at: %s", read.Body)
	}
}

func TestKeyTextsAreNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	found, err := (accounts.Keys{DB: w.db}).FindKey(t.Context(), sha256.Sum256([]byte(acme.key)))
	if err != nil || found.Tenant != acme.uuid {
		t.Fatal(found, err)
	}
	var rows []sql.APIKey
	err = w.db.Console(t.Context(), func(q *db.Tx) (err error) {
		rows, err = q.ListKeys(t.Context(), sql.ListKeysParams{TenantID: &acme.uuid, High: id.Last, Limit: 10})
		return err
	})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	if text := fmt.Sprintf("%+v %s", rows[0], rows[0].Hash); strings.Contains(text, acme.key[10:]) {
		t.Errorf("the row holds the key: %s", text)
	}
}

func TestKeyListsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	for range 4 {
		w.do("POST", "/api/v1/keys", acme.key, `{"name":"a","scopes":["events:read"]}`).want(201)
	}
	all := ids(w.do("GET", "/api/v1/keys?order=asc", acme.key, nil).want(200))
	if len(all) != 5 || !slices.IsSorted(all) {
		t.Fatalf("keys: %q", all)
	}
	first := w.do("GET", "/api/v1/keys?limit=3", acme.key, nil).want(200)
	rest := w.do("GET", "/api/v1/keys?limit=3&cursor="+first.text("next_cursor"), acme.key, nil).want(200)
	got := append(ids(first), ids(rest)...)
	slices.Reverse(got)
	if !slices.Equal(got, all) || rest.get("next_cursor") != nil {
		t.Errorf("pages: %q, want %q", got, all)
	}
	cursor := first.text("next_cursor")
	for name, a := range map[string]*answer{
		"another tenant": w.do("GET", "/api/v1/keys?limit=3&cursor="+cursor, other.key, nil),
		"another order":  w.do("GET", "/api/v1/keys?order=asc&cursor="+cursor, acme.key, nil),
		"another list":   w.do("GET", "/api/v1/events?cursor="+cursor, acme.key, nil),
		"altered":        w.do("GET", "/api/v1/keys?cursor="+flip(cursor), acme.key, nil),
		"cut":            w.do("GET", "/api/v1/keys?cursor="+cursor[:8], acme.key, nil),
		"nonsense":       w.do("GET", "/api/v1/keys?cursor=%21%21", acme.key, nil),
		"empty":          w.do("GET", "/api/v1/keys?cursor=", acme.key, nil),
	} {
		t.Log(name)
		a.problem(400, "cursor_invalid", "cursor")
	}
	// A platform key sees the same list for this tenant.
	w.do("GET", "/api/v1/tenants/"+acme.id+"/keys?cursor="+cursor, w.platform, nil).want(200)
}

// flip changes one character in the middle of a text.
func flip(s string) string {
	b := []byte(s)
	if b[len(b)/2]++; b[len(b)/2] > 'y' {
		b[len(b)/2] = 'a'
	}
	return string(b)
}

func TestForeignKeysAreUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	foreign := ids(w.do("GET", "/api/v1/keys", other.key, nil))[0]
	for _, method := range []string{"GET", "DELETE"} {
		var bodies []string
		for _, one := range []string{
			foreign, id.Key.Format(db.NewID()), "key_nonsense", "%00", strings.Replace(foreign, "key_", "evt_", 1),
			strings.ToUpper(foreign),
		} {
			a := w.do(method, "/api/v1/keys/"+one, acme.key, nil, "X-Request-Id", "same").problem(404, "not_found")
			bodies = append(bodies, string(a.Body))
		}
		if once := slices.Compact(bodies); len(once) != 1 {
			t.Errorf("%s: %q", method, once)
		}
	}
	w.do("GET", "/api/v1/events", other.key, nil).want(200)
}
