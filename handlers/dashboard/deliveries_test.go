package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

func TestADeliveryShowsWhatWasSentWhatWasAnsweredAndWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in?key=s3cret", func(s *endpoint.Settings) {
		s.Description = "the shop"
		s.Headers = endpoint.Headers{"X-Shop": {Value: "north"}, "Authorization": {Value: "Bearer canary"}}
	})
	ev := w.emit(tn, "order.paid", `{"name":"<script>alert(1)</script>", "a":1.0}`)
	dlv := w.delivery(ev)
	w.attempt(dlv, tried{status: 500, answer: "<img src=x onerror=alert(1)>", headers: "Content-Type: text/html\nServer: <b>"})
	w.attempt(dlv, tried{failure: 1, error: "the host name has no address"})
	path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
	dev := tn.of[access.Developer]
	text := id.Event.Format(ev)

	latest := dev.get(path).want(200, "order.paid", "retrying", "The host name was not found", "Check the spelling of the host name", "Attempt 2", "Attempt 1",
		"There was no response.", "webhook-signature: v1,c2lnbmVk", "webhook-id: "+text, "webhook-attempt: 2", "X-Shop: north", "Authorization: ***",
		"POST", "https://hooks.example.com/in?key=***", "the shop", "Next attempt", "Attempt 3", "curl -sS -X POST")
	latest.lacks("s3cret", "canary", "<script>alert", "<img src=x")
	if !strings.Contains(latest.Body, `{&#34;id&#34;:&#34;`+text+`&#34;,&#34;type&#34;:&#34;order.paid&#34;`) {
		t.Errorf("the body is not the one that was sent: %s", latest.Body)
	}
	dev.get(path+"?attempt=1").want(200, "Server error", "&lt;img src=x onerror=alert(1)&gt;", "Server: &lt;b&gt;", "webhook-attempt: 1").lacks("<img src=x")
	dev.get(path+"?attempt=99").want(200, "webhook-attempt: 2")

	file := dev.get(path + "/body").want(200)
	if !strings.HasSuffix(file.Body, `"data":{"name":"<script>alert(1)</script>", "a":1.0}}`) || !strings.HasPrefix(file.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file is %s: %v", file.Body, file.Header)
	}
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", ev.String())
	dev.get(path).want(200, "has been deleted")
	dev.get(path + "/body").want(http.StatusConflict)
}

func TestViewersSeePayloadsBySettingAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dlv := w.delivery(w.emit(tn, "order.paid", `{"card":"visa 4242"}`))
	w.attempt(dlv, tried{status: 400, answer: "no such card visa 4242", terminal: 3, reason: 2})
	path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
	viewer := tn.of[access.Viewer]
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(path).want(200, "Rejected as malformed", "Your role can't see").lacks("visa 4242", ">Replay<", ">Archive<", "/retry-now")
	viewer.get(path + "/body").want(http.StatusForbidden)
	w.setting(tn, "viewers_read_payloads", true)
	viewer.get(path).want(200, "no such card visa 4242").lacks(">Replay<")
	viewer.get(path + "/body").want(200)
	viewer.post(path+"/replay", nil).want(http.StatusForbidden)
}

func TestTheListIsFilteredByWaitReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev, list := tn.of[access.Developer], tn.path+"/deliveries"
	retried := w.delivery(w.emit(tn, "order.paid", `{}`))
	w.attempt(retried, tried{status: 500})
	next := w.delivery(w.emit(tn, "order.paid", `{}`))
	retriedRow, nextRow := `id="row-`+id.Delivery.Format(retried), `id="row-`+id.Delivery.Format(next)
	dev.get(list+"?wait=retry").want(200, retriedRow, `value="retry" selected`).lacks(nextRow, "Actions on all results")
	dev.get(list+"?wait=next").want(200, nextRow).lacks(retriedRow)
	dev.get(list+"?wait=boredom").want(400, "Wait must be one of")
	all := url.Values{"action": {"cancel"}, "all": {"true"}, "status": {"retrying"}, "wait": {"retry"}}
	dev.post(list+"/bulk", all).want(400, "reason for waiting")
}

func TestActionsOnADeliveryAreDoneAndAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	dlv := w.delivery(w.emit(tn, "order.paid", `{}`))
	path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
	w.attempt(dlv, tried{status: 500})

	dev.get(path).want(200, ">Retry now<", ">Cancel<").lacks(">Replay<", ">Archive<")
	dev.post(path+"/retry-now", nil).to(path)
	dev.get(path).want(200, "Retrying now.")
	dev.post(path+"/cancel", nil).to(path)
	dev.get(path).want(200, "canceled", ">Replay<", ">Archive<").lacks(">Retry now<")

	// Somebody else has an old page open: it reports the conflict and shows the present state.
	dev.post(path+"/cancel", nil).want(http.StatusConflict, "Something changed in the meantime", "There is nothing left to cancel", ">Replay<")
	dev.post(path+"/retry-now", nil).want(http.StatusConflict, "Replay it to send the event again")

	dev.post(path+"/archive", nil).to(path)
	dev.get(path).want(200, "archived", ">Unarchive<")
	dev.get(tn.path+"/deliveries").want(200, "No deliveries yet")
	dev.get(tn.path+"/deliveries?archived=true").want(200, "order.paid", "Unarchive")
	dev.post(path+"/unarchive", nil).to(path)

	again := dev.post(path+"/replay", url.Values{"reason": {"the receiver lost it"}}).to(tn.path + "/deliveries/dlv_")
	if again == path {
		t.Error("a replay leads to the old delivery")
	}
	dev.get(again).want(200, "Replay of", "pending", "Same event, same endpoint")
	dev.get(path).want(200, "Same event, same endpoint")
	dev.post(path+"/replay", url.Values{"reason": {strings.Repeat("x", 501)}}).want(http.StatusBadRequest, "500 characters")
	for _, action := range []string{"retry_now", "cancel", "archive", "unarchive", "replay"} {
		if n := w.audited(tn, "delivery."+action); n != 1 {
			t.Errorf("%s stands %d times in the audit log", action, n)
		}
	}
	if why := one[string](w, "SELECT reason FROM audit_log WHERE action = 'delivery.replay'"); why != "the receiver lost it" {
		t.Errorf("the reason is %q", why)
	}
}

func TestAnOpenDeliveryIsRefreshedUntilItIsSettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dlv := w.delivery(w.emit(tn, "order.paid", `{}`))
	path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
	viewer := tn.of[access.Viewer]
	viewer.get(path).want(200, "No attempts yet", `hx-get="`+path+`/live"`)
	w.attempt(dlv, tried{status: 503})
	viewer.get(path+"/live", "HX-Request", "true").want(200, "Server error", `hx-get="`+path+`/live?attempt=1"`).lacks("<html")
	w.attempt(dlv, tried{status: 204, terminal: 2})
	viewer.get(path+"/live", "HX-Request", "true").want(286, "delivered", "It needed 2 attempts.").lacks("hx-get", "<html")
	for _, query := range []string{"", "?rows=&top=nonsense"} {
		if to := viewer.get(tn.path + "/deliveries/live" + query).to(tn.path + "/deliveries"); strings.HasPrefix(to, tn.path+"/deliveries/") {
			t.Errorf("a list that is no page's to refresh leads to %s", to)
		}
	}
	viewer.get(tn.path + "/deliveries/live?status=failed").to(tn.path + "/deliveries?status=failed")
}

var rowLink = regexp.MustCompile(`class="row-link" href="[^"]*/deliveries/(dlv_[a-z0-9]+)"`)

func listed(p *page) (ids []string) {
	for _, m := range rowLink.FindAllStringSubmatch(p.Body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

var nextLink = regexp.MustCompile(`rel="(next|prev)" href="([^"]+)"`)

func leads(p *page, rel string) string {
	for _, m := range nextLink.FindAllStringSubmatch(p.Body, -1) {
		if m[1] == rel {
			return strings.ReplaceAll(m[2], "&amp;", "&")
		}
	}
	return ""
}

func TestPagesOfDeliveriesStayWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	for i := range 90 {
		w.emit(tn, "order.paid", fmt.Sprint(i))
	}
	viewer := tn.of[access.Viewer]
	first := viewer.get(tn.path + "/deliveries").want(200)
	second := viewer.get(leads(first, "next")).want(200)
	for range 5 {
		w.emit(tn, "order.paid", "0")
	}
	again := viewer.get(leads(first, "next")).want(200)
	if fmt.Sprint(listed(second)) != fmt.Sprint(listed(again)) || len(listed(second)) != 40 {
		t.Error("the second page moved")
	}
	third := viewer.get(leads(second, "next")).want(200)
	if n := len(listed(third)); n != 10 || leads(third, "next") != "" {
		t.Errorf("the last page has %d rows, and leads to %q", n, leads(third, "next"))
	}
	back := viewer.get(leads(third, "prev")).want(200)
	if fmt.Sprint(listed(back)) != fmt.Sprint(listed(second)) {
		t.Error("back is not where it came from")
	}
	top := viewer.get(leads(back, "prev")).want(200)
	if len(listed(top)) != 40 || listed(top)[0] != listed(first)[0] {
		t.Errorf("the page before begins with %s", listed(top)[0])
	}
	newest := viewer.get(leads(top, "prev"))
	if len(listed(newest)) != 40 || leads(newest, "prev") != "" {
		t.Error("before the first page is another than the beginning")
	}

	live := regexp.MustCompile(`hx-get="([^"]+)"`).FindStringSubmatch(first.Body)
	part := viewer.get(strings.ReplaceAll(live[1], "&amp;", "&"), "HX-Request", "true").want(200, "5 new deliveries")
	if fmt.Sprint(listed(part)) != fmt.Sprint(listed(first)) {
		t.Error("what is refreshed has other rows")
	}
}

func TestFiltersAreInTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	other := w.endpoint(tn, "https://hooks.example.com/other", func(s *endpoint.Settings) { s.EventTypes = []string{"cart.left"} })
	dead := w.delivery(w.emit(tn, "order.paid", `{}`))
	w.attempt(dead, tried{status: 400, terminal: 3, reason: 2})
	waiting := w.delivery(w.emit(tn, "order.sent", `{}`))
	left := w.emit(tn, "cart.left", `{}`)
	viewer := tn.of[access.Viewer]
	list := tn.path + "/deliveries"
	for query, want := range map[string][]id.UUID{
		"status=failed":                                           {dead},
		"status=all_failed":                                       {dead},
		"status=pending&type=order.sent":                          {waiting},
		"status=&type=order.sent&endpoint=&q=":                    {waiting},
		"type=order.paid&since=2020-01-01T00:00":                  {dead},
		"until=2020-01-01T00:00":                                  nil,
		"since=2099-01-01T00%3A00%3A00Z":                          nil,
		"status=delivered":                                        nil,
		"endpoint=" + id.Endpoint.Format(db.NewID()):              nil,
		"endpoint=" + id.Endpoint.Format(other):                   {w.delivery(left)},
		"archived=true":                                           nil,
		"endpoint=" + id.Endpoint.Format(ep) + "&type=order.paid": {dead},
	} {
		p := viewer.get(list + "?" + query).want(200)
		var ids []string
		for _, u := range want {
			ids = append(ids, id.Delivery.Format(u))
		}
		if query == "endpoint="+id.Endpoint.Format(other) {
			if got := listed(p); len(got) != 1 || !strings.Contains(p.Body, "cart.left") {
				t.Errorf("%s: %v", query, got)
			}
			continue
		}
		if got := listed(p); fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("%s: %v, want %v", query, got, ids)
		}
	}
	viewer.get(list+"?status=failed&type=order.paid&since=2020-01-01T00:00").want(200, `value="failed" selected`, `value="order.paid"`, `value="2020-01-01T00:00:00"`, ">Clear<")
	viewer.get(list+"?status=gone").want(400, "Status must be one of", `value="ep_`)
	viewer.get(list+"?since=yesterday").want(400, "Enter a date and a time")
	viewer.get(list+"?endpoint=ep_nonsense").want(400, "This is not the id of an endpoint", "Invalid filter")
	// A list of one endpoint keeps its head and its tabs, also beside a wrong filter.
	for query, status := range map[string]int{"": 200, "&status=gone": 400} {
		p := viewer.get(list+"?endpoint="+id.Endpoint.Format(ep)+query).want(status, "https://hooks.example.com/in")
		for _, tab := range []string{"", "/settings", "/filter", "/secrets"} {
			if !strings.Contains(p.Body, `href="`+tn.path+"/endpoints/"+id.Endpoint.Format(ep)+tab+`"`) {
				t.Errorf("the list of one endpoint with %q has no tab %q", query, tab)
			}
		}
	}
	viewer.get(list+"?colour=red").want(400, "Unknown parameter")
	viewer.get(list+"?status=canceled").want(200, "No deliveries match these filters", "Show all deliveries")

	viewer.get(list + "?q=" + id.Delivery.Format(dead)).to(list + "/" + id.Delivery.Format(dead))
	viewer.get(list + "?q=" + id.Event.Format(left)).to(tn.path + "/events/" + id.Event.Format(left))
	viewer.get(list + "?q=" + id.Endpoint.Format(ep)).to(tn.path + "/endpoints/" + id.Endpoint.Format(ep))
	viewer.get(list+"?q=dlv_00000000000000000000000000").want(400, "No object in this tenant has this id")
	viewer.get(list+"?q=hello").want(400, "Paste a complete id", `value="hello"`)
}

// TestADeliveryThatEndedWithoutAnAttemptSaysSo to members and to whoever has a link, with the reason.
func TestADeliveryThatEndedWithoutAnAttemptSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	for _, c := range []struct {
		status, reason int
		why            string
	}{
		{4, 8, "It was not delivered before it expired."},
		{4, 0, "It was canceled before it was delivered."},
		{3, 9, "The event&#39;s data is in object storage, and this endpoint doesn&#39;t accept a link to it."},
		{3, 4, "The event&#39;s retention period ended before it could be delivered."},
	} {
		dlv := w.delivery(w.emit(tn, "order.paid", `{}`))
		w.SQL("DELETE FROM queue WHERE delivery_id = $1", dlv.String())
		w.SQL("UPDATE deliveries SET status = $2, reason = $3, settled_at = now() WHERE id = $1", dlv.String(), c.status, c.reason)
		path := tn.path + "/deliveries/" + id.Delivery.Format(dlv)
		dev.get(path).want(200, "No attempts", "Nothing was sent. "+c.why, ">None.<").lacks("No attempts yet", "None yet")
		dev.post(path+"/share", url.Values{"expires_in": {"3600"}})
		link := sharedLink.FindStringSubmatch(dev.get(path).Body)
		if link == nil {
			t.Fatal("no link")
		}
		w.stranger().open(link[1]).want(200, "Nothing was sent. "+c.why).lacks("No attempts yet")
	}
}

// TestTheDeliveriesOfABatchAreAList: linked from each of them, found by the batch's id in a search, and no filter for
// actions on all results.
func TestTheDeliveriesOfABatchAreAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	dev := tn.of[access.Developer]
	var short []string
	for range 3 {
		dlv := w.delivery(w.emit(tn, "row.added", `{}`))
		w.attempt(dlv, tried{status: 200, terminal: 2})
		short = append(short, id.Delivery.Format(dlv))
	}
	batch := db.NewID()
	text := id.Batch.Format(batch)
	for _, dlv := range short[:2] {
		u, _ := id.Delivery.Parse(dlv)
		w.SQL(`UPDATE attempts SET created_at = $2, format = json_build_object('format', 'standard', 'batch', json_build_object('id', $3::text, 'events', 2))::text
			WHERE delivery_id = $1`, u.String(), batch.Time(), text)
	}
	list := tn.path + "/deliveries?batch=" + text
	dev.get(tn.path+"/deliveries/"+short[0]).want(200, `href="`+list+`"`)
	shown := dev.get(list).want(200, "Deliveries that shared the request", text).lacks("Actions on all results")
	if got := listed(shown); len(got) != 2 || got[0] != short[1] || got[1] != short[0] {
		t.Errorf("the list has %v, want %v", got, short[:2])
	}
	dev.get(tn.path + "/search?q=" + text).to(list)
	dev.get(tn.path + "/deliveries?q=" + text).to(list)
	other := dev.get(tn.path+"/deliveries?batch="+id.Batch.Format(db.NewID())).want(200, "No results")
	if got := listed(other); len(got) > 0 {
		t.Errorf("another batch has %v", got)
	}
	dev.get(tn.path+"/deliveries?batch=nonsense").want(http.StatusBadRequest, "Invalid filter", "This is not the id of a batch").lacks("that shared the request")
	dev.post(tn.path+"/deliveries/bulk", url.Values{"all": {"true"}, "action": {"replay"}, "batch": {text}}).want(http.StatusBadRequest, "deliveries of a batch")
	stranger := w.tenant("B")
	if got := listed(stranger.of[access.Developer].get(stranger.path+"/deliveries?batch="+text).want(200, "No results")); len(got) > 0 {
		t.Errorf("another tenant sees %v", got)
	}
}
