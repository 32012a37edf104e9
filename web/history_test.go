package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/client"
)

func TestTheSettingsOfTheHistoryPageAreTaken(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/ops/history.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\n")
	block, _, _ := strings.Cut(rest, "```")
	var lines []string
	for line := range strings.Lines(block) {
		setting, _, _ := strings.Cut(line, "#")
		lines = append(lines, strings.TrimSpace(setting))
	}
	cfg, err := loadConfig(lines)
	if err != nil || cfg.History == nil || cfg.HistoryAfterDays != 30 || cfg.HistoryBackDays != 7 ||
		cfg.HistorySecretKey.Reveal() != "..." {
		t.Errorf("%q: %v", lines, err)
	}
	if cfg, err := loadConfig(nil); err != nil || cfg.History != nil {
		t.Errorf("without settings history leaves: %v", err)
	}
}

// storedEvent emits an event, which is delivered, and puts its day into storage. arrived has the bodies that the
// receiver gets; folder is the storage.
func storedEvent(t *testing.T) (d *desk, event, day, folder string, arrived chan []byte) {
	t.Helper()
	d = newDesk(t)
	arrived = make(chan []byte, 10)
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("endpoint.verification")) {
			var in struct {
				Data json.RawMessage `json:"data"`
			}
			_ = json.Unmarshal(body, &in)
			_, _ = w.Write(in.Data)
			return
		}
		arrived <- body
		_, _ = w.Write([]byte("thanks for ü"))
	}))
	t.Cleanup(r.Close)
	var endpoint thing
	d.ok(&endpoint, "endpoints create "+r.URL+" --event-types order.completed --json")
	eventually(t, "the endpoint is verified", func() bool {
		var now thing
		d.ok(&now, "endpoints get "+endpoint.ID+" --json")
		return now.Status == "active"
	})
	d.ok(nil, "emit order.completed", `{"n":  1, "text":"ü"}`)
	eventually(t, "the delivery is recorded", func() bool {
		var list []client.Delivery
		d.ok(&list, "deliveries list --json")
		return len(list) == 1 && list[0].Status == "delivered"
	})
	// The clock can't be turned back: its rows are made older instead.
	day = time.Now().UTC().AddDate(0, 0, -5).Format(time.DateOnly)
	d.age(5)
	var events []client.Event
	d.ok(&events, "events list --json")
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	folder = t.TempDir()
	program(t, append(d.server, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_HISTORY_AFTER_DAYS=2"), Parts{Worker: true})
	eventually(t, "the day is stored", func() bool {
		var list []client.HistoryDay
		d.ok(&list, "history list --json")
		return len(list) == 1 && list[0].Day == day && list[0].State == client.Stored && list[0].Events == 1 &&
			list[0].Attempts == 1
	})
	return d, events[0].ID, day, folder, arrived
}

// Where the web process has the storage too, a stored day is listed, read, explained, and replayed byte for byte, and
// stays in storage.
func TestAStoredDayIsReadAndReplayedInPlace(t *testing.T) {
	t.Parallel()
	d, event, day, folder, arrived := storedEvent(t)
	first := <-arrived
	web := program(t, append(d.server, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_HISTORY_AFTER_DAYS=2"), Parts{Web: true})
	near := *d
	near.url = web.URL()
	get := func(path string, wants ...string) string {
		t.Helper()
		status, body := near.ask(http.MethodGet, path, "")
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("GET %s: %d %s, want %s", path, status, body, want)
			}
		}
		return body
	}
	get("/events/"+event, `{"n":1,"text":"ü"}`, event)
	get("/events/"+event+"/routing", `"order.completed"`)
	if body := get("/deliveries"); strings.Contains(body, event) {
		t.Errorf("a list that didn't ask for the day has it: %s", body)
	}
	get("/events?stored_day="+day, event)
	get("/events?stored_day="+day+"&type=order.*", event)
	var list struct {
		Data []client.Delivery `json:"data"`
	}
	if err := json.Unmarshal([]byte(get("/deliveries?status=delivered&stored_day="+day)), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("the list of the day has %d deliveries: %v", len(list.Data), err)
	}
	for _, other := range []string{"status=failed&", "type=invoice.paid&", "until=2020-01-01T00:00:00Z&"} {
		if body := get("/deliveries?" + other + "stored_day=" + day); strings.Contains(body, event) {
			t.Errorf("%s lists %s", other, body)
		}
	}
	for _, wrong := range []string{"2020-01-01", "yesterday", "2031-02-30"} {
		if status, body := near.ask(http.MethodGet, "/events?stored_day="+wrong, ""); status != http.StatusBadRequest || !strings.Contains(body, "stored_day") {
			t.Errorf("the day %s: %d %s", wrong, status, body)
		}
	}
	original := list.Data[0].ID
	get("/deliveries/"+original, `"thanks for ü"`, `"number":1`, event)
	get("/events/"+event+"/deliveries", original)
	// An id of the day that nothing has is unknown.
	unknown := original[:len(original)-2] + "00"
	if status, body := near.ask(http.MethodGet, "/deliveries/"+unknown, ""); status != http.StatusNotFound {
		t.Errorf("an unknown delivery of the day: %d %s", status, body)
	}
	// The day of the event was moved, which is in the body: the rest is the same bytes.
	sent := func(body []byte) string {
		_, data, _ := strings.Cut(string(body), `"data":`)
		return data
	}
	for n, path := range []string{"/deliveries/" + original + "/replay", "/events/" + event + "/replay"} {
		if status, body := near.ask(http.MethodPost, path, ""); status != http.StatusAccepted {
			t.Fatalf("a replay in place by %s: %d %s", path, status, body)
		}
		select {
		case body := <-arrived:
			if sent(body) != sent(first) || !bytes.Contains(body, []byte(event)) {
				t.Errorf("sent was %s, want the data of %s", body, first)
			}
		case <-time.After(patience):
			t.Fatalf("%s sent nothing: %s", path, get("/deliveries"))
		}
		// An event with a delivery in progress is not replayed to the same endpoint.
		eventually(t, "the replay is recorded", func() bool {
			return strings.Count(get("/deliveries?status=delivered"), `"replay_of":"`) == n+1
		})
	}
	get("/deliveries/"+original, `"replayed_by":"dlv_`)
	var days []client.HistoryDay
	d.ok(&days, "history list --json")
	if len(days) != 1 || days[0].State != client.Stored {
		t.Errorf("the day is %v", days)
	}
	// What has to change the day still needs it back, and it comes back with what was replayed.
	if status, body := near.ask(http.MethodPost, "/deliveries/"+original+"/archive", ""); status != http.StatusConflict || !strings.Contains(body, "day_stored") {
		t.Errorf("archived in storage: %d %s", status, body)
	}
	d.ok(nil, "history restore "+day)
	get("/deliveries/"+original, `"replayed_by":"dlv_`, `"thanks for ü"`)
	get("/events/"+event, `{"n":1,"text":"ü"}`)
}

// Where the web process has the storage, data of an event of a stored day is expunged in place: nobody reads it after
// the response, and soon no file has it.
func TestAStoredEventIsExpungedInPlace(t *testing.T) {
	t.Parallel()
	d, event, day, folder, arrived := storedEvent(t)
	<-arrived
	near := *d
	near.url = program(t, append(d.server, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_HISTORY_AFTER_DAYS=2"), Parts{Web: true}).URL()
	near.environ = append(slices.DeleteFunc(slices.Clone(d.environ), func(e string) bool { return strings.HasPrefix(e, "POSTHORN_URL=") }), "POSTHORN_URL="+near.url)
	get := func(path string) string {
		t.Helper()
		status, body := near.ask(http.MethodGet, path, "")
		if status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, status, body)
		}
		return body
	}
	if body := get("/events/" + event); !strings.Contains(body, `"text":"ü"`) {
		t.Fatalf("the stored event is %s", body)
	}
	if got := near.run("events list --stored-day " + day); got.code != 0 || !strings.Contains(got.stdout, event) {
		t.Errorf("events list --stored-day: %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := near.run("deliveries list --stored-day " + day); got.code != 0 || !strings.Contains(got.stdout, "dlv_") {
		t.Errorf("deliveries list --stored-day: %d %s%s", got.code, got.stdout, got.stderr)
	}
	unknown := event[:len(event)-2] + "00"
	if status, body := near.ask(http.MethodPost, "/events/"+unknown+"/expunge", `{"reason":"asked"}`); status != http.StatusNotFound {
		t.Errorf("an unknown event of the day: %d %s", status, body)
	}
	status, body := near.ask(http.MethodPost, "/events/"+event+"/expunge", `{"reason":"asked"}`)
	if status != http.StatusOK || !strings.Contains(body, `"expunged":true`) || !strings.Contains(body, `"answers":1`) || !strings.Contains(body, `"stored_days":["`+day+`"]`) {
		t.Fatalf("expunged in place: %d %s", status, body)
	}
	if body := get("/events/" + event); strings.Contains(body, "ü") || !strings.Contains(body, `"expunged":true`) {
		t.Errorf("the expunged event is %s", body)
	}
	if body := get("/events/" + event + "/deliveries"); strings.Contains(body, "thanks") {
		t.Errorf("its deliveries are %s", body)
	}
	if status, body := near.ask(http.MethodPost, "/events/"+event+"/replay", ""); status < 400 || strings.Contains(body, "ü") {
		t.Errorf("a replay without data: %d %s", status, body)
	}
	eventually(t, "no file has the data", func() bool {
		var list []client.HistoryDay
		d.ok(&list, "history list --json")
		return len(list) == 1 && list[0].State == client.Stored && list[0].Expunging == 0
	})
	if _, body := near.ask(http.MethodPost, "/events/"+event+"/expunge", `{"reason":"again"}`); !strings.Contains(body, `"expunged":false`) || !strings.Contains(body, `"stored_days":[]`) {
		t.Errorf("a second time: %s", body)
	}
	d.ok(nil, "history restore "+day)
	if body := get("/events/" + event); strings.Contains(body, "ü") {
		t.Errorf("the event came back as %s", body)
	}
}

func TestStorageThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	d, event, _, folder, _ := storedEvent(t)
	web := program(t, append(d.server, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_HISTORY_AFTER_DAYS=2"), Parts{Web: true})
	near := *d
	near.url = web.URL()
	if err := os.RemoveAll(folder + "/tables"); err != nil {
		t.Fatal(err)
	}
	status, body := near.ask(http.MethodGet, "/events/"+event, "")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "storage_unavailable") || strings.Contains(body, folder) || strings.Contains(body, "parquet") {
		t.Errorf("an event whose file is missing: %d %s", status, body)
	}
}

// An event's day goes into storage and comes back by the command line, and the event is replayed as it was.
func TestAStoredDayComesBackAndIsReplayed(t *testing.T) {
	t.Parallel()
	d, event, day, _, arrived := storedEvent(t)
	bodies := [][]byte{<-arrived}
	var events []client.Event
	if got := d.run("events get " + event); got.code == 0 || !strings.Contains(got.stderr, "day_stored") || !strings.Contains(got.stderr, "posthorn history restore "+day) {
		t.Errorf("an event of a stored day: %d %s%s", got.code, got.stdout, got.stderr)
	}
	for path, method := range map[string]string{
		"/events/" + event:             http.MethodGet,
		"/events/" + event + "/replay": http.MethodPost,
		"/events/" + event +
			"/routing": http.MethodGet,
	} {
		if status, body := d.ask(method, path, ""); status != http.StatusConflict || !strings.Contains(body, `"day_stored"`) ||
			!strings.Contains(body, day) {
			t.Errorf("%s %s of a stored day: %d %s", method, path, status, body)
		}
	}
	for path, body := range map[string]string{"/events/" + event + "/expunge": `{"reason":"asked"}`, "/expunges": `{"match":{"n":1},"reason":"asked"}`} {
		if status, answer := d.ask(http.MethodPost, path, body); status != http.StatusConflict ||
			!strings.Contains(answer, `"day_stored"`) {
			t.Errorf("%s of a stored day: %d %s", path, status, answer)
		}
	}
	if status, _ := d.ask(http.MethodPost, "/history/2020-01-01/restore", ""); status != http.StatusNotFound {
		t.Errorf("a day that was never stored: %d", status)
	}
	d.ok(nil, "history restore "+day)
	d.ok(&events, "events list --json")
	if len(events) != 1 || events[0].ID != event {
		t.Fatalf("events %v came back", events)
	}
	if status, body := d.ask(http.MethodPost, "/events/"+event+"/replay", ""); status != http.StatusAccepted {
		t.Fatalf("a replay of an event that came back: %d %s", status, body)
	}
	bodies = append(bodies, <-arrived)
	for _, body := range bodies {
		if !bytes.Contains(body, []byte(`{"n":1,"text":"ü"}`)) {
			t.Errorf("sent was %s", body)
		}
	}
	if status, body := d.ask(http.MethodPost, "/events/"+event+"/expunge", `{"reason":"asked"}`); status != http.StatusOK || !strings.Contains(body, `"expunged":true`) {
		t.Errorf("what came back is not expunged: %d %s", status, body)
	}
}

// ask sends a request to the API.
func (d *desk) ask(method, path, body string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// age makes everything that was emitted older by some days.
func (d *desk) age(days int) {
	d.t.Helper()
	url := ""
	for _, v := range d.server {
		if after, found := strings.CutPrefix(v, "POSTHORN_DATABASE_URL="); found {
			url = after
		}
	}
	conn, err := pgx.Connect(d.t.Context(), url)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close(d.t.Context()) }()
	const older = "(lpad(to_hex((extract(epoch FROM posthorn.created_at(%s) - $1 * interval '1 day') * 1000)::bigint), 12, '0') || right(replace(%s::text, '-', ''), 20))::uuid"
	old := func(column string) string { return strings.ReplaceAll(older, "%s", column) }
	for _, statement := range []string{
		"SET search_path = posthorn",
		"SELECT make_partitions(current_date - 7, current_date)",
		"UPDATE platform SET days_from = current_date - 7, events_from = current_date - 7",
		"SET ROLE posthorn_console",
		"UPDATE attempts SET delivery_id = " + old("delivery_id") + ", created_at = created_at - $1 * interval '1 day'",
		"UPDATE deliveries SET id = " + old("id") + ", event_id = " + old("event_id") + ", created_at = posthorn.created_at(" + old("id") + "), settled_at = settled_at - $1 * interval '1 day'",
		"UPDATE events SET id = " + old("id") + ", created_at = posthorn.created_at(" + old("id") + ")",
		"DELETE FROM ledger",
		"DELETE FROM books",
		"INSERT INTO books (tenant_id, day, accepted, delivered, events) SELECT tenant_id, created_at::date, 1, 1, 1 FROM deliveries",
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = append(args, days)
		}
		if _, err := conn.Exec(d.t.Context(), statement, args...); err != nil {
			d.t.Fatalf("%s: %v", statement, err)
		}
	}
}
