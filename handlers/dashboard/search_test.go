package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db/emit"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
)

func searchFor(tn tenant, text string) string {
	return tn.path + "/search?" + url.Values{"q": {text}}.Encode()
}

func TestSearchLeadsToWhatAnIDOrAPatternNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	ev := w.emit(tn, "invoice.paid", `{}`)
	dlv := w.delivery(ev)
	viewer := tn.of[access.Viewer]
	for text, to := range map[string]string{
		id.Event.Format(ev):              "/events/" + id.Event.Format(ev),
		" " + id.Delivery.Format(dlv):    "/deliveries/" + id.Delivery.Format(dlv),
		id.Endpoint.Format(ep):           "/endpoints/" + id.Endpoint.Format(ep),
		"invoice.*":                      "/events?type=invoice.%2A",
		"key_00000000000000000000000000": "/keys",
	} {
		viewer.get(searchFor(tn, text)).to(tn.path + to)
	}
	viewer.get(tn.path + "/deliveries?q=" + id.Event.Format(ev)).to(tn.path + "/events/" + id.Event.Format(ev))
	viewer.get(searchFor(tn, "dlv_00000000000000000000000000")).want(200, "Nothing has this id")
	other.of[access.Owner].get(searchFor(other, id.Event.Format(ev))).want(200, "Nothing has this id")
	viewer.get(searchFor(tn, strings.Repeat("x", 300))).want(http.StatusBadRequest, "at most 256")
	viewer.get(tn.path+"/search").want(200, "What you can search for")
}

func TestSearchFindsNamesKeysAndValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description = "Accounting" })
	store := func(of tenant, e event.Emission) string {
		r := w.commit.Emit(t.Context(), of.id, []emit.Item{{Emission: e}})[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return "/events/" + id.Event.Format(r.ID)
	}
	value := store(tn, event.Emission{Type: "order.paid", Data: []byte(`{"order_id":"ord_10338","lines":[{"sku":"a/b"}]}`)})
	text := store(tn, event.Emission{Type: "order.sent", Data: []byte(`{"note":"replaces ord_10338"}`)})
	keyed := store(tn, event.Emission{Type: "order.keyed", Data: []byte(`{}`), Key: "customer-7"})
	once := store(tn, event.Emission{Type: "order.once", Data: []byte(`{}`), IdempotencyKey: "once-1"})
	foreign := store(other, event.Emission{Type: "order.paid", Data: []byte(`{"order_id":"ord_10338"}`), Key: "customer-7", IdempotencyKey: "once-1"})
	viewer := tn.of[access.Viewer]
	viewer.get(searchFor(tn, "ord_10338")).want(200, value, text, "data.order_id", "data.note", "Searched the types, keys, and data of 4 events").lacks(keyed, foreign)
	viewer.get(searchFor(tn, "data.order_id:ord_10338")).want(200, value).lacks(text, foreign)
	viewer.get(searchFor(tn, "order_id=ord_10338")).want(200, value).lacks(text, foreign)
	viewer.get(searchFor(tn, "data.lines.sku:a/b")).want(200, value, "data.lines.sku")
	viewer.get(searchFor(tn, "order.sent")).want(200, text, "event type").lacks(value, foreign)
	viewer.get(searchFor(tn, "customer-7")).want(200, keyed, "ordering key").lacks(foreign)
	viewer.get(searchFor(tn, "once-1")).want(200, once, "idempotency key").lacks(foreign)
	viewer.get(searchFor(tn, "account")).want(200, ">Accounting</a>", "No events found")

	// Content that a role can't read can't be found by search either.
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(searchFor(tn, "ord_10338")).want(200, "the data of events was not searched").lacks(value, text)
	viewer.get(searchFor(tn, "customer-7")).want(200, keyed)
}

// A search says how far it searched, and continues from there: nothing is skipped or found twice.
func TestASearchOfManyEventsGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	for range 5 {
		items := make([]emit.Item, 100)
		for i := range items {
			items[i] = emit.Item{Emission: event.Emission{Type: "order.paid", Data: []byte(`{"shop":"everywhere"}`)}}
		}
		for _, r := range w.commit.Emit(t.Context(), tn.id, items) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	seen := map[string]bool{}
	at := searchFor(tn, "everywhere")
	for pages := 0; at != ""; pages++ {
		p := tn.of[access.Viewer].get(at).want(200, "back to ")
		for _, part := range strings.Split(p.Body, tn.path+"/events/")[1:] {
			ev, _, _ := strings.Cut(part, `"`)
			if seen[ev] {
				t.Fatalf("%s was found twice", ev)
			}
			seen[ev] = true
		}
		at = ""
		if _, rest, ok := strings.Cut(p.Body, `href="`+tn.path+`/search?before=`); ok {
			link, _, _ := strings.Cut(rest, `"`)
			at = tn.path + "/search?before=" + strings.ReplaceAll(link, "&amp;", "&")
		}
		if pages > 50 {
			t.Fatal("the search never ends")
		}
	}
	if len(seen) != 500 {
		t.Errorf("%d events were found, want 500", len(seen))
	}
}

func TestThePaletteLeadsWhereTheActorCanGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description = "Accounting" })
	path := tn.path + "/palette"
	tn.of[access.Owner].get(path, "HX-Request", "true").want(200, ">Accounting<", "/endpoints/"+id.Endpoint.Format(ep), "Add endpoint", `href="`+tn.path+`/settings"`)
	tn.of[access.Viewer].get(path, "HX-Request", "true").want(200, ">Accounting<").lacks("Add endpoint", `href="`+tn.path+`/settings"`, `href="`+tn.path+`/keys"`)
	tn.of[access.Viewer].get(tn.path+"/").want(200, `data-from="`+path+`"`, `href="`+tn.path+`/search"`)
}

// settingLink is an entry of the palette that names a part of a page.
var settingLink = regexp.MustCompile(`href="([^"#]+)#([^"]+)"[^>]*>\s*<span class="palette-name">.*?</svg>\s*<span>([^<]+)</span>`)

func TestThePaletteFindsSettingsByTheLabelsThatTheirPagesHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := id.Endpoint.Format(w.endpoint(tn, "https://hooks.example.com/in"))
	owner := tn.of[access.Owner]
	list := owner.get(tn.path+"/palette?endpoint="+ep, "HX-Request", "true").want(200)
	links := settingLink.FindAllStringSubmatch(list.Body, -1)
	pages := map[string]string{}
	for _, l := range links {
		path, part, label := l[1], l[2], l[3]
		if strings.HasPrefix(path, "/account") {
			continue // its page is another handler's
		}
		if pages[path] == "" {
			pages[path] = owner.get(path).want(200).Body
		}
		if !strings.Contains(pages[path], `id="`+part+`"`) {
			t.Errorf("%q leads to %s, which has no #%s", label, path, part)
		}
		if strings.Contains(part, "f-") && !strings.Contains(pages[path], label) {
			t.Errorf("%s has no %q", path, label)
		}
	}
	if len(links) < 20 {
		t.Errorf("%d settings were found", len(links))
	}
	for _, word := range []string{"retention", "invite", "embed", "2fa", "tokens", "notifications"} {
		if !regexp.MustCompile(`data-words="[^"]*\b` + word + `\b`).MatchString(list.Body) {
			t.Errorf("nothing is found by %q", word)
		}
	}
	tn.of[access.Viewer].get(tn.path+"/palette", "HX-Request", "true").want(200).lacks("#f-name", "#invite")
}

func TestListsTakeAPatternOfEventTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	w.endpoint(tn, "https://hooks.example.com/in")
	paid, sent, late := w.emit(tn, "invoice.paid", `{}`), w.emit(tn, "invoice.line.sent", `{}`), w.emit(tn, "invoices.late", `{}`)
	viewer := tn.of[access.Viewer]
	for _, status := range []string{"", "&status=pending", "&status=failed", "&status=all_failed"} {
		if status == "&status=failed" {
			for _, e := range []id.UUID{paid, sent, late} {
				w.attempt(w.delivery(e), tried{status: 422, terminal: 3, reason: 2})
			}
		}
		viewer.get(tn.path+"/deliveries?type=invoice.*"+status).want(
			200,
			id.Delivery.Format(w.delivery(paid)),
			id.Delivery.Format(w.delivery(sent)),
		).lacks("row-" + id.Delivery.Format(w.delivery(late)))
	}
	viewer.get(tn.path+"/events?type=invoice.*").want(200, id.Event.Format(paid), id.Event.Format(sent)).lacks(id.Event.Format(late))
	viewer.get(tn.path+"/deliveries?type=invoice.*.paid").want(http.StatusBadRequest, "such as order.*")
}
