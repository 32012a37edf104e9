package main

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/id"
	"posthorn/tools/historytest"
	"posthorn/worker/history"
)

// A list of a day in storage shows the rows that it showed when they were in the tables, with each filter, in both
// orders, page by page, and its pages in the dashboard lead to each other.
func TestListsOfAStoredDayShowWhatTheyShowedBefore(t *testing.T) {
	t.Parallel()
	folder := "file://" + t.TempDir()
	y := newYoungDayOf(t, Parts{Web: true}, "POSTHORN_HISTORY_URL="+folder, "POSTHORN_HISTORY_AFTER_DAYS=2")
	y.signIn()
	y.load(1) // makes endpoints
	first := y.last["endpoint_id"]
	endpoint, err := id.Endpoint.Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	var day time.Time
	y.connect(func(ctx context.Context, c *pgx.Conn) (err error) {
		day, err = historytest.Day(ctx, c, y.tenant, endpoint, 5, 130)
		if err != nil {
			return err
		}
		// Every fourth delivery went to another endpoint, and one moment has many.
		_, err = c.Exec(ctx, `WITH other AS (SELECT id FROM endpoints WHERE id <> $2 LIMIT 1), moved AS (
				UPDATE deliveries d SET endpoint_id = other.id FROM other WHERE d.tenant_id = $1 AND d.created_at < $3 AND substr(d.id::text, 36) IN ('0', '4', '8', 'c')
				RETURNING d.id, d.endpoint_id), letters AS (
				UPDATE dead_letters l SET endpoint_id = moved.endpoint_id FROM moved WHERE l.delivery_id = moved.id)
			UPDATE cancellations l SET endpoint_id = moved.endpoint_id FROM moved WHERE l.delivery_id = moved.id`,
			[16]byte(y.tenant), [16]byte(endpoint), day.AddDate(0, 0, 1))
		return err
	})
	name := day.Format(time.DateOnly)
	inTables := "since=" + name + "T00:00:00Z&until=" + day.AddDate(0, 0, 1).Format(time.DateOnly) + "T00:00:00Z&"
	filters := map[string][]string{
		"deliveries": {
			"", "type=order.1", "type=order.*", "endpoint=" + first, "archived=true", "status=delivered", "status=failed", "status=dead_letter",
			"status=canceled", "status=all_failed", "status=failed&endpoint=" + first, "channel=a", "type=invoice.paid", "status=expired", "wait=endpoint_paused",
		},
		"events": {"", "type=order.1", "type=order.*", "channel=a", "outcome=failed", "outcome=unmatched", "event_id=own-12", "type=invoice.paid"},
	}
	before := map[string][]string{}
	each := func(do func(key, path string)) {
		for noun, all := range filters {
			for i, filter := range all {
				for _, order := range []string{"asc", "desc"}[:2-i%2] { // every second filter has one
					do(noun+"?"+filter+" "+order, "/api/v1/"+noun+"?limit=25&order="+order+"&"+filter)
				}
			}
		}
	}
	each(func(key, path string) { before[key] = y.listed(path + "&" + inTables) })
	for _, some := range []string{"deliveries?status=failed asc", "deliveries?archived=true asc", "events?channel=a asc", "deliveries?channel=a asc"} {
		if len(before[some]) < 3 {
			t.Errorf("%s: %q", some, before[some])
		}
	}
	store, err := history.Open(history.Where{URL: folder})
	if err != nil {
		t.Fatal(err)
	}
	keeper := history.New(history.Config{DB: y.program.pools[0], Store: store, Log: slog.New(slog.DiscardHandler), After: 2, Back: 2})
	if err := keeper.Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	each(func(key, path string) {
		if now := y.listed(path + "&stored_day=" + name); !slices.Equal(now, before[key]) {
			t.Errorf("%s lists %d rows in storage and %d in the tables:\n%q\n%q", key, len(now), len(before[key]), now, before[key])
		}
	})
	half := "since=" + name + "T00:05:00Z&until=" + name + "T00:08:00Z&stored_day=" + name
	if now := y.listed("/api/v1/events?limit=7&" + half); len(now) < 20 || len(now) > 30 {
		t.Errorf("%d of three minutes", len(now))
	}
	if now := y.listed("/api/v1/events?until=" + name + "T00:00:00Z&stored_day=" + name); len(now) > 0 {
		t.Errorf("before the day: %q", now)
	}
	y.pagesLeadToEachOther("/t/"+y.last["tenant_id"]+"/deliveries?stored_day="+name, before["deliveries? desc"])
}

// get is the body of a page, or of a response of the API.
func (y *youngDay) get(path string) string {
	y.t.Helper()
	res, err := http.DefaultClient.Do(y.request(path))
	if err != nil {
		y.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		y.t.Fatalf("%s: %d %s %v", path, res.StatusCode, body, err)
	}
	return string(body)
}

// listed are the ids of all pages of a list of the API.
func (y *youngDay) listed(path string) (ids []string) {
	y.t.Helper()
	for next := path; ; {
		var page struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal([]byte(y.get(next)), &page); err != nil {
			y.t.Fatal(err)
		}
		for _, one := range page.Data {
			ids = append(ids, one.ID)
		}
		if page.Next == "" {
			return ids
		}
		next = path + "&cursor=" + page.Next
	}
}

var (
	rowLink  = regexp.MustCompile(`href="[^"]*/deliveries/(dlv_[a-z0-9]+)"`)
	pageLink = regexp.MustCompile(`href="([^"]*[?&;](after|before)=[^"]*)"`)
)

// pagesLeadToEachOther follows a list from its start to its end and back.
func (y *youngDay) pagesLeadToEachOther(path string, want []string) {
	y.t.Helper()
	read := func(path string) (rows []string, older, newer string) {
		body := y.get(path)
		for _, m := range rowLink.FindAllStringSubmatch(body, -1) {
			if !slices.Contains(rows, m[1]) {
				rows = append(rows, m[1])
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(body, -1) {
			if link := html.UnescapeString(m[1]); m[2] == "after" {
				older = link
			} else {
				newer = link
			}
		}
		return rows, older, newer
	}
	var down, up [][]string
	var back string
	for next := path; next != ""; {
		var rows []string
		rows, next, back = read(next)
		down = append(down, rows)
	}
	if got := slices.Concat(down...); !slices.Equal(got, want) || len(down) < 3 {
		y.t.Errorf("the pages have %d rows, want %d: %q", len(got), len(want), down)
	}
	for up = [][]string{down[len(down)-1]}; back != ""; {
		var rows []string
		var older string
		rows, older, back = read(back)
		up = append(up, rows)
		if again, _, _ := read(older); !slices.Equal(again, up[len(up)-2]) {
			y.t.Errorf("back and on again: %q, want %q", again, up[len(up)-2])
		}
	}
	slices.Reverse(up)
	if !slices.EqualFunc(up, down, slices.Equal) {
		y.t.Errorf("back: %q\ndown: %q", up, down)
	}
}
