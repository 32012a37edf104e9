//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

// cloudEvent is an event as the official SDK read it, and how it was sent.
type cloudEvent struct {
	Path, Encoding, SpecVersion, ID, Source, Type, Time, Subject string
	ContentType                                                  string `json:"datacontenttype"`
	Data                                                         json.RawMessage
	Error                                                        string
}

// cloudReceiver is a receiver that is built with the official SDK of CloudEvents for Go, as its module has it.
type cloudReceiver struct {
	url string
	out *lines
}

func newCloudReceiver(t *testing.T) *cloudReceiver {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/cloudevents/go")); err != nil {
		t.Fatal(err)
	}
	out, err := within(t, 12*time.Minute, inDir(dir, "go", "build", "-mod=mod", "-o", "receiver", "."))
	need.Reached(t, "the module of CloudEvents' SDK", err, []byte(out))
	r := &cloudReceiver{out: newLines(t, "receiver")}
	cmd := exec.CommandContext(t.Context(), dir+"/receiver")
	cmd.Stdout = r.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		r.out.end()
	})
	r.url = strings.Trim(r.out.await(t, "http://"), "\"\n")
	return r
}

// received are the events that arrived at a path, without those of verifications.
func (r *cloudReceiver) received(t *testing.T, path string) (events []cloudEvent) {
	t.Helper()
	for _, text := range r.out.everything() {
		var e cloudEvent
		if json.Unmarshal([]byte(text), &e) != nil || e.Path != path || e.Encoding == "handshake" || e.Type == "endpoint.verification" {
			continue
		}
		if e.Error != "" {
			t.Errorf("%s: the SDK rejects a request: %s", path, e.Error)
		}
		events = append(events, e)
	}
	return events
}

// TestTheOfficialSDKReadsCloudEvents: structured and binary, with each attribute and the data as they were emitted. The
// handshake of the HTTP webhooks is the SDK's own.
func TestTheOfficialSDKReadsCloudEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*arrival) int { return 200 })
	server := w.launch("serve", "serve").ready()
	w.serveAt(server)
	r := newCloudReceiver(t)
	for _, preset := range []string{"cloudevents", "cloudevents-binary"} {
		var made struct{ ID string }
		w.manage(http.MethodPost, "/endpoints", settings{
			"url":            r.url + "/" + preset,
			"verification":   "options",
			"transformation": settings{"preset": preset, "variables": settings{"source": "https://shop.example.com/orders"}},
		}, &made)
		eventually(t, patience, "the handshake of "+preset, func() bool {
			var now struct{ Status string }
			w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
			return now.Status == "active"
		})
	}
	data := []string{`{"total":1.50,"name":"Zoë \"x\"","id":12345678901234567890}`, `[1,"two",null]`, `"text"`, `null`}
	for i, d := range data {
		body := `{"type":"order.paid","key":"customer 7","occurred_at":"2026-11-27T01:02:03.456Z","data":` + d + `}`
		if status, answer, err := w.call(http.MethodPost, server.url+"/api/v1/events", body, ""); err != nil || status != http.StatusAccepted {
			t.Fatalf("event %d: %d %s %v", i, status, answer, err)
		}
	}
	for preset, encoding := range map[string]string{"cloudevents": "structured", "cloudevents-binary": "binary"} {
		eventually(t, patience, "all arrive at "+preset, func() bool { return len(r.received(t, "/"+preset)) >= len(data) })
		rest := map[string]bool{}
		for _, d := range data {
			rest[canonical(t, d)] = true
		}
		ids := map[string]bool{}
		for _, e := range r.received(t, "/"+preset) {
			text := canonical(t, string(e.Data))
			if !rest[text] {
				t.Errorf("%s: the data %s was not emitted, or arrived twice", preset, e.Data)
			}
			delete(rest, text)
			ids[e.ID] = true
			want := cloudEvent{
				Path:        "/" + preset,
				Encoding:    encoding,
				SpecVersion: "1.0",
				ID:          e.ID,
				Source:      "https://shop.example.com/orders",
				Type:        "order.paid",
				Time:        "2026-11-27T01:02:03.456Z",
				Subject:     "customer 7",
				ContentType: "application/json",
			}
			if encoding == "binary" {
				want.Subject = "customer%207" // the SDK leaves the escapes of section 3.1.3.2 to its caller
			}
			if e.Data = nil; !strings.HasPrefix(e.ID, "evt_") || !sameEvent(e, want) {
				t.Errorf("%s: the SDK reads %+v, want %+v", preset, e, want)
			}
		}
		if len(ids) != len(data) {
			t.Errorf("%s: %d events have %d ids", preset, len(data), len(ids))
		}
	}
}

func sameEvent(a, b cloudEvent) bool {
	a.Data, b.Data = nil, nil
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// canonical is JSON with its numbers as they were written and its members in order. No data is null.
func canonical(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return "null"
	}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, _ := json.Marshal(v)
	return string(out)
}
