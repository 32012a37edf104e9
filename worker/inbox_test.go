package worker

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
)

// TestAnInboxIsReachedThroughTheProcessAloneAndNothingElseIs sends to addresses that the policy refuses: as a test inbox it
// arrives at the receiver, with the URL's own path and host; as any other endpoint, to the very same URL, it is refused.
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
	w := &Worker{inbox: receiver, sender: newSender(egress.Policy{})}
	shut := w.openInbox()
	own := w.sender.carriers[endpoint.Inbox]
	defer own.close()
	for _, address := range []string{"http://127.0.0.1:8080/inbox/token", "https://127.0.0.1:8080/inbox/token"} {
		target := someTarget(t, address)
		inside, err := own.aim(endpoint.Settings{URL: address})
		if err != nil {
			t.Fatal(err)
		}
		target.kind, target.to = endpoint.Inbox, inside
		for range 3 {
			if r, _ := w.sender.send(t.Context(), someJob(`{}`), target); r.Status != http.StatusTeapot {
				t.Fatalf("%s: %+v", address, r)
			}
		}
		target = someTarget(t, address)
		if r, _ := w.sender.send(t.Context(), someJob(`{}`), target); r.Failure != delivery.FailBlocked {
			t.Errorf("%s as an ordinary endpoint: %+v", address, r)
		}
	}
	if n := got.Load(); n != 6 {
		t.Errorf("%d arrived as they should, want 6", n)
	}
	shut()
	target := someTarget(t, "http://127.0.0.1:8080/inbox/token")
	target.kind = endpoint.Inbox
	if r, a := w.sender.send(t.Context(), someJob(`{}`), target); r.Failure == delivery.FailNone {
		t.Errorf("after the end: %+v %+v", r, a)
	}
}
