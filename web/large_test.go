package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/client"
	"posthorn/domain/event"
)

// TestALargeEventIsFetchedByItsLink: from the request to the receiver, over HTTP, and through the command line.
func TestALargeEventIsFetchedByItsLink(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	folder := t.TempDir()
	near := *d
	near.url = program(t, append(d.server, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_MAX_LARGE_PAYLOAD=2000000"), Parts{Web: true, Worker: true}).URL()
	arrived := make(chan event.Reference, 10)
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in struct{ Data event.Reference }
		if err := json.NewDecoder(r.Body).Decode(&in); err == nil && in.Data.Size > 0 {
			arrived <- in.Data
		}
	}))
	t.Cleanup(r.Close)
	var endpoint thing
	d.ok(&endpoint, "endpoints create "+r.URL+" --verification simple --event-types order.completed --large-payloads reject --json")
	eventually(t, "the endpoint is verified", func() bool {
		var now thing
		d.ok(&now, "endpoints get "+endpoint.ID+" --json")
		return now.Status == "active"
	})

	data := `{"fill":  "` + strings.Repeat("ü", 500_000) + `"}`
	body := `{"type":"order.completed","data":` + data + `}`
	// The process without the setting has the usual limit, and the other one its own.
	for _, c := range []struct {
		by   *desk
		body string
		want int
	}{
		{d, body, http.StatusRequestEntityTooLarge},
		{&near, `{"type":"order.completed","data":"` + strings.Repeat("x", 1_999_999) + `"}`, http.StatusRequestEntityTooLarge},
		{&near, `{"type":"order.completed","content_type":"` + event.ReferenceType + `","data":"x"}`, http.StatusBadRequest},
		{&near, body, http.StatusAccepted},
	} {
		if status, text := c.by.ask(http.MethodPost, "/events", c.body); status != c.want {
			t.Fatalf("%d bytes: %d %s", len(c.body), status, text)
		}
	}
	var list []client.Delivery
	eventually(t, "the delivery fails, since the endpoint allows no link", func() bool {
		d.ok(&list, "deliveries list --json")
		return len(list) == 1 && list[0].Status == "failed"
	})
	if got := d.ok(nil, "deliveries get "+list[0].ID); !strings.Contains(got, "payload_too_large") && !strings.Contains(got, "Payload too large") {
		t.Errorf("the command says %s", got)
	}
	if status, text := near.ask(http.MethodGet, "/events/"+list[0].EventID, ""); status != http.StatusOK || !strings.Contains(text, `"sha256":`) || len(text) > 2000 {
		t.Errorf("the event is shown as %d %.300s", status, text)
	}
	d.ok(nil, "endpoints update "+endpoint.ID+" --large-payloads link")
	d.ok(nil, "deliveries replay "+list[0].ID)
	got := <-arrived
	link := near.url + got.Link[strings.Index(got.Link, "/links/"):] // either process has the link of its own URL
	read := func(method string) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(text)
	}
	if status, header, text := read(http.MethodGet); status != http.StatusOK || text != data || !got.Holds([]byte(text)) || header.Get("Content-Disposition") != "attachment" {
		t.Errorf("the link opens %d, %d bytes of %d", status, len(text), len(data))
	}
	if status, _, text := read(http.MethodHead); status != http.StatusOK || text != "" {
		t.Errorf("HEAD: %d %s", status, text)
	}
	// Other bytes than were emitted are not returned.
	var object string
	_ = filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			object = path
		}
		return nil
	})
	for _, damage := range []func() error{
		func() error { return os.WriteFile(object, []byte(strings.Replace(data, "ü", "ö", 1)), 0o600) },
		func() error { return os.Remove(object) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if status, _, text := read(http.MethodGet); status != http.StatusServiceUnavailable || !strings.Contains(text, "payload_not_read") || strings.Contains(text, folder) {
			t.Errorf("a damaged object: %d %.200s", status, text)
		}
	}
}
