package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers/api"
)

// radio is a client of a listener's stream.
type radio struct {
	t     *testing.T
	lines chan string
	last  string
	close func()
}

// tune opens a listener's stream.
func (w *world) tune(key, listener, last string) *radio {
	w.t.Helper()
	server := httptest.NewServer(w.engine)
	ctx, cancel := context.WithCancel(w.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/listeners/"+listener+"/stream", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatal(answer, err)
	}
	r := &radio{t: w.t, lines: make(chan string, 1000)}
	go func() {
		defer close(r.lines)
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			r.lines <- in.Text()
		}
	}()
	r.close = func() { cancel(); _ = answer.Body.Close(); server.Close() }
	w.t.Cleanup(r.close)
	return r
}

// next is the next event. An empty name says that the stream has ended.
func (r *radio) next() (name string, h api.Handout) {
	r.t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case line, more := <-r.lines:
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case !more:
				return "", h
			case field == "id":
				r.last = value
			case field == "event":
				name = value
			case field == "data":
				if err := json.Unmarshal([]byte(value), &h); err != nil {
					r.t.Fatal(err)
				}
			case line == "" && name != "":
				return name, h
			}
		case <-late:
			r.t.Fatal("the stream brings nothing")
		}
	}
}

// hears is the next delivery of an event.
func (r *radio) hears(event string) api.Handout {
	r.t.Helper()
	name, h := r.next()
	if name != "delivery" || h.EventID != event {
		r.t.Fatalf("heard %s %+v, want %s", name, h, event)
	}
	return h
}

func (w *world) listener(t tenant, body string) (listener, secret string) {
	made := w.do("POST", "/api/v1/listeners", t.key, body).want(http.StatusCreated)
	return made.text("id"), made.text("secret")
}

func (w *world) order(t tenant) string {
	return w.do("POST", "/api/v1/events", t.key, `{"type":"order.completed","data":{"note":"<ä>"}}`).want(http.StatusAccepted).text("id")
}

func (w *world) answers(t tenant, listener string, h api.Handout, what string) *answer {
	return w.do("POST", "/api/v1/listeners/"+listener+"/answers", t.key, `{"delivery_id":"`+h.DeliveryID+`","attempt_id":"`+h.AttemptID+`","duration_ms":12,`+what+`}`)
}

func TestAStreamBringsTheRequestThatAWorkerWouldMake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, secret := w.listener(acme, `{"forward":"http://localhost:3000/hook","event_types":["order.*"]}`)
	r := w.tune(acme.key, listener, "")
	event := w.order(acme)
	h := r.hears(event)
	head := map[string]string{}
	for _, one := range h.Headers {
		head[one.Name] = one.Value
	}
	key, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	stamp, _ := strconv.ParseInt(head["webhook-timestamp"], 10, 64)
	attempt, _ := id.Attempt.Parse(h.AttemptID)
	signing := signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}
	m := signature.Message{EventID: event, DeliveryID: h.DeliveryID, EndpointID: listener, Type: h.EventType}
	want := signature.Of(signing.Headers(nil, m, []byte(h.Body), signature.Send{At: time.Unix(stamp, 0), Attempt: 1}))
	if head["webhook-signature"] != want || head["webhook-id"] != event || head["Content-Type"] != signature.ContentType || stamp != attempt.Time().Unix() ||
		!strings.Contains(h.Body, `{"note":"<ä>"}`) {
		t.Errorf("handed out %+v, want the signature %s", h, want)
	}
	if got := w.do("GET", "/api/v1/deliveries/"+h.DeliveryID, acme.key, nil).want(http.StatusOK).text("status"); got != "held" {
		t.Errorf("until it is answered it is %s", got)
	}
	w.answers(acme, listener, h, `"status":204,"body":"thanks","headers":{"X-Local":"1"}`).want(http.StatusOK)
	again := w.answers(acme, listener, h, `"status":500`).want(http.StatusOK)
	if again.text("status") != "delivered" {
		t.Errorf("the same answer again: %s", again.Body)
	}
	var d api.DeliveryWithAttempts
	w.do("GET", "/api/v1/deliveries/"+h.DeliveryID, acme.key, nil).want(http.StatusOK).into(&d)
	if len(d.Attempts) != 1 || d.Attempts[0].ID != h.AttemptID || d.AttemptCount != 1 {
		t.Errorf("attempts: %+v", d.Attempts)
	}
	w.answers(acme, listener, api.Handout{
		DeliveryID: h.DeliveryID,
		AttemptID:  id.Attempt.Format(id.New(time.Now(), [10]byte{1})),
	}, `"status":200`).
		problem(http.StatusConflict, "answer_unexpected")
	w.do("DELETE", "/api/v1/endpoints/"+listener, acme.key, nil).want(http.StatusNoContent)
	if name, _ := r.next(); name != "gone" {
		t.Errorf("a deleted listener's stream ends with %q", name)
	}
	w.answers(acme, listener, h, `"status":200`).problem(http.StatusNotFound, "not_found")
}

func TestAStreamGoesOnWhereItsClientStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{}`)
	events := []string{w.order(acme), w.order(acme), w.order(acme)}
	first := w.tune(acme.key, listener, "")
	first.hears(events[0])
	second := first.hears(events[1])
	place := first.last
	third := first.hears(events[2])
	first.close()
	r := w.tune(acme.key, listener, place)
	given := r.hears(events[2])
	if given.AttemptID == third.AttemptID || given.DeliveryID != third.DeliveryID {
		t.Errorf("what the client never saw comes again as %+v", given)
	}
	w.answers(acme, listener, third, `"status":200`).problem(http.StatusConflict, "answer_unexpected")
	w.answers(acme, listener, second, `"status":200`).want(http.StatusOK)
	events = append(events, w.order(acme))
	r.hears(events[3]) // and nothing twice in between
	r.close()
	anew := w.tune(acme.key, listener, "")
	for _, open := range []string{events[0], events[2], events[3]} {
		anew.hears(open)
	}
	w.do("GET", "/api/v1/listeners/"+listener+"/stream", acme.key, nil, "Last-Event-ID", "x").problem(http.StatusBadRequest, "last_event_id_malformed", "Last-Event-ID")
}

func TestOneStreamOfAListenerIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{}`)
	old := w.tune(acme.key, listener, "")
	now := w.tune(acme.key, listener, "")
	if name, _ := old.next(); name != "listened_elsewhere" {
		t.Errorf("the older stream ends with %q", name)
	}
	now.hears(w.order(acme))
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{}`)
	made := w.do("POST", "/api/v1/keys", acme.key, map[string]any{"name": "laptop", "scopes": []access.Scope{access.WebhooksWrite}}).want(http.StatusCreated)
	r := w.tune(made.text("api_key"), listener, "")
	w.do("DELETE", "/api/v1/keys/"+made.text("id"), acme.key, nil).want(http.StatusNoContent)
	if name, _ := r.next(); name != "" {
		t.Errorf("the stream goes on with %q", name)
	}
}

func TestARejectionByAListenerCountsAsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{}`)
	r := w.tune(acme.key, listener, "")
	event := w.order(acme)
	h := r.hears(event)
	if got := w.answers(acme, listener, h, `"failure":"connect_error","error":"connection refused"`).want(http.StatusOK); got.text("status") != "failed" || got.text("last_failure") != "connect_error" {
		t.Errorf("answered %s", got.Body)
	}
	if dead := ids(w.do("GET", "/api/v1/deliveries?status=failed&endpoint="+listener, acme.key, nil).want(http.StatusOK)); len(dead) != 1 {
		t.Errorf("dead letters: %v", dead)
	}
	health := w.do("GET", "/api/v1/health", acme.key, nil).want(http.StatusOK)
	if health.get("failed_deliveries_day") != 0.0 || health.get("day.attempts") != 0.0 || health.get("active_endpoints") != 0.0 {
		t.Errorf("health: %s", health.Body)
	}
	again := w.do("POST", "/api/v1/deliveries/"+h.DeliveryID+"/replay", acme.key, `{}`).want(http.StatusAccepted).text("id")
	if h := r.hears(event); h.DeliveryID != again || !h.Replayed {
		t.Errorf("the replay comes as %+v", h)
	}
}

func TestListenersHaveTheirOwnRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{"forward":"http://localhost:3000/hook?x=1"}`)
	e := w.do("GET", "/api/v1/endpoints/"+listener, acme.key, nil).want(http.StatusOK)
	if e.text("kind") != "listen" || e.text("status") != "active" || e.text("url") != "http://localhost:3000/hook?x=1" {
		t.Errorf("made %s", e.Body)
	}
	w.do("PATCH", "/api/v1/endpoints/"+listener, acme.key, `{"url":"https://example.com"}`).problem(http.StatusConflict, "endpoint_is_listener")
	w.do("POST", "/api/v1/endpoints/"+listener+"/verify", acme.key, nil).problem(http.StatusConflict, "endpoint_is_listener")
	w.do("POST", "/api/v1/listeners", acme.key, `{"forward":"localhost:3000","event_types":["a..b"],"payload_version":"ü"}`).
		problem(http.StatusBadRequest, "event_type_pattern_invalid", "event_types", "payload_version", "forward")
	w.do("POST", "/api/v1/listeners/"+listener+"/answers", acme.key, `{"delivery_id":"`+id.Delivery.Format(acme.uuid)+`","attempt_id":"x","failure":"blocked_address","duration_ms":-1}`).
		problem(http.StatusBadRequest, "answer_malformed", "attempt_id", "failure", "duration_ms")
	for range 19 {
		w.listener(acme, `{}`)
	}
	w.do("POST", "/api/v1/listeners", acme.key, `{}`).problem(http.StatusConflict, "listeners_limit")
	w.do("POST", "/api/v1/endpoints", acme.key, `{"url":"https://hooks.example.com/a"}`).want(http.StatusCreated)
}

// A program that listens is a guest: no response and no list counts what goes to it, unless it is asked for.
func TestListsAndResponsesLeaveOutListeners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	listener, _ := w.listener(acme, `{}`)
	w.endpoint(acme, map[string]any{"event_types": []string{"order.*"}})
	made := w.do("POST", "/api/v1/events", acme.key, `{"type":"order.completed","data":{},"idempotency_key":"one"}`).want(http.StatusAccepted)
	again := w.do("POST", "/api/v1/events", acme.key, `{"type":"order.completed","data":{},"idempotency_key":"one"}`).want(http.StatusAccepted)
	if made.get("deliveries") != 1.0 || again.get("deliveries") != 1.0 {
		t.Errorf("the event goes to %v endpoints, and again to %v", made.get("deliveries"), again.get("deliveries"))
	}
	for path, want := range map[string]int{
		"/api/v1/deliveries":                                1,
		"/api/v1/deliveries?status=on_hold":                 1,
		"/api/v1/deliveries?endpoint=" + listener:           1,
		"/api/v1/events/" + made.text("id") + "/deliveries": 2,
		"/api/v1/endpoints":                                 1,
		"/api/v1/endpoints?kind=http":                       1,
		"/api/v1/endpoints?kind=listen":                     1,
		"/api/v1/endpoints?condition=disconnected":          0,
	} {
		list := w.do("GET", path, acme.key, nil).want(http.StatusOK)
		rows, _ := list.get("data").([]any)
		if len(rows) != want || strings.Contains(string(list.Body), listener) != (strings.Contains(path, listener) || strings.Contains(path, "listen") || want == 2) {
			t.Errorf("%s lists %d, want %d: %s", path, len(rows), want, list.Body)
		}
	}
	w.SQL("UPDATE listeners SET contact_at = now() - interval '2 minutes'")
	if gone := w.do("GET", "/api/v1/endpoints?condition=disconnected", acme.key, nil).want(http.StatusOK); !strings.Contains(string(gone.Body), listener) {
		t.Errorf("disconnected: %s", gone.Body)
	}
	w.do("GET", "/api/v1/endpoints?kind=pigeon", acme.key, nil).problem(http.StatusBadRequest, "choice_unknown", "kind")
}
