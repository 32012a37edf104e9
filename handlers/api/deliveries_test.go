package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
)

func TestDeliveriesAreListedByEveryStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, map[string]any{"event_types": []string{"order.*"}})
	held := w.active(tn, map[string]any{"event_types": []string{"held.it"}})
	w.do("POST", "/api/v1/endpoints/"+held+"/pause", tn.key, nil).want(http.StatusOK)

	d := map[string]string{}
	for _, name := range []string{"pending", "retrying", "delivered", "failed", "canceled", "canceled after an attempt", "failed too"} {
		d[name] = w.onlyDelivery(tn, map[string]any{"channels": []string{strings.ReplaceAll(name, " ", "-")}})
	}
	held1 := w.deliveryTo(tn, held, map[string]any{"type": "held.it"})
	tried := w.deliveryTo(tn, held, map[string]any{"type": "held.it"})
	w.reschedule(d["retrying"])
	w.reschedule(d["canceled after an attempt"])
	w.settle(d["delivered"], 2, 0)
	w.settle(d["failed"], 3, 1)
	w.settle(d["failed too"], 3, 2)
	w.reschedule(tried)
	for _, name := range []string{"canceled", "canceled after an attempt"} {
		w.do("POST", "/api/v1/deliveries/"+d[name]+"/cancel", tn.key, nil).want(http.StatusOK)
	}
	w.Worker()
	everything := "type=order.paid&endpoint=" + ep
	for query, want := range map[string][]string{
		"status=pending&endpoint=" + ep:              {d["pending"]},
		"status=retrying":                            {d["retrying"]},
		"status=held":                                {held1, tried},
		"status=delivered":                           {d["delivered"]},
		"status=failed":                              {d["failed"], d["failed too"]},
		"status=failed&endpoint=" + ep:               {d["failed"], d["failed too"]},
		"status=failed&endpoint=" + held:             nil,
		"status=failed&type=held.it":                 nil,
		"status=canceled":                            {d["canceled"], d["canceled after an attempt"]},
		"status=all_failed":                          {d["retrying"], d["failed"], d["canceled after an attempt"], d["failed too"]},
		"status=all_failed&endpoint=" + held:         nil,
		"status=failed&channel=failed-too":           {d["failed too"]},
		"status=retrying&type=order.paid":            {d["retrying"]},
		"status=held&type=order.paid":                nil,
		"channel=pending":                            {d["pending"]},
		"archived=true":                              nil,
		"status=pending&archived=true":               nil,
		everything:                                   {d["pending"], d["retrying"], d["delivered"], d["failed"], d["canceled"], d["canceled after an attempt"], d["failed too"]},
		"endpoint=" + id.Endpoint.Format(db.NewID()): nil,
		"wait=next":                                  {d["pending"]},
		"wait=retry":                                 {d["retrying"]},
		"wait=endpoint_paused":                       {held1, tried},
		"wait=retry&status=held":                     nil,
		"wait=retry&status=failed":                   nil,
		"wait=breaker":                               nil,
		"until=2020-01-01T00:00:00Z":                 nil,
		"since=2999-01-01T00:00:00Z":                 nil,
	} {
		got := w.deliveries(tn, query+"&order=asc")
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, names(d, got), names(d, want))
		}
		slices.Reverse(want)
		if got := w.deliveries(tn, query); !slices.Equal(got, want) {
			t.Errorf("%s, newest first: got %v, want %v", query, names(d, got), names(d, want))
		}
		if paged := w.walk(tn, query+"&limit=1"); !slices.Equal(paged, want) {
			t.Errorf("%s, in pages of one: got %v, want %v", query, names(d, paged), names(d, want))
		}
	}
	w.do("GET", "/api/v1/deliveries?wait=long", tn.key, nil).problem(http.StatusBadRequest, "wait_unknown", "wait")
	w.do("GET", "/api/v1/endpoints?condition=well", tn.key, nil).problem(http.StatusBadRequest, "condition_unknown", "condition")
	w.do("GET", "/api/v1/deliveries?status=lost", tn.key, nil).problem(http.StatusBadRequest, "status_unknown", "status")
	if a := w.do("GET", "/api/v1/deliveries/"+tried, tn.key, nil); a.text("status") != "held" || a.get("next_attempt_at") != nil {
		t.Errorf("held: %s", a.Body)
	}
	if a := w.do("GET", "/api/v1/deliveries/"+d["retrying"], tn.key, nil); a.text("status") != "retrying" || a.get("next_attempt_at") == nil || a.get("attempt_count").(float64) != 1 {
		t.Errorf("retrying: %s", a.Body)
	}
}

// names makes ids readable.
func names(known map[string]string, ids []string) []string {
	out := slices.Clone(ids)
	for i, u := range out {
		for name, v := range known {
			if v == u {
				out[i] = name
			}
		}
	}
	return out
}

// deliveryTo emits an event and returns its delivery to one endpoint.
func (w *world) deliveryTo(tn tenant, ep string, body map[string]any) string {
	w.t.Helper()
	ev := w.emit(tn, body)
	for _, d := range w.do("GET", "/api/v1/events/"+ev+"/deliveries", tn.key, nil).want(http.StatusOK).get("data").([]any) {
		if one := d.(map[string]any); one["endpoint_id"] == ep {
			return one["id"].(string)
		}
	}
	w.t.Fatalf("%s did not go to %s", ev, ep)
	return ""
}

// walk follows a list's cursors to its end.
func (w *world) walk(tn tenant, query string) (ids []string) {
	w.t.Helper()
	cursor := ""
	for range 1000 {
		a := w.do("GET", "/api/v1/deliveries?"+query+cursor, tn.key, nil).want(http.StatusOK)
		for _, d := range a.get("data").([]any) {
			ids = append(ids, d.(map[string]any)["id"].(string))
		}
		if a.get("next_cursor") == nil {
			return ids
		}
		cursor = "&cursor=" + url.QueryEscape(a.text("next_cursor"))
	}
	w.t.Fatal("the list does not end")
	return nil
}

func TestDeliveriesAreListedByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	at := func(dlv string) time.Time {
		deliveryID, err := id.Delivery.Parse(dlv)
		if err != nil {
			t.Fatal(err)
		}
		return deliveryID.Time()
	}
	first := w.onlyDelivery(tn, nil)
	second := w.onlyDelivery(tn, nil)
	for !at(second).After(at(first)) { // ids have whole milliseconds
		w.settle(second, 2, 0)
		w.do("POST", "/api/v1/deliveries/"+second+"/archive", tn.key, nil).want(http.StatusOK)
		second = w.onlyDelivery(tn, nil)
	}
	stamp := func(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }
	for query, want := range map[string][]string{
		"since=" + stamp(at(second)):                                                      {second},
		"since=" + stamp(at(second).Add(time.Microsecond)):                                nil,
		"until=" + stamp(at(second)):                                                      {first},
		"until=" + stamp(at(second).Add(time.Microsecond)):                                {second, first},
		"since=" + stamp(at(first)) + "&until=" + stamp(at(second).Add(time.Millisecond)): {second, first},
		"since=" + stamp(at(first)) + "&until=" + stamp(at(first)):                        nil,
		"status=pending&since=" + stamp(at(second)):                                       {second},
		"status=pending&until=" + stamp(at(second)):                                       {first},
	} {
		if got := w.deliveries(tn, query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
}

func TestTwoRetriesAtOnceMakeOneReadyRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	dlv := w.onlyDelivery(tn, nil)
	u := w.uuid(id.Delivery, dlv)
	w.reschedule(dlv)
	rev := one[int64](w, "SELECT rev FROM lanes")
	parallel(t, 8, func(int) {
		if a := w.do("POST", "/api/v1/deliveries/"+dlv+"/retry-now", tn.key, nil).want(http.StatusAccepted); a.text("status") != "retrying" {
			t.Errorf("got %s", a.Body)
		}
	})
	if got := one[string](w, "SELECT state || ' ' || gen || ' ' || (due_at <= now()) FROM queue WHERE delivery_id = $1", u); got != "0 1 true" {
		t.Errorf("state, gen and due: %s, want 0 1 true", got)
	}
	if after := one[int64](w, "SELECT rev FROM lanes"); after != rev+1 {
		t.Errorf("the lane was told %d times", after-rev)
	}
	if n := w.audited(tn, "delivery.retry_now"); n != 1 {
		t.Errorf("audited %d times", n)
	}
}

func TestRetryNowLeavesTheOrderAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, map[string]any{"ordering": "key"})
	older := w.onlyDelivery(tn, map[string]any{"key": "k"})
	blocked := w.onlyDelivery(tn, map[string]any{"key": "k"})
	w.do("POST", "/api/v1/deliveries/"+blocked+"/retry-now", tn.key, nil).problem(http.StatusConflict, "delivery_waits_its_turn")
	seq := one[int64](w, "SELECT seq FROM queue WHERE delivery_id = $1", w.uuid(id.Delivery, older))
	w.reschedule(older)
	w.do("POST", "/api/v1/deliveries/"+older+"/retry-now", tn.key, nil).want(http.StatusAccepted)
	if got := one[string](w, "SELECT state || ' ' || seq FROM queue WHERE delivery_id = $1", w.uuid(id.Delivery, older)); got != fmt.Sprintf("0 %d", seq) {
		t.Errorf("a retrying head keeps its place: %s, want 0 %d", got, seq)
	}
	later := map[string]any{"key": "k", "deliver_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
	deferred := w.onlyDelivery(tn, later)
	fresh := w.onlyDelivery(tn, map[string]any{"key": "k"})
	w.do("POST", "/api/v1/deliveries/"+deferred+"/retry-now", tn.key, nil).want(http.StatusAccepted)
	if !one[bool](w, "SELECT state = 2 AND seq > (SELECT seq FROM queue WHERE delivery_id = $2) FROM queue WHERE delivery_id = $1",
		w.uuid(id.Delivery, deferred), w.uuid(id.Delivery, fresh)) {
		t.Error("a deferred one takes its place at the end, behind its key")
	}
}

func TestADeferredDeliveryCanBeSentNowOrCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	later := map[string]any{"deliver_at": time.Now().Add(time.Hour).Format(time.RFC3339)}
	now, off := w.onlyDelivery(tn, later), w.onlyDelivery(tn, later)
	if a := w.do("GET", "/api/v1/deliveries/"+now, tn.key, nil); a.text("status") != "pending" || a.get("next_attempt_at") == nil {
		t.Errorf("got %s", a.Body)
	}
	w.do("POST", "/api/v1/deliveries/"+now+"/retry-now", tn.key, nil).want(http.StatusAccepted)
	if got := one[int](w, "SELECT state::int FROM queue WHERE delivery_id = $1", w.uuid(id.Delivery, now)); got != 0 {
		t.Errorf("state %d", got)
	}
	if a := w.do("POST", "/api/v1/deliveries/"+off+"/cancel", tn.key, nil).want(http.StatusOK); a.text("status") != "canceled" {
		t.Errorf("got %s", a.Body)
	}
}

func TestCancelSettlesTotalsAndListsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	dlv := w.onlyDelivery(tn, nil)
	u := w.uuid(id.Delivery, dlv)
	var ok, refused int
	results := make(chan int, 8)
	parallel(t, 8, func(int) { results <- w.do("POST", "/api/v1/deliveries/"+dlv+"/cancel", tn.key, nil).Status })
	for range 8 {
		switch <-results {
		case http.StatusOK:
			ok++
		case http.StatusConflict:
			refused++
		}
	}
	if ok != 1 || refused != 7 {
		t.Errorf("%d canceled, %d were refused", ok, refused)
	}
	for what, query := range map[string]string{
		"its row":      "SELECT count(*)::int FROM deliveries WHERE id = $1 AND status = 4 AND settled_at IS NOT NULL",
		"its listing":  "SELECT count(*)::int FROM cancellations WHERE delivery_id = $1 AND NOT attempted AND NOT archived",
		"one entry":    "SELECT (SELECT sum(n) FROM (SELECT unnest(canceled) AS n FROM ledger) x)::int WHERE $1::uuid IS NOT NULL",
		"empty queue":  "SELECT 1 + count(*)::int FROM queue WHERE delivery_id = $1",
		"the creation": "SELECT (SELECT sum(n) FROM (SELECT unnest(accepted) AS n FROM ledger) x)::int WHERE $1::uuid IS NOT NULL",
	} {
		if n := one[int](w, query, u); n != 1 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if n := w.audited(tn, "delivery.cancel"); n != 1 {
		t.Errorf("audited %d times", n)
	}
	// A held delivery can be canceled too.
	w.do("POST", "/api/v1/endpoints/"+ep+"/pause", tn.key, nil).want(http.StatusOK)
	held := w.onlyDelivery(tn, nil)
	w.do("POST", "/api/v1/deliveries/"+held+"/retry-now", tn.key, nil).problem(http.StatusConflict, "delivery_held", "status")
	w.do("POST", "/api/v1/deliveries/"+held+"/cancel", tn.key, nil).want(http.StatusOK)
}

func TestActionsAreRefusedWithTheStateThatForbidsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	pending, delivered, failed := w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil)
	w.settle(delivered, 2, 0)
	w.settle(failed, 3, 1)
	for _, tt := range []struct{ dlv, action, code, state string }{
		{pending, "replay", "delivery_waiting", "pending"},
		{pending, "archive", "delivery_waiting", "pending"},
		{pending, "unarchive", "delivery_waiting", "pending"},
		{delivered, "retry-now", "delivery_settled", "delivered"},
		{delivered, "cancel", "delivery_settled", "delivered"},
		{failed, "retry-now", "delivery_settled", "failed"},
		{failed, "cancel", "delivery_settled", "failed"},
	} {
		a := w.do("POST", "/api/v1/deliveries/"+tt.dlv+"/"+tt.action, tn.key, nil).problem(http.StatusConflict, tt.code, "status")
		if state := a.get("errors").([]any)[0].(map[string]any)["code"]; state != tt.state {
			t.Errorf("%s of a %s delivery: the refusal says %v", tt.action, tt.state, state)
		}
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action LIKE 'delivery.%'"); n != 0 {
		t.Errorf("%d refusals were audited as done", n)
	}
}

func TestReplayMakesANewDeliveryOfTheSameEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	dlv := w.onlyDelivery(tn, nil)
	w.settle(dlv, 3, 1)
	original := w.do("GET", "/api/v1/deliveries/"+dlv, tn.key, nil).want(http.StatusOK)
	before := one[int64](w, "SELECT last_value FROM queue_seq")
	a := w.do("POST", "/api/v1/deliveries/"+dlv+"/replay", tn.key, `{"reason":"customer asked"}`).want(http.StatusAccepted)
	if a.text("replay_of") != dlv || a.text("event_id") != original.text("event_id") || a.text("status") != "pending" || a.get("attempt_count").(float64) != 0 || a.text("id") == dlv {
		t.Errorf("got %s", a.Body)
	}
	now := w.do("GET", "/api/v1/deliveries/"+dlv, tn.key, nil).want(http.StatusOK)
	if now.text("replayed_by") != a.text("id") || now.get("replayed_at") == nil || now.get("dead_letter") != false || original.get("dead_letter") != true {
		t.Errorf("the original does not name its replay: %s", now.Body)
	}
	for _, field := range []string{"status", "reason", "attempt_count", "attempts", "settled_at", "archived_at", "last_status"} {
		if before, after := original.get(field), now.get(field); !reflect.DeepEqual(before, after) {
			t.Errorf("the original's %s changed from %v to %v", field, before, after)
		}
	}
	if !one[bool](w, "SELECT replayed FROM dead_letters WHERE delivery_id = $1", w.uuid(id.Delivery, dlv)) {
		t.Error("the dead letter does not know")
	}
	if !one[bool](w, "SELECT seq > $2 AND state = 0 FROM queue WHERE delivery_id = $1", w.uuid(id.Delivery, a.text("id")), before) {
		t.Error("it does not stand ready at the end of its lane")
	}
	if n := one[int](w, "SELECT sum(n)::int FROM (SELECT unnest(accepted) AS n FROM ledger) x"); n != 2 {
		t.Errorf("the books know %d accepted deliveries", n)
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'delivery.replay' AND object_id = $1 AND reason = 'customer asked' AND details->>'new_delivery' = $2", dlv, a.text("id")); n != 1 {
		t.Error("not audited with its reason")
	}
	w.do("POST", "/api/v1/deliveries/"+dlv+"/replay", tn.key, map[string]string{"reason": strings.Repeat("x", 501)}).
		problem(http.StatusBadRequest, "text_length", "reason")
}

func TestReplaysJoinTheOrderTheirEndpointHasNow(t *testing.T) {
	t.Parallel()
	for ordering, want := range map[string]string{"none": "0 none", "key": "2 k", "strict": "2 *"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("a")
			w.active(tn, map[string]any{"ordering": ordering})
			dlv := w.onlyDelivery(tn, map[string]any{"key": "k"})
			w.settle(dlv, 2, 0)
			again := w.do("POST", "/api/v1/deliveries/"+dlv+"/replay", tn.key, nil).want(http.StatusAccepted).text("id")
			if got := one[string](w, "SELECT state || ' ' || coalesce(order_key, 'none') FROM queue WHERE delivery_id = $1", w.uuid(id.Delivery, again)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestWhatIsGoneCannotBeReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	ep := w.active(tn, nil)
	expunged, deleted, orphan := w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil)
	for _, d := range []string{expunged, deleted, orphan} {
		w.settle(d, 3, 1)
	}
	w.SQL("UPDATE events SET data = NULL WHERE id = (SELECT event_id FROM deliveries WHERE id = $1)", w.uuid(id.Delivery, expunged))
	w.SQL("DELETE FROM events WHERE id = (SELECT event_id FROM deliveries WHERE id = $1)", w.uuid(id.Delivery, orphan))
	w.do("POST", "/api/v1/deliveries/"+expunged+"/replay", tn.key, nil).problem(http.StatusConflict, "event_expired")
	w.do("POST", "/api/v1/deliveries/"+orphan+"/replay", tn.key, nil).problem(http.StatusConflict, "event_expired")
	w.do("DELETE", "/api/v1/endpoints/"+ep, tn.key, nil).want(http.StatusNoContent)
	w.do("POST", "/api/v1/deliveries/"+deleted+"/replay", tn.key, nil).problem(http.StatusConflict, "endpoint_deleted")
	if n := one[int](w, "SELECT count(*)::int FROM deliveries"); n != 3 {
		t.Errorf("%d deliveries: a refusal made one", n)
	}
}

func TestArchivedDeliveriesLeaveListsAndComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	delivered, failed, canceled := w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil), w.onlyDelivery(tn, nil)
	w.settle(delivered, 2, 0)
	w.settle(failed, 3, 1)
	w.do("POST", "/api/v1/deliveries/"+canceled+"/cancel", tn.key, nil).want(http.StatusOK)
	all := []string{canceled, failed, delivered}
	act := func(action string) {
		for range 2 { // the second changes nothing
			for _, d := range all {
				w.do("POST", "/api/v1/deliveries/"+d+"/"+action, tn.key, nil).want(http.StatusOK)
			}
		}
	}
	look := func(when string, shown, archived []string) {
		for query, d := range map[string]string{"delivered": delivered, "failed": failed, "canceled": canceled} {
			want := func(list []string) []string {
				if slices.Contains(list, d) {
					return []string{d}
				}
				return nil
			}
			if got := w.deliveries(tn, "status="+query); !slices.Equal(got, want(shown)) {
				t.Errorf("%s, %s: %v", when, query, got)
			}
			if got := w.deliveries(tn, "archived=true&status="+query); !slices.Equal(got, want(archived)) {
				t.Errorf("%s, archived %s: %v", when, query, got)
			}
		}
		if got := w.deliveries(tn, ""); !slices.Equal(got, shown) {
			t.Errorf("%s: %v", when, got)
		}
	}
	look("at first", all, nil)
	act("archive")
	look("archived", nil, all)
	if a := w.do("GET", "/api/v1/deliveries/"+failed, tn.key, nil).want(http.StatusOK); a.get("archived_at") == nil {
		t.Errorf("got %s", a.Body)
	}
	act("unarchive")
	look("unarchived", all, nil)
	if n := w.audited(tn, "delivery.archive"); n != 3 {
		t.Errorf("audited %d times", n)
	}
}

func TestADeliveryIsReadWithItsAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	dlv := w.onlyDelivery(tn, nil)
	deliveryID, err := id.Delivery.Parse(dlv)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		at := id.New(deliveryID.Time().Add(time.Duration(n)*time.Second), [10]byte{byte(n)})
		w.SQL(`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us,
			tls_us, wait_us, read_us, total_us, url, format, signature, response_headers, response_excerpt, error)
			SELECT tenant_id, posthorn.created_at($1), $1, id, endpoint_id, $2, $3, $4, 1, 2, 3, 4, 5, 15, 'https://x.example.com/?a=***',
			'standard', 'v1,abc', 'Content-Type: text/plain', $5, NULL FROM deliveries WHERE id = $6`,
			at.String(), n, []int{0, 0, 503}[n], []int{0, 4, 0}[n], []byte("no \x00\xff<b>"), deliveryID.String())
	}
	a := w.do("GET", "/api/v1/deliveries/"+dlv, tn.key, nil).want(http.StatusOK)
	list := a.get("attempts").([]any)
	if len(list) != 2 {
		t.Fatalf("got %s", a.Body)
	}
	first, second := list[0].(map[string]any), list[1].(map[string]any)
	if first["number"] != 1.0 || first["failure"] != "timeout" || first["status"] != nil || second["status"] != 503.0 || second["failure"] != nil ||
		second["response_excerpt"] != "no \x00\uFFFD<b>" || second["phases"].(map[string]any)["total_us"] != 15.0 || second["signature"] != "v1,abc" {
		t.Errorf("got %s", a.Body)
	}
}

func TestWhatIsOlderThanTheRetentionIsHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("a")
	w.active(tn, nil)
	dlv := w.onlyDelivery(tn, nil)
	deliveryID, err := id.Delivery.Parse(dlv)
	if err != nil {
		t.Fatal(err)
	}
	old := id.New(deliveryID.Time().Add(-48*time.Hour), [10]byte{1})
	w.partition(old.Time())
	w.SQL(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status)
		SELECT tenant_id, posthorn.created_at($1), $1, event_id, endpoint_id, event_type, 2 FROM deliveries WHERE id = $2`, old.String(), deliveryID.String())
	past := id.Delivery.Format(old)
	if got := w.deliveries(tn, "order=asc"); !slices.Equal(got, []string{past, dlv}) {
		t.Errorf("got %v", got)
	}
	w.SQL("UPDATE tenants SET retention_days = 1")
	if got := w.deliveries(tn, ""); !slices.Equal(got, []string{dlv}) {
		t.Errorf("got %v", got)
	}
	w.do("GET", "/api/v1/deliveries/"+past, tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("POST", "/api/v1/deliveries/"+past+"/replay", tn.key, nil).problem(http.StatusNotFound, "not_found")
}

// TestForeignIDsAnswerAsUnknownOnes calls every route that has an endpoint or delivery id. The response to another
// tenant's id is byte for byte the one to an unknown id, and changes nothing.
func TestForeignIDsOfEndpointsAndDeliveriesAnswerAsUnknownOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, theirs := w.tenant("a"), w.tenant("b")
	ep := w.active(theirs, nil)
	dlv := w.onlyDelivery(theirs, nil)
	settled := w.onlyDelivery(theirs, nil)
	w.settle(settled, 3, 1)
	w.active(mine, nil)
	before := w.dump()
	unknownEP, unknownDLV := id.Endpoint.Format(id.UUID{1: 9}), id.Delivery.Format(id.UUID{1: 9})
	for _, try := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"PATCH", "", `{"description":"x"}`},
		{"DELETE", "", ""},
		{"POST", "/verify", ""},
		{"POST", "/test", ""},
		{"GET", "/secrets", ""},
		{"POST", "/rotate-secret", ""},
		{"POST", "/switch-secret", ""},
		{"POST", "/pause", ""},
		{"POST", "/resume", ""},
	} {
		var bodies []string
		for _, u := range []string{unknownEP, ep, "ep_nonsense", dlv} {
			a := w.do(try.method, "/api/v1/endpoints/"+u+try.path, mine.key, try.body, "X-Request-Id", "same").problem(http.StatusNotFound, "not_found")
			bodies = append(bodies, string(a.Body))
		}
		if bodies = slices.Compact(bodies); len(bodies) != 1 {
			t.Errorf("%s /endpoints/x%s tells ids apart: %v", try.method, try.path, bodies)
		}
	}
	for _, try := range []struct{ method, path string }{
		{"GET", ""}, {"POST", "/retry-now"}, {"POST", "/cancel"}, {"POST", "/replay"}, {"POST", "/archive"}, {"POST", "/unarchive"},
	} {
		var bodies []string
		for _, u := range []string{unknownDLV, dlv, settled, "dlv_nonsense", ep} {
			a := w.do(try.method, "/api/v1/deliveries/"+u+try.path, mine.key, nil, "X-Request-Id", "same").problem(http.StatusNotFound, "not_found")
			bodies = append(bodies, string(a.Body))
		}
		if bodies = slices.Compact(bodies); len(bodies) != 1 {
			t.Errorf("%s /deliveries/x%s tells ids apart: %v", try.method, try.path, bodies)
		}
	}
	for _, query := range []string{"endpoint=" + ep, "endpoint=" + unknownEP, "status=failed&endpoint=" + ep, "status=pending&endpoint=" + ep, "status=all_failed&endpoint=" + ep} {
		if got := w.deliveries(mine, query); len(got) != 0 {
			t.Errorf("%s shows %v", query, got)
		}
	}
	if after := w.dump(); after != before {
		t.Errorf("another tenant's calls changed something:\n%s\n%s", before, after)
	}
}

// partition creates the partitions of a day.
func (w *world) partition(day time.Time) {
	w.t.Helper()
	w.Owner("SELECT posthorn.make_partitions($1::date, $1::date)", day.Format(time.DateOnly))
}
