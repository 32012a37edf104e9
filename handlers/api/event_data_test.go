package api_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"posthorn/db/emit"
	"posthorn/domain/access"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// shelf is an object storage that can be away.
type shelf struct {
	objects map[string][]byte
	away    bool
}

func (s *shelf) Put(_ context.Context, name string, body []byte) error {
	s.objects[name] = body
	return nil
}

func (s *shelf) Get(_ context.Context, name string, _ int64) ([]byte, error) {
	if body, ok := s.objects[name]; ok && !s.away {
		return body, nil
	}
	return nil, errors.New("no object " + name)
}

// TestTheDataOfAnEventIsReadAlone byte for byte, in its content type, also where it is in object storage; and by
// nobody whose key can't read events.
func TestTheDataOfAnEventIsReadAlone(t *testing.T) {
	t.Parallel()
	store := &shelf{objects: map[string][]byte{}}
	w := newWorld(t, func(d *api.Deps) { d.Large = handlers.NewLargeData(store, slog.New(slog.DiscardHandler)) })
	tn, other := w.tenant("a"), w.tenant("b")
	at := func(eventID string) string { return "/api/v1/events/" + eventID + "/data" }

	data := "{ \"a\" : 1.50,  \"a\":12345678901234567890 }"
	plain := w.do("POST", "/api/v1/events", tn.key, `{"type":"order.paid","data":`+data+`}`).want(http.StatusAccepted).text("id")
	text := w.do("POST", "/api/v1/events", tn.key, `{"type":"order.paid","data":"<b>\u00e9</b>","content_type":"text/html"}`).want(http.StatusAccepted).text("id")
	for eventID, want := range map[string][2]string{plain: {data, "application/json"}, text: {"<b>é</b>", "text/html"}} {
		got := w.do("GET", at(eventID), tn.key, nil).want(http.StatusOK)
		if string(got.Body) != want[0] || !strings.HasPrefix(got.Header.Get("Content-Type"), want[1]) {
			t.Errorf("%s %q, want %q", got.Header.Get("Content-Type"), got.Body, want)
		}
		if got.Header.Get("Content-Disposition") != "attachment" || !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("a browser shows it: %v", got.Header)
		}
	}

	c := emit.New(emit.Config{DB: w.db, Log: w.Logger, Objects: store})
	w.Run(c.Run)
	whole := fmt.Sprintf(`{"fill": %q}`, strings.Repeat("x", 400_000))
	r := c.Emit(t.Context(), tn.uuid, []emit.Item{{Emission: event.Emission{Type: "file.stored", Data: []byte(whole)}}})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	large := id.Event.Format(r.ID)
	if shown := w.do("GET", "/api/v1/events/"+large, tn.key, nil).want(http.StatusOK); len(shown.Body) > 2000 || !strings.Contains(string(shown.Body), fmt.Sprintf("%x", sha256.Sum256([]byte(whole)))) {
		t.Errorf("the event itself is %.300s", shown.Body)
	}
	if got := w.do("GET", at(large), tn.key, nil).want(http.StatusOK); string(got.Body) != whole {
		t.Errorf("%d bytes, want %d", len(got.Body), len(whole))
	}
	store.away = true
	w.do("GET", at(large), tn.key, nil).problem(http.StatusServiceUnavailable, "payload_not_read")

	w.do("GET", at(plain), w.scoped(tn, access.WebhooksRead, access.EventsWrite), nil).problem(http.StatusForbidden, "scope_missing")
	w.do("GET", at(plain), other.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("GET", at("evt_00000000000000000000000000"), tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("POST", "/api/v1/events/"+plain+"/expunge", tn.key, `{"reason":"asked"}`).want(http.StatusOK)
	w.do("GET", at(plain), tn.key, nil).problem(http.StatusGone, "event_data_deleted")
}
