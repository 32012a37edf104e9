package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestSvixPollersReadEveryMessageOnce reads as Svix's libraries do: the iterator of a page is sent with the next poll.
// What a consumer read and did not confirm in this way comes again.
func TestSvixPollersReadEveryMessageOnce(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	d.app(t, "polled")
	made := ask(t, "POST", d.url+"/api/v1/tenants/polled/endpoints", d.platformKey(), `{"kind":"feed","external_id":"feed"}`)
	if made.status != http.StatusCreated {
		t.Fatal(made.status, made.body)
	}
	var sent []string
	for range 7 {
		sent = append(sent, d.send(t, "polled", `,"channels":["eu"]`))
	}
	// all reads a path from an iterator to its end.
	all := func(path, iterator string) (got []string, last string) {
		for {
			page := d.call(t, http.StatusOK, "GET", path+"?limit=3&iterator="+iterator, "")
			for _, one := range page["data"].([]any) {
				m := one.(map[string]any)
				got = append(got, m["id"].(string))
				if fmt.Sprintf("%v %v %v", m["payload"], m["channels"], m["eventType"]) != "map[marker:1] [eu] order.done" || m["headers"].(map[string]any)["webhook-signature"] == nil {
					t.Errorf("message %v", m)
				}
			}
			if iterator = page["iterator"].(string); page["done"] == true {
				return got, iterator
			}
		}
	}
	eventually(t, "the poller has every message", func() bool {
		got, _ := all("/app/polled/poller/feed", "")
		return slices.Equal(got, sent)
	})
	path := "/app/polled/poller/feed/consumer/warehouse"
	first := d.call(t, http.StatusOK, "GET", path+"?limit=2", "")
	again := d.call(t, http.StatusOK, "GET", path+"?limit=2", "")
	if fmt.Sprint(first["data"].([]any)[0].(map[string]any)["id"]) != fmt.Sprint(again["data"].([]any)[0].(map[string]any)["id"]) {
		t.Error("a consumer that confirmed nothing gets other messages")
	}
	rest, last := all(path, first["iterator"].(string))
	if !slices.Equal(rest, sent[2:]) {
		t.Errorf("after the first page: %v, want %v", rest, sent[2:])
	}
	if more, _ := all(path, last); len(more) > 0 {
		t.Errorf("at the end: %v", more)
	}
	d.call(t, http.StatusOK, "POST", path+"/seek", `{"after":"2020-01-01T00:00:00Z"}`)
	if got, _ := all(path, ""); len(got) < 3 || got[0] != sent[0] {
		t.Errorf("after a seek: %v", got)
	}
	d.call(t, http.StatusUnprocessableEntity, "GET", path+"?iterator=abc", "")
}

// The second version commits numbers: what is not committed comes again, and a consumer begins with the log.
func TestSvixPollersCommitOffsets(t *testing.T) {
	t.Parallel()
	d := newSvixDesk(t)
	d.app(t, "polled")
	d.send(t, "polled", "") // before the log, which has no number for it
	made := ask(t, "POST", d.url+"/api/v1/tenants/polled/endpoints", d.platformKey(), `{"kind":"feed","external_id":"feed"}`)
	if made.status != http.StatusCreated {
		t.Fatal(made.status, made.body)
	}
	var sent []string
	for range 5 {
		sent = append(sent, d.send(t, "polled", ""))
	}
	path := "/app/polled/polling-endpoint/feed/consumer/warehouse"
	poll := func(of, query string) (ids []string, offsets []float64) {
		for _, one := range d.call(t, http.StatusOK, "GET", of+query, "")["data"].([]any) {
			m := one.(map[string]any)
			ids = append(ids, m["id"].(string))
			offsets = append(offsets, m["offset"].(float64))
		}
		return ids, offsets
	}
	var offsets []float64
	eventually(t, "every message is polled", func() bool {
		var ids []string
		ids, offsets = poll(path, "?starting_position=earliest")
		return slices.Equal(ids, sent)
	})
	if !slices.IsSorted(offsets) || len(slices.Compact(offsets)) != len(sent) {
		t.Errorf("offsets %v", offsets)
	}
	commit := func(status int, offset float64) {
		d.call(t, status, "POST", path+"/commit", fmt.Sprintf(`{"offset":%.0f}`, offset))
	}
	commit(http.StatusNoContent, offsets[2])
	commit(http.StatusNoContent, offsets[0]) // an older one changes nothing
	if ids, _ := poll(path, ""); !slices.Equal(ids, sent[3:]) {
		t.Errorf("after a commit: %v, want %v", ids, sent[3:])
	}
	commit(http.StatusUnprocessableEntity, 0)
	commit(http.StatusConflict, offsets[4]+1)
	if ids, _ := poll(path+"-new", "?starting_position=latest"); len(ids) != 0 {
		t.Errorf("with the latest: %v", ids)
	}
	d.call(t, http.StatusUnprocessableEntity, "GET", path+"?starting_position=middle", "")
}
