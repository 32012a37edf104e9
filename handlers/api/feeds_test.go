package api_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/signature"
	"posthorn/handlers/api"
)

// feed creates a feed.
func (w *world) feed(t tenant, body string) (endpointID, secret string) {
	made := w.do("POST", "/api/v1/endpoints", t.key, body).want(http.StatusCreated)
	if made.text("status") != "active" {
		w.t.Errorf("a new feed is %s", made.text("status"))
	}
	return made.text("id"), made.text("secret")
}

// reads reads a feed until it has so many events: transactions of other databases of the server keep the watermark
// back.
func (w *world) reads(key, path string, n int) (p api.FeedPage) {
	w.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		w.do("GET", path, key, nil).want(http.StatusOK).into(&p)
		if len(p.Data) >= n {
			return p
		}
	}
	w.t.Fatalf("%s has %d events, not %d", path, len(p.Data), n)
	return p
}

func TestAConsumerReadsAndAcknowledgesAFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, secret := w.feed(acme, `{"kind":"feed","event_types":["order.*"]}`)
	path := "/api/v1/feeds/" + feed
	made := w.do("POST", path+"/consumers", acme.key, `{"name":"warehouse"}`).want(http.StatusCreated)
	token := made.text("token")
	w.do("POST", path+"/consumers", acme.key, `{"name":"warehouse"}`).problem(http.StatusConflict, "consumer_exists")
	w.do("POST", path+"/consumers", acme.key, `{"name":"a b"}`).problem(http.StatusBadRequest, "consumer_name_malformed", "name")
	emitted := w.do("POST", "/api/v1/events", acme.key, `{"type":"order.completed","data":{"note":"<ä>"}}`).want(http.StatusAccepted)
	if n := emitted.get("deliveries"); n != float64(0) {
		t.Errorf("an event that only a feed matches has %v deliveries", n)
	}
	w.do("POST", "/api/v1/events", acme.key, `{"type":"user.created","data":{}}`).want(http.StatusAccepted)
	second := w.order(acme)
	p := w.reads(token, path, 2)
	if p.Data[0].EventID != emitted.text("id") || p.Data[1].EventID != second || p.Truncated || p.Cursor == "" {
		t.Fatalf("%+v", p)
	}
	verifies(t, p.Data[0], secret)
	w.do("POST", path+"/ack", token, map[string]string{"cursor": p.Data[0].Cursor}).want(http.StatusOK)
	if again := w.reads(token, path, 1); len(again.Data) != 1 || again.Data[0].EventID != second || again.Data[0].Body != p.Data[1].Body {
		t.Errorf("after an acknowledgment: %+v", again.Data)
	}
	w.do("POST", path+"/ack", token, map[string]string{"cursor": p.Cursor}).want(http.StatusOK)
	var c api.FeedConsumer
	w.do("POST", path+"/ack", token, map[string]string{"cursor": p.Data[0].Cursor}).want(http.StatusOK).into(&c)
	if c.Cursor != p.Cursor || c.Lag.Events != 0 {
		t.Errorf("an older acknowledgment moved the consumer: %+v", c)
	}
	w.do("POST", path+"/rewind", token, `{"start":"oldest"}`).want(http.StatusOK)
	if all := w.reads(token, path, 2); len(all.Data) != 2 {
		t.Errorf("after a rewind: %+v", all.Data)
	}
	w.do("POST", path+"/rewind", token, `{"start":"yesterday"}`).problem(http.StatusBadRequest, "start_malformed", "start")
	w.do("GET", path+"?cursor=evt_1", token, nil).problem(http.StatusBadRequest, "feed_cursor_malformed", "cursor")
	w.do("GET", path+"?wait=26", token, nil).problem(http.StatusBadRequest, "wait_range", "wait")
	w.do("GET", path+"?curser=1", token, nil).problem(http.StatusBadRequest, "unknown_parameter", "curser")
}

// verifies checks an event as the receiver of a webhook does.
func verifies(t *testing.T, e api.FeedEvent, secret string) {
	t.Helper()
	head := map[string]string{}
	for _, one := range e.Headers {
		head[one.Name] = one.Value
	}
	key, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	stamp, _ := strconv.ParseInt(head["webhook-timestamp"], 10, 64)
	signing := signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}
	want := signature.Of(signing.Headers(nil, signature.Message{EventID: e.EventID, Type: e.EventType}, []byte(e.Body), signature.Send{At: time.Unix(stamp, 0), Attempt: 1}))
	if head["webhook-signature"] != want || head["webhook-id"] != e.EventID || !strings.Contains(e.Body, `{"note":"<ä>"}`) {
		t.Errorf("%+v, want the signature %s", e, want)
	}
}

func TestATokenReadsItsFeedAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	other, _ := w.feed(acme, `{"kind":"feed"}`)
	path := "/api/v1/feeds/" + feed
	token := w.do("POST", path+"/consumers", acme.key, `{"name":"a"}`).want(http.StatusCreated).text("token")
	w.do("POST", path+"/consumers", acme.key, `{"name":"b"}`).want(http.StatusCreated)
	w.do("GET", path, token, nil).want(http.StatusOK)
	w.do("GET", path+"?consumer=b", token, nil).problem(http.StatusForbidden, "consumer_token_only")
	w.do("POST", path+"/ack", token, `{"cursor":"a-0","consumer":"b"}`).problem(http.StatusForbidden, "consumer_token_only")
	w.do("GET", "/api/v1/feeds/"+other, token, nil).problem(http.StatusNotFound, "not_found")
	for _, elsewhere := range []string{"/api/v1/tenant", "/api/v1/events", "/api/v1/endpoints", path + "/consumers"} {
		w.do("GET", elsewhere, token, nil).problem(http.StatusForbidden, "consumer_token_only")
	}
	w.do("GET", path, w.scoped(acme, access.WebhooksRead), nil).problem(http.StatusForbidden, "scope_missing")
	w.do("GET", path+"?consumer=b", w.scoped(acme, access.EventsRead), nil).want(http.StatusOK)
	w.do("GET", path+"?consumer=c", acme.key, nil).problem(http.StatusNotFound, "not_found")
	fresh := w.do("POST", path+"/consumers/a/rotate-token", acme.key, nil).want(http.StatusCreated).text("token")
	w.do("GET", path, fresh, nil).want(http.StatusOK)
	w.do("GET", path, token, nil).problem(http.StatusUnauthorized, "key_revoked")
	w.do("DELETE", path+"/consumers/a", acme.key, nil).want(http.StatusNoContent)
	w.do("GET", path, fresh, nil).problem(http.StatusUnauthorized, "key_revoked")
	w.do("DELETE", path+"/consumers/a", acme.key, nil).problem(http.StatusNotFound, "not_found")
	if n := len(w.do("GET", path+"/consumers", acme.key, nil).want(http.StatusOK).get("data").([]any)); n != 1 {
		t.Errorf("%d consumers are left", n)
	}
}

func TestNothingIsSentToAFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	event := w.order(acme)
	path := "/api/v1/endpoints/" + feed
	w.do("POST", "/api/v1/endpoints", acme.key, `{"kind":"feed","url":"https://example.com"}`).problem(http.StatusBadRequest, "feed_url_unwanted", "url")
	for at, body := range map[string]string{
		path + "/verify":                      ``,
		path + "/test":                        ``,
		"/api/v1/events/" + event + "/replay": `{"endpoint_id":"` + feed + `"}`,
		path + "/replay-missing":              `{"since":"2020-01-01T00:00:00Z","dry_run":true}`,
	} {
		w.do("POST", at, acme.key, body).problem(http.StatusConflict, "endpoint_is_feed")
	}
	hook := w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://example.com/"}`).want(http.StatusCreated).text("id")
	w.do("GET", "/api/v1/feeds/"+hook, acme.key, nil).problem(http.StatusConflict, "endpoint_is_no_feed")
	w.do("GET", "/api/v1/feeds/"+hook+"/consumers", acme.key, nil).problem(http.StatusConflict, "endpoint_is_no_feed")
	routed := w.do("GET", "/api/v1/events/"+event+"/routing", acme.key, nil).want(http.StatusOK)
	if !strings.Contains(string(routed.Body), "the consumers of the feed read it") {
		t.Errorf("routing: %s", routed.Body)
	}
	w.do("POST", path+"/pause", acme.key, nil).want(http.StatusOK)
	w.do("GET", "/api/v1/feeds/"+feed, acme.key, nil).problem(http.StatusConflict, "feed_inactive")
	w.do("POST", path+"/resume", acme.key, nil).want(http.StatusOK)
	w.reads(acme.key, "/api/v1/feeds/"+feed, 1)
	w.do("DELETE", path, acme.key, nil).want(http.StatusNoContent)
	w.do("GET", "/api/v1/feeds/"+feed, acme.key, nil).problem(http.StatusNotFound, "not_found")
}

func TestALongPollEndsWithAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	w.order(acme)
	p := w.reads(acme.key, "/api/v1/feeds/"+feed, 1)
	got := make(chan *answer, 1)
	go func() { got <- w.do("GET", "/api/v1/feeds/"+feed+"?wait=25&cursor="+p.Cursor, acme.key, nil) }()
	event := w.order(acme)
	var next api.FeedPage
	if (<-got).want(http.StatusOK).into(&next); len(next.Data) != 1 || next.Data[0].EventID != event {
		t.Errorf("%+v", next)
	}
	if empty := w.do("GET", "/api/v1/feeds/"+feed+"?wait=1&cursor="+next.Cursor, acme.key, nil).want(http.StatusOK); !strings.Contains(string(empty.Body), `"caught_up":true`) {
		t.Errorf("%s", empty.Body)
	}
}

// A client of HTTP Feeds reads from the beginning, and continues after the id of the last event.
func TestAClientOfHTTPFeedsReadsBatchesOfCloudEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	want := []string{w.order(acme), w.order(acme), w.order(acme)}
	w.reads(acme.key, "/api/v1/feeds/"+feed, 3)
	var got []string
	last := ""
	for {
		a := w.do("GET", "/api/v1/feeds/"+feed+"?limit=2&lastEventId="+last, acme.key, nil, "Accept", "application/cloudevents-batch+json").want(http.StatusOK)
		var batch []map[string]any
		if err := json.Unmarshal(a.Body, &batch); err != nil || a.Header.Get("Content-Type") != "application/cloudevents-batch+json" {
			t.Fatalf("%s %s: %v", a.Header, a.Body, err)
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			if e["specversion"] != "1.0" || e["type"] != "order.completed" || e["source"] == "" || e["time"] == "" || e["data"] == nil {
				t.Errorf("not a CloudEvent: %v", e)
			}
			got = append(got, e["eventid"].(string))
			last = e["id"].(string)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestAStreamOfAFeedContinuesAfterTheLastID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	want := []string{w.order(acme), w.order(acme)}
	w.reads(acme.key, "/api/v1/feeds/"+feed, 2)
	server := httptest.NewServer(w.engine)
	defer server.Close()
	// next reads one event of a stream and disconnects.
	next := func(last string) (event, cursor string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/feeds/"+feed, nil)
		request.Header.Set("Authorization", "Bearer "+acme.key)
		request.Header.Set("Accept", "text/event-stream")
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(answer, err)
		}
		defer func() { _ = answer.Body.Close() }()
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			field, value, _ := strings.Cut(in.Text(), ": ")
			switch field {
			case "id":
				cursor = value
			case "data":
				var e api.FeedEvent
				if err := json.Unmarshal([]byte(value), &e); err != nil || e.Cursor != cursor {
					t.Fatal(value, err)
				}
				return e.EventID, cursor
			}
		}
		t.Fatal("the stream ends")
		return "", ""
	}
	first, cursor := next("")
	second, cursor := next(cursor)
	want = append(want, w.order(acme))
	third, _ := next(cursor)
	if got := []string{first, second, third}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("read %v, want %v", got, want)
	}
}

func TestAFeedIsTheReadHalfOfADurableStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed"}`)
	want := []string{w.order(acme), w.order(acme)}
	w.reads(acme.key, "/api/v1/feeds/"+feed, 2)
	path := "/api/v1/feeds/" + feed + "/stream"
	read := func(query string) (ids []string, a *answer) {
		a = w.do("GET", path+query, acme.key, nil).want(http.StatusOK)
		var events []api.FeedEvent
		a.into(&events)
		for _, e := range events {
			ids = append(ids, e.EventID)
			if e.Data == nil || e.Cursor > a.Header.Get("Stream-Next-Offset") {
				t.Errorf("%+v is behind %s", e, a.Header.Get("Stream-Next-Offset"))
			}
		}
		return ids, a
	}
	all, a := read("")
	end := a.Header.Get("Stream-Next-Offset")
	if strings.Join(all, " ") != strings.Join(want, " ") || a.Header.Get("Stream-Up-To-Date") != "true" {
		t.Errorf("from the beginning: %v, %v", all, a.Header)
	}
	w.do("GET", path, acme.key, nil, "If-None-Match", a.Header.Get("ETag")).want(http.StatusNotModified)
	for _, query := range []string{"?offset=now", "?offset=" + end} {
		none, a := read(query)
		if len(none) != 0 || strings.TrimSpace(string(a.Body)) != "[]" || a.Header.Get("Stream-Next-Offset") != end || a.Header.Get("Stream-Up-To-Date") != "true" {
			t.Errorf("%s: %s, %v", query, a.Body, a.Header)
		}
	}
	if got := w.do("HEAD", path, acme.key, nil).want(http.StatusOK).Header.Get("Stream-Next-Offset"); got != end {
		t.Errorf("HEAD: %s, not %s", got, end)
	}
	waiting := make(chan *answer, 1)
	go func() { waiting <- w.do("GET", path+"?live=long-poll&cursor=9&offset="+end, acme.key, nil) }()
	next := w.order(acme)
	woken := (<-waiting).want(http.StatusOK)
	if !strings.Contains(string(woken.Body), next) || woken.Header.Get("Stream-Cursor") == "" {
		t.Errorf("a long poll: %s, %v", woken.Body, woken.Header)
	}
	w.do("GET", path+"?live=long-poll", acme.key, nil).problem(http.StatusBadRequest, "feed_cursor_malformed", "offset")
	w.do("GET", path+"?offset=x", acme.key, nil).problem(http.StatusBadRequest, "feed_cursor_malformed", "cursor")
	w.do("GET", path+"?live=yes&offset=-1", acme.key, nil).problem(http.StatusBadRequest, "choice_unknown", "live")
}

func TestAnEndpointCanBeginInThePast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.order(acme)
	made := w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://example.com/","start":"oldest"}`).want(http.StatusCreated)
	if made.text("catching_up_since") == "" {
		t.Errorf("%s", made.Body)
	}
	event := w.order(acme)
	if n := w.do("GET", "/api/v1/events/"+event+"/deliveries", acme.key, nil).want(http.StatusOK).get("data").([]any); len(n) != 0 {
		t.Errorf("an event was fanned out to an endpoint that catches up: %v", n)
	}
	routed := w.do("GET", "/api/v1/events/"+event+"/routing", acme.key, nil).want(http.StatusOK)
	if !strings.Contains(string(routed.Body), "the endpoint catches up") {
		t.Errorf("routing: %s", routed.Body)
	}
	live := w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://example.com/","start":"now"}`).want(http.StatusCreated)
	if live.get("catching_up_since") != nil {
		t.Errorf("%s", live.Body)
	}
	w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://example.com/","start":"then"}`).problem(http.StatusBadRequest, "start_malformed", "start")
	w.do("POST", "/api/v1/endpoints", acme.key, `{"kind":"feed","start":"oldest"}`).problem(http.StatusBadRequest, "start_malformed", "start")
}

func TestAnEndpointIsRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	path := "/api/v1/endpoints/" + w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://example.com/"}`).want(http.StatusCreated).text("id")
	w.order(acme)
	rewound := w.do("POST", path+"/rewind", acme.key, `{"start":"oldest","reason":"restored from a backup"}`).want(http.StatusOK)
	if rewound.text("catching_up_since") == "" || w.audited(acme, "endpoint.rewind") != 1 {
		t.Errorf("%s", rewound.Body)
	}
	if w.do("GET", path, acme.key, nil).want(http.StatusOK).text("catching_up_since") == "" {
		t.Error("the endpoint does not catch up")
	}
	w.do("POST", path+"/rewind", acme.key, `{"start":"now"}`).want(http.StatusOK)
	w.do("POST", path+"/rewind", acme.key, `{"start":"2099-01-01T00:00:00Z"}`).problem(http.StatusBadRequest, "start_malformed", "start")
	w.do("POST", path+"/rewind", acme.key, `{"start":"then"}`).problem(http.StatusBadRequest, "start_malformed", "start")
	pulled, _ := w.feed(acme, `{"kind":"feed"}`)
	w.do("POST", "/api/v1/endpoints/"+pulled+"/rewind", acme.key, `{"start":"oldest"}`).problem(http.StatusConflict, "endpoint_is_feed")
	w.do("POST", path+"/rewind", w.scoped(acme, access.WebhooksRead), `{"start":"oldest"}`).problem(http.StatusForbidden, "scope_missing")
}

// The requests of docs/feeds.md, sent as they are but for the ids and keys, and the response that it shows.
func TestTheExamplesOfTheFeedsPageWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/feeds.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```(http|json)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples", len(examples))
	}
	w := newWorld(t)
	acme := w.tenant("Acme")
	feed, _ := w.feed(acme, `{"kind":"feed","event_types":["order.*"]}`)
	w.order(acme)
	w.reads(acme.key, "/api/v1/feeds/"+feed, 1)
	token := acme.key
	var last *answer
	for _, example := range examples {
		if example[1] == "json" {
			var shown, got map[string]any
			if err := json.Unmarshal([]byte(example[2]), &shown); err != nil {
				t.Fatal(err)
			}
			last.into(&got)
			if a, b := keysOf(shown), keysOf(got); a != b {
				t.Errorf("the page shows %s, and the response has %s", a, b)
			}
			if a, b := keysOf(shown["data"].([]any)[0]), keysOf(got["data"].([]any)[0]); a != b {
				t.Errorf("the page shows %s, and an event has %s", a, b)
			}
			continue
		}
		head, body, _ := strings.Cut(strings.TrimSpace(example[2]), "\n\n")
		method, rest, _ := strings.Cut(head, " ")
		path, _, _ := strings.Cut(rest, "\n")
		last = w.do(method, strings.ReplaceAll(path, "ep_01jd0000000000000000000000", feed), token, body)
		if method == "POST" {
			token = last.want(http.StatusCreated).text("token")
		}
		if last.Status >= http.StatusBadRequest {
			t.Errorf("%s %s: %s", method, path, last.Body)
		}
	}
}

func keysOf(v any) string {
	names := slices.Sorted(maps.Keys(v.(map[string]any)))
	return strings.Join(names, " ")
}
