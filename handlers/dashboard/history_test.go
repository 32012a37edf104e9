package dashboard_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// today is the day that it is, UTC, some days ago.
func daysAgo(n int) time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -n) }

// stored is a tenant's day in a state of being stored or restored, with some events and one delivery more.
func (w *world) stored(tn tenant, day time.Time, state string, events int) {
	w.t.Helper()
	w.SQL(`INSERT INTO history_days (tenant_id, day, state, counts) VALUES ($1, $2::date, $3, jsonb_build_object('events', $4::int, 'deliveries', $4::int + 1))`,
		tn.id.String(), day, state, events)
}

func (w *world) stateOf(tn tenant, day time.Time) string {
	w.t.Helper()
	return one[string](w, "SELECT state FROM history_days WHERE tenant_id = $1 AND day = $2::date", tn.id.String(), day)
}

func TestListsSayWhichDaysAreInStorageAndBringThemBack(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	day, back, at := daysAgo(40), daysAgo(41), daysAgo(42)
	w.stored(w.tn, day, "stored", 1)
	w.stored(w.tn, back, "back", 5)
	w.stored(w.tn, at, "exporting", 5)
	w.stored(w.tenant("Another"), daysAgo(43), "stored", 9)
	name := day.Format("2 January 2006")
	developer := w.as(access.Developer)
	for path, count := range map[string]string{"/deliveries": "2 deliveries", "/events": "1 event"} {
		developer.get(w.root+path).want(200, "In storage", name, count, "Bring back", "of this tenant are in storage").
			lacks(back.Format("2 January 2006"), at.Format("2 January 2006"), daysAgo(43).Format("2 January 2006"), "No deliveries yet", "No events yet").keep("stored" + path[1:])
		w.as(access.Viewer).get(w.root+path).want(200, name, "An owner, an admin, or a developer can bring a day back").lacks("/restore", "Bring back")
	}
	restore := w.root + "/history/" + day.Format(time.DateOnly) + "/restore"
	if got := w.as(access.Viewer).post(restore, url.Values{}); got.Status != 403 || w.stateOf(w.tn, day) != "stored" {
		t.Errorf("a viewer brings a day back: %d, %s", got.Status, w.stateOf(w.tn, day))
	}
	w.tenant("A stranger").of[access.Owner].post(restore, url.Values{}).want(404)
	here := w.root + "/events?type=a#storage"
	if to := developer.post(restore, url.Values{"next": {here}}).to(w.root); to != here {
		t.Errorf("the button leads to %s", to)
	}
	if w.stateOf(w.tn, day) != "returning" || w.audited(w.tn, "history.restored") != 1 {
		t.Errorf("the day is %s, and the audit log has %d entries", w.stateOf(w.tn, day), w.audited(w.tn, "history.restored"))
	}
	developer.get(w.root+"/events").want(200, name, "being brought back", "The history of "+name+" is being brought back").lacks("/restore")
	w.SQL("UPDATE history_days SET failed_at = now(), failure = 'the store is down' WHERE tenant_id = $1", w.tn.id.String())
	developer.get(w.root+"/deliveries").want(200, "The last try failed. It is repeated every ten minutes.").lacks("the store is down")
	for _, wrong := range []string{"2020-01-01", "2020-13-01", "yesterday"} {
		developer.post(w.root+"/history/"+wrong+"/restore", url.Values{}).want(404)
	}
}

func TestListsShowOnlyTheStoredDaysThatTheirFilterAsksFor(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	for n := 30; n < 35; n++ {
		w.stored(w.tn, daysAgo(n), "stored", n)
	}
	w.stored(w.tn, daysAgo(200), "stored", 1) // older than the tenant keeps anything
	restore := func(n int) string { return "/history/" + daysAgo(n).Format(time.DateOnly) + "/restore" }
	owner := w.as(access.Owner)
	owner.get(w.root+"/deliveries").want(200, restore(30), restore(34)).lacks(restore(200))
	between := url.Values{"since": {daysAgo(32).Format(time.RFC3339)}, "until": {daysAgo(30).Format(time.RFC3339)}}
	for _, path := range []string{"/deliveries?", "/events?"} {
		owner.get(w.root+path+between.Encode()).want(200, restore(32), restore(31), "outside storage match these filters").
			lacks(restore(33), restore(30))
	}
	for _, waiting := range []string{"status=held", "status=retrying", "wait=breaker"} {
		owner.get(w.root+"/deliveries?"+waiting).want(200).lacks("/restore", "In storage")
	}
	owner.get(w.root+"/deliveries?status=failed").want(200, restore(30))
	// A list shows them only after its last row.
	w.add()
	for range 41 {
		w.emit(w.tn, "order.paid", "{}")
	}
	first := owner.get(w.root+"/events").want(200, "rel=\"next\"").lacks("In storage")
	_, after, _ := strings.Cut(first.Body, `rel="next" href="`)
	after, _, _ = strings.Cut(after, `"`)
	owner.get(after).want(200, restore(30), after+"#storage")
}

func TestAPageOfAStoredDayOffersToBringItBack(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	day := daysAgo(20)
	w.stored(w.tn, day, "stored", 1)
	w.SQL(`INSERT INTO history_parts (tenant_id, day, low, high, object, digest, lines, n, bytes, size, counts, others, gone)
		VALUES ($1, $2::date, $2::date, $2::date + 1, 'x', '', '', 1, 1, 1, '{}', '{}', true)`, w.tn.id.String(), day)
	u := id.New(day.Add(time.Hour), [10]byte{1})
	name, owner := day.Format("2 January 2006"), w.as(access.Owner)
	for _, path := range []string{"/events/" + id.Event.Format(u), "/deliveries/" + id.Delivery.Format(u)} {
		w.as(access.Viewer).get(w.root+path).want(409, "This day is in storage", name, "can bring the day back").lacks("Bring back")
		owner.get(w.root+path).want(409, "This day is in storage", name, "Bring back", `value="`+w.root+path+`"`)
		found := owner.get(w.root + "/search?q=" + path[strings.LastIndex(path, "/")+1:])
		if to := found.to(w.root); to != w.root+path {
			t.Errorf("the search leads to %s", to)
		}
	}
	path := w.root + "/events/" + id.Event.Format(u)
	owner.post(w.root+"/history/"+day.Format(time.DateOnly)+"/restore", url.Values{"next": {path}}).to(path)
	owner.get(path).want(409, "This day is being brought back", name).lacks("Bring back")
}
