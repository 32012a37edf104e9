package api_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/handlers/api"
)

func TestAnEventComesBackByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	data := "{ \"a\" : 1, \"a\":12345678901234567890 ,\"é\":\"<&>\\u2028\\u00e9\", \"n\":1.10e+2 ,\"nul\":\"\\u0000\"}"
	sent := w.do(
		"POST",
		"/api/v1/events",
		acme.key,
		`{"type":"order.completed","data": `+data+` ,"key":"k1","channels":["eu","eu","us"],"version":"2026-01","occurred_at":"2026-01-31T12:00:00+02:00"}`,
	).want(202)
	if sent.get("deliveries").(float64) != 0 {
		t.Errorf("deliveries: %s", sent.Body)
	}
	read := w.do("GET", "/api/v1/events/"+sent.text("id"), acme.key, nil).want(200)
	if !bytes.HasSuffix(read.Body, []byte(`,"expunged":false,"data":`+data+"}\n")) {
		t.Errorf("data came back as %s", read.Body)
	}
	for path, want := range map[string]string{
		"id":          sent.text("id"),
		"type":        "order.completed",
		"created_at":  sent.text("created_at"),
		"key":         "k1",
		"version":     "2026-01",
		"occurred_at": "2026-01-31T10:00:00.000Z",
	} {
		if got := read.text(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := fmt.Sprint(read.get("channels")); got != "[eu us]" {
		t.Errorf("channels: %s", got)
	}
	if read.get("deliver_at") != nil {
		t.Errorf("deliver_at: %s", read.Body)
	}
}

func TestBadEmissionsAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		fields string
	}{
		"empty":             {"", 400, "not_json", ""},
		"not JSON":          {"type=order", 400, "not_json", ""},
		"cut off":           {`{"type":"a","data":{`, 400, "not_json", ""},
		"two values":        {`{"type":"a","data":1} {}`, 400, "not_json", ""},
		"an array":          {`[]`, 400, "not_object", ""},
		"not UTF-8":         {"{\"type\":\"a\",\"data\":\"\xff\"}", 400, "not_utf8", ""},
		"half a surrogate":  {`{"type":"a","data":"\ud83d"}`, 400, "unpaired_surrogate", ""},
		"too deep":          {`{"type":"a","data":` + deep + `}`, 400, "too_deep", "data"},
		"no type":           {`{"data":{}}`, 400, "type_missing", "type"},
		"nothing":           {`{}`, 400, "type_missing", "type data"},
		"bad type":          {`{"type":"order completed","data":1}`, 400, "type_malformed", "type"},
		"type is a number":  {`{"type":7,"data":1}`, 400, "field_type", "type"},
		"unknown field":     {`{"type":"a","data":1,"Type":"b"}`, 400, "unknown_field", "Type"},
		"twice":             {`{"type":"a","data":1,"data":2}`, 400, "duplicate_field", "data"},
		"key too long":      {`{"type":"a","data":1,"key":"` + strings.Repeat("k", 129) + `"}`, 400, "key_malformed", "key"},
		"NUL in the key":    {`{"type":"a","data":1,"key":"a\u0000"}`, 400, "key_malformed", "key"},
		"eleven channels":   {`{"type":"a","data":1,"channels":["0","1","2","3","4","5","6","7","8","9","10"]}`, 400, "channels_count", "channels"},
		"bad channel":       {`{"type":"a","data":1,"channels":["a b"]}`, 400, "channel_malformed", "channels"},
		"no time":           {`{"type":"a","data":1,"occurred_at":"yesterday"}`, 400, "time_malformed", "occurred_at"},
		"too far ahead":     {`{"type":"a","data":1,"deliver_at":"` + time.Now().Add(31*24*time.Hour).Format(time.RFC3339) + `"}`, 400, "time_range", "deliver_at"},
		"idempotency key":   {`{"type":"a","data":1,"idempotency_key":"a b"}`, 400, "idempotency_key_malformed", "idempotency_key"},
		"payload too large": {`{"type":"a","data":"` + strings.Repeat("x", 256<<10) + `"}`, 413, "payload_too_large", "data"},
		"body too large":    {`{"type":"a","data":"` + strings.Repeat("x", 300<<10) + `"}`, 413, "body_too_large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := w.on(t).do("POST", "/api/v1/events", acme.key, c.body)
			a.problem(c.status, c.code, strings.Fields(c.fields)...)
		})
	}
	t.Run("a body of unknown length is bounded too", func(t *testing.T) {
		t.Parallel()
		w.on(t).do("POST", "/api/v1/events", acme.key, onlyReader{strings.NewReader(strings.Repeat(" ", 1<<20))}).problem(413, "body_too_large")
	})
	t.Run("encodings are refused", func(t *testing.T) {
		t.Parallel()
		w.on(t).do("POST", "/api/v1/events", acme.key, `{}`, "Content-Encoding", "gzip").problem(400, "content_encoding_unsupported")
	})
}

func TestAStrictCatalogueRefusesUnknownTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	emitType := func(name string) *answer {
		return w.do("POST", "/api/v1/events", acme.key, map[string]any{"type": name, "data": 1})
	}
	emitType("order.completed").want(202)
	w.do("PATCH", "/api/v1/tenant", acme.key, `{"strict_types":true}`).want(200)
	emitType("order.completed").problem(400, "unknown_event_type", "type")
	w.do("POST", "/api/v1/event-types", acme.key, `{"name":"order.completed"}`).want(201)
	emitType("order.completed").want(202)
	emitType("order.complete").problem(400, "unknown_event_type", "type")
	w.do("DELETE", "/api/v1/event-types/order.completed", acme.key, nil).want(204)
	emitType("order.completed").problem(400, "unknown_event_type", "type")
	w.do("PATCH", "/api/v1/tenant", acme.key, `{"strict_types":false}`).want(200)
	emitType("order.completed").want(202)
}

func TestOneIdempotencyKeyMakesOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme, other := w.tenant("Acme"), w.tenant("Other")
	const body = `{"type":"a","data":{"n":1}}`
	answers := make([]*answer, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = w.do("POST", "/api/v1/events", acme.key, body, "Idempotency-Key", "one") })
	}
	all.Wait()
	first := 0
	for _, a := range answers {
		if a.want(202).text("id") != answers[0].text("id") || !bytes.Equal(a.Body, answers[0].Body) {
			t.Errorf("answers differ: %s and %s", a.Body, answers[0].Body)
		}
		if a.Header.Get("Idempotent-Replayed") == "" {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers say that they are the first", first)
	}
	field := strings.TrimSuffix(body, "}") + `,"idempotency_key":"one"}`
	if again := w.do("POST", "/api/v1/events", acme.key, field).want(202); again.text("id") != answers[0].text("id") || again.Header.Get("Idempotent-Replayed") == "" {
		t.Errorf("the same key in the field is another one: %s", again.Body)
	}
	w.Owner("UPDATE idempotency_keys SET body_hash = sha256($1) WHERE key = 'one'", []byte(field)) // as earlier versions kept it
	if w.do("POST", "/api/v1/events", acme.key, field).want(202).text("id") != answers[0].text("id") {
		t.Error("a key of an earlier version is not known")
	}
	w.Owner("UPDATE idempotency_keys SET body_hash = sha256($1) WHERE key = 'one'", []byte(body))
	w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":{"n":2}}`, "Idempotency-Key", "one").problem(409, "idempotency_conflict", "idempotency_key")
	if said := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":{"n":2}}`, "Idempotency-Key", "one"); !strings.Contains(string(said.Body), "byte for byte") {
		t.Errorf("nobody is told how bodies are compared: %s", said.Body)
	}
	w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1,"idempotency_key":"two"}`, "Idempotency-Key", "one").problem(400, "idempotency_key_twice", "idempotency_key")
	w.do("POST", "/api/v1/events", acme.key, body, "Idempotency-Key", "a b").problem(400, "idempotency_key_malformed", "idempotency_key")
	w.do("POST", "/api/v1/events", acme.key, body, "Idempotency-Key", "").problem(400, "idempotency_key_malformed", "idempotency_key")
	if w.do("POST", "/api/v1/events", other.key, body, "Idempotency-Key", "one").want(202).text("id") == answers[0].text("id") {
		t.Error("two tenants share a key")
	}
	if n := len(w.events(acme, "")); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestABatchChecksEachItemAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	a := w.do(
		"POST",
		"/api/v1/events/batch",
		acme.key,
		`{"events":[{"type":"a","data":1,"idempotency_key":"k"},{"type":"a b","data":1},{"type":"a","data":2,"idempotency_key":"k"},7,{"type":"b","data":"\ud83d"},{"type":"c","data":3}]}`,
	).want(207)
	var got api.BatchResult
	a.into(&got)
	var statuses []string
	for _, r := range got.Results {
		code := "-"
		if r.Code != nil {
			code = *r.Code
		}
		statuses = append(statuses, fmt.Sprint(r.Status, " ", code, " ", r.ID != nil))
	}
	want := []string{"202 - true", "400 type_malformed false", "409 idempotency_conflict false", "400 not_object false", "400 unpaired_surrogate false", "202 - true"}
	if !slices.Equal(statuses, want) || got.Accepted != 2 || got.Refused != 4 {
		t.Errorf("got %q, %s", statuses, a.Body)
	}
	again := w.do("POST", "/api/v1/events/batch", acme.key, `[{"type":"a","data":1,"idempotency_key":"k"}]`).want(202)
	var second api.BatchResult
	again.into(&second)
	if *second.Results[0].ID != *got.Results[0].ID || second.Results[0].Replayed == nil {
		t.Errorf("the key was not remembered: %s", again.Body)
	}
	if n := len(w.events(acme, "")); n != 2 {
		t.Errorf("%d events", n)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	many := func(n int) string {
		return `{"events":[` + strings.TrimSuffix(strings.Repeat(`{"type":"a","data":1},`, n), ",") + `]}`
	}
	post := func(body string, header ...string) *answer {
		return w.do("POST", "/api/v1/events/batch", acme.key, body, header...)
	}
	a := post(many(1000)).want(202)
	if got := a.get("accepted").(float64); got != 1000 {
		t.Errorf("accepted %v", got)
	}
	post(many(1001)).problem(400, "batch_count", "events")
	post(`{"events":[]}`).problem(400, "batch_count", "events")
	post(`{}`).problem(400, "batch_count", "events")
	post(`{"event":[]}`).problem(400, "unknown_field", "events")
	post(`{"events":7}`).problem(400, "field_type", "events")
	post(`{"events":[`).problem(400, "not_json")
	post(strings.Repeat(" ", 10<<20+1)).problem(413, "body_too_large")
	post(many(1), "Idempotency-Key", "k").problem(400, "idempotency_key_misplaced", "idempotency_key")
}

func TestEventListsAreStableUnderInserts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	emit := func(n int) (ids []string) {
		for range n {
			ids = append(ids, w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1}`).want(202).text("id"))
		}
		return ids
	}
	sent := emit(12)
	for _, order := range []string{"desc", "asc"} {
		var seen []string
		cursor := ""
		for pages := 0; ; pages++ {
			a := w.do("GET", "/api/v1/events?limit=5&order="+order+cursor, acme.key, nil).want(200)
			seen = append(seen, ids(a)...)
			next, more := a.get("next_cursor").(string)
			if !more {
				break
			}
			if pages > 10 {
				t.Fatal("the list does not end")
			}
			cursor = "&cursor=" + next
			emit(1)
		}
		old := slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return !slices.Contains(sent, s) })
		want := slices.Clone(sent)
		if order == "desc" {
			slices.Reverse(want)
		}
		if !slices.Equal(old, want) {
			t.Errorf("%s: saw %q, want %q", order, old, want)
		}
		if once := slices.Compact(slices.Sorted(slices.Values(seen))); len(once) != len(seen) {
			t.Errorf("%s: a row came twice", order)
		}
	}
}

func TestEventListsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for _, body := range []string{
		`{"type":"a","data":1,"channels":["eu"]}`, `{"type":"b","data":1,"channels":["eu","us"]}`, `{"type":"a","data":1}`,
	} {
		w.do("POST", "/api/v1/events", acme.key, body).want(202)
		time.Sleep(2 * time.Millisecond) // ids of one millisecond have no order for since
	}
	all := w.events(acme, "order=asc")
	third := w.do("GET", "/api/v1/events/"+all[2], acme.key, nil).text("created_at")
	for query, want := range map[string][]string{
		"type=a":                   {all[2], all[0]},
		"type=a&order=asc":         {all[0], all[2]},
		"channel=eu":               {all[1], all[0]},
		"channel=us&type=b":        {all[1]},
		"type=c":                   {},
		"since=" + third:           {all[2]},
		"until=" + third:           {all[1], all[0]},
		"type=a&limit=1&order=asc": {all[0]},
		"until=1970-01-02T00:00:00Z&since=1970-01-01T00:00:00Z": {},
		"since=9999-01-01T00:00:00Z":                            {},
	} {
		if got := w.events(acme, query); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	a := w.do("GET", "/api/v1/events?type=a&limit=1&order=asc", acme.key, nil)
	b := w.do("GET", "/api/v1/events?type=a&limit=1&order=asc&cursor="+a.text("next_cursor"), acme.key, nil).want(200)
	if got := ids(b); !slices.Equal(got, all[2:]) {
		t.Errorf("second page: %q", got)
	}
	if b.get("next_cursor") != nil {
		b = w.do("GET", "/api/v1/events?type=a&limit=1&order=asc&cursor="+b.text("next_cursor"), acme.key, nil).want(200)
		if len(ids(b)) != 0 || b.get("next_cursor") != nil {
			t.Errorf("the list does not end: %s", b.Body)
		}
	}
}

// What became of an event is said by the list, by the event itself, and by the filters: a replay takes the place of
// what it repeats.
func TestEventsSayWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	for range 2 {
		w.active(acme, map[string]any{"event_types": []string{"order.paid"}})
	}
	outcome := func(event string) map[string]any {
		got, _ := w.do("GET", "/api/v1/events/"+event, acme.key, nil).want(200).get("outcome").(map[string]any)
		return got
	}
	event := w.emit(acme, map[string]any{"type": "order.paid", "data": 1})
	both := ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", acme.key, nil).want(200))
	is := func(when string, want map[string]any) {
		t.Helper()
		if got := outcome(event); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	counts := func(waiting, delivered, failed, canceled int) map[string]any {
		return map[string]any{"waiting": float64(waiting), "delivered": float64(delivered), "failed": float64(failed), "canceled": float64(canceled), "feeds": 0.0}
	}
	is("waiting", counts(2, 0, 0, 0))
	w.settle(both[0], 3, 1)
	w.settle(both[1], 2, 0)
	is("one failed", counts(0, 1, 1, 0))
	if got := w.events(acme, "outcome=failed"); !slices.Equal(got, []string{event}) {
		t.Errorf("with failures: %q", got)
	}
	replay := w.do("POST", "/api/v1/deliveries/"+both[0]+"/replay", acme.key, nil).want(202).text("id")
	is("replayed", counts(1, 1, 0, 0))
	w.settle(replay, 2, 0)
	is("the replay was delivered", counts(0, 2, 0, 0))
	if got := w.events(acme, "outcome=failed"); len(got) > 0 {
		t.Errorf("with failures after the replay: %q", got)
	}
	nobody := w.emit(acme, map[string]any{"type": "cart.left", "data": 1})
	if got := w.events(acme, "outcome=unmatched"); !slices.Equal(got, []string{nobody}) {
		t.Errorf("matched nothing: %q", got)
	}
	w.do("GET", "/api/v1/events?outcome=lost", acme.key, nil).problem(400, "choice_unknown", "outcome")
}

// The filter examines a bounded number of events for a page, and its pages skip and repeat none of many.
func TestAFilterByOutcomeGoesThroughManyEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.active(acme, map[string]any{"event_types": []string{"order.paid"}})
	var failed []string
	for range 3 {
		event := w.emit(acme, map[string]any{"type": "order.paid", "data": 1})
		w.settle(ids(w.do("GET", "/api/v1/events/"+event+"/deliveries", acme.key, nil).want(200))[0], 3, 1)
		failed = append(failed, event)
		w.do("POST", "/api/v1/events/batch", acme.key, `[`+strings.Repeat(`{"type":"cart.left","data":1},`, 599)+`{"type":"cart.left","data":1}]`).want(202)
	}
	slices.Reverse(failed)
	for query, want := range map[string]int{"outcome=failed&limit=2": 3, "outcome=unmatched&limit=250": 1800, "outcome=failed&type=order.paid&limit=1&order=asc": 3} {
		var seen []string
		cursor := ""
		for pages := 0; pages < 20; pages++ {
			a := w.do("GET", "/api/v1/events?"+query+cursor, acme.key, nil).want(200)
			seen = append(seen, ids(a)...)
			next, more := a.get("next_cursor").(string)
			if cursor = "&cursor=" + next; !more {
				break
			}
		}
		slices.Sort(seen)
		if n := len(slices.Compact(seen)); n != want {
			t.Errorf("%s: %d events, want %d", query, n, want)
		}
	}
	if got := w.events(acme, "outcome=failed"); !slices.Equal(got, failed) {
		t.Errorf("with failures: %q, want %q", got, failed)
	}
}

func TestEventsOfAProducersIDAreFilteredBeforeTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	var own []string
	for _, body := range []string{
		`{"type":"a","data":1,"event_id":"order-1","channels":["eu"]}`, `{"type":"b","data":1,"event_id":"order-1"}`, `{"type":"a","data":1,"event_id":"order-2"}`,
	} {
		own = append(own, w.do("POST", "/api/v1/events", acme.key, body).want(202).text("id"))
		time.Sleep(2 * time.Millisecond) // ids of one millisecond have no order
	}
	for query, want := range map[string][]string{
		"":                            {own[1], own[0]},
		"&limit=1":                    {own[1]},
		"&limit=1&order=asc":          {own[0]},
		"&type=a&limit=1":             {own[0]},
		"&channel=eu&limit=1":         {own[0]},
		"&type=c":                     {},
		"&until=1970-01-02T00:00:00Z": {},
	} {
		if got := w.events(acme, "event_id=order-1"+query); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	first := w.do("GET", "/api/v1/events?event_id=order-1&limit=1", acme.key, nil).want(200)
	second := w.do("GET", "/api/v1/events?event_id=order-1&limit=1&cursor="+first.text("next_cursor"), acme.key, nil).want(200)
	if got := ids(second); !slices.Equal(got, own[:1]) || second.get("next_cursor") != nil {
		t.Errorf("the second page is %s", second.Body)
	}
}

func TestEventsOlderThanTheRetentionAreHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	sent := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1}`).want(202)
	// An event of ten days ago, as an import would store it.
	old := w.backdate(acme, sent.text("id"), 10*24*time.Hour)
	if got := w.events(acme, ""); len(got) != 2 {
		t.Fatalf("events: %q", got)
	}
	w.do("GET", "/api/v1/events/"+old, acme.key, nil).want(200)
	w.do("PATCH", "/api/v1/tenant", acme.key, `{"retention_days":5}`).want(200)
	if got := w.events(acme, ""); !slices.Equal(got, []string{sent.text("id")}) {
		t.Errorf("events: %q", got)
	}
	w.do("GET", "/api/v1/events/"+old, acme.key, nil).problem(404, "not_found")
}

func TestAPlatformKeyNamesTheTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	sent := w.do("POST", "/api/v1/tenants/"+acme.id+"/events", w.platform, `{"type":"a","data":1}`).want(202).text("id")
	if got := w.events(acme, ""); !slices.Equal(got, []string{sent}) {
		t.Errorf("events: %q", got)
	}
	w.do("GET", "/api/v1/tenants/"+acme.id+"/events/"+sent, w.platform, nil).want(200)
	w.do("POST", "/api/v1/events", w.platform, `{"type":"a","data":1}`).problem(400, "tenant_required")
	w.do("POST", "/api/v1/tenants/"+acme.id+"/events", acme.key, `{"type":"a","data":1}`).problem(403, "platform_key_required")
	for _, unknown := range []string{"ten_01jd0000000000000000000000", "nonsense", strings.Replace(acme.id, "ten_", "evt_", 1)} {
		w.do("POST", "/api/v1/tenants/"+unknown+"/events", w.platform, `{"type":"a","data":1}`).problem(404, "not_found")
	}
	narrow := w.MakeKey(accounts.NewKey{Name: "narrow", Scopes: access.Scopes{access.EventsRead}})
	w.do("POST", "/api/v1/tenants/"+acme.id+"/events", narrow, `{"type":"a","data":1}`).problem(403, "scope_missing")
}

// ids lists the ids on a page.
func ids(a *answer) []string {
	a.t.Helper()
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	a.into(&page)
	out := []string{}
	for _, row := range page.Data {
		out = append(out, row.ID)
	}
	return out
}

// events lists the ids on a page of a tenant's events.
func (w *world) events(t tenant, query string) []string {
	w.t.Helper()
	return ids(w.do(http.MethodGet, "/api/v1/events?"+query, t.key, nil).want(200))
}

func TestAnEventWhoseTimeHasPassedIsSentNowAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	late := `{"type":"a","data":1,"deliver_at":"` + at(-time.Hour) + `","idempotency_key":"once"}`
	first := w.do("POST", "/api/v1/events", acme.key, late).want(202)
	if !strings.Contains(string(first.Body), `"code":"time_range"`) || !strings.Contains(string(first.Body), `"field":"deliver_at"`) {
		t.Errorf("an hour late: %s", first.Body)
	}
	if again := w.do("POST", "/api/v1/events", acme.key, late).want(202); again.get("warnings") != nil || again.text("id") != first.text("id") {
		t.Errorf("repeated: %s", again.Body)
	}
	for name, d := range map[string]time.Duration{"to come": time.Hour, "of a clock that differs": -10 * time.Second} {
		r := w.do("POST", "/api/v1/events", acme.key, `{"type":"a","data":1,"deliver_at":"`+at(d)+`"}`).want(202)
		if r.get("warnings") != nil {
			t.Errorf("a time %s: %s", name, r.Body)
		}
	}
	batch := w.do("POST", "/api/v1/events/batch", acme.key, `{"events":[{"type":"a","data":1},{"type":"a","data":1,"deliver_at":"`+at(-time.Hour)+`"}]}`).want(202)
	if n := strings.Count(string(batch.Body), `"warnings"`); n != 1 || !strings.Contains(string(batch.Body), `"field":"deliver_at"`) {
		t.Errorf("a batch: %s", batch.Body)
	}
}

func TestPosthornsOwnTypesCannotBeEmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	ep := w.active(acme, nil)
	for _, kind := range []string{"endpoint.verification", "endpoint.disabled", "endpoint.test", "posthorn.x"} {
		w.do("POST", "/api/v1/events", acme.key, `{"type":"`+kind+`","data":1}`).problem(400, "type_reserved", "type")
		batch := w.do("POST", "/api/v1/events/batch", acme.key, `{"events":[{"type":"`+kind+`","data":1},{"type":"a.b","data":1}]}`).want(207)
		if !strings.Contains(string(batch.Body), "type_reserved") {
			t.Errorf("%s in a batch: %s", kind, batch.Body)
		}
		if kind != "endpoint.test" {
			w.do("POST", "/api/v1/endpoints/"+ep+"/test", acme.key, `{"type":"`+kind+`"}`).problem(400, "type_reserved", "type")
		}
	}
	w.do("POST", "/api/v1/endpoints/"+ep+"/test", acme.key, nil).want(202)
	w.do("POST", "/api/v1/events", acme.key, `{"type":"endpoints.created","data":1}`).want(202)
	w.do("POST", "/api/v1/events", acme.key, `{"type":"-2","data":1}`).problem(400, "type_malformed", "type")
}

func TestAVersionThatTheTypeDoesNotDeclareIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	typed := func(check string) {
		w.do("POST", "/api/v1/event-types", acme.key, `{"name":"`+check+`","schema_check":"`+check+`","versions":{"2025-01-01":{},"2026-01-01":{}}}`).want(201)
	}
	typed("enforce")
	typed("warn")
	emit := func(kind, version string) *answer {
		return w.do("POST", "/api/v1/events", acme.key, `{"type":"`+kind+`","data":1`+version+`}`)
	}
	emit("enforce", `,"version":"2O25-01-01"`).problem(400, "unknown_version", "version")
	emit("enforce", `,"version":"2025-01-01"`).want(202)
	emit("enforce", ``).want(202)
	emit("other", `,"version":"9"`).want(202)
	if a := emit("warn", `,"version":"9"`).want(202); !strings.Contains(string(a.Body), "unknown_version") {
		t.Errorf("no warning: %s", a.Body)
	}
	if a := emit("warn", `,"version":"2026-01-01"`).want(202); strings.Contains(string(a.Body), "warnings") {
		t.Errorf("a warning: %s", a.Body)
	}
}
