package send

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// TestAnInboxIsReachedThroughTheProcessAloneAndNothingElseIs sends to addresses that the policy blocks: as a test inbox
// the request arrives at the receiver, with the URL's own path and host; as any other endpoint with the very same URL
// it is blocked.
func TestAnInboxIsReachedThroughTheProcessAloneAndNothingElseIs(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Host == "127.0.0.1:8080" && r.URL.Path == "/inbox/token" && r.Header.Get("webhook-signature") != "" && len(body) > 0 {
			got.Add(1)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	s := New(egress.Policy{})
	shut := s.OpenInbox(receiver)
	own := s.transports[endpoint.Inbox]
	defer own.close()
	for _, address := range []string{"http://127.0.0.1:8080/inbox/token", "https://127.0.0.1:8080/inbox/token"} {
		destination := someDestination(t, address)
		inside, err := own.configure(endpoint.Settings{URL: address}, nil)
		if err != nil {
			t.Fatal(err)
		}
		destination.kind, destination.to = endpoint.Inbox, inside
		for range 3 {
			if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != http.StatusTeapot {
				t.Fatalf("%s: %+v", address, r)
			}
		}
		destination = someDestination(t, address)
		if r, _ := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure != delivery.FailBlocked {
			t.Errorf("%s as an ordinary endpoint: %+v", address, r)
		}
	}
	if n := got.Load(); n != 6 {
		t.Errorf("%d arrived as they should, want 6", n)
	}
	shut()
	destination := someDestination(t, "http://127.0.0.1:8080/inbox/token")
	destination.kind = endpoint.Inbox
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure == delivery.FailNone {
		t.Errorf("after the end: %+v %+v", r, a)
	}
}
