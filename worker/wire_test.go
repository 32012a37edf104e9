package worker

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// loopback is a policy that allows this machine.
func loopback(t testing.TB) egress.Policy {
	t.Helper()
	policy, err := egress.ParseAllow("127.0.0.0/8, ::1/128")
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// someTarget is a target without an endpoint behind it.
func someTarget(t testing.TB, address string) *target {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(signature.Standard, signature.NewSecret([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return &target{
		kind: endpoint.HTTP, to: &httpAddress{url: u, plain: u.Scheme == "http"}, masked: egress.Mask(address), timeout: 5 * time.Second, maxInFlight: 5, endpoint: "ep_test",
		signing: signature.Signing{Format: signature.Standard, Prefix: "Webhook", Keys: []signature.Key{key}}, expires: []time.Time{{}},
	}
}

// someJob is a job outside any lane.
func someJob(data string) *job {
	u := db.NewID()
	return &job{delivery: db.NewID(), event: &payload{Event: &db.Event{ID: u, CreatedAt: u.Time(), Type: "order.completed", Data: []byte(data)}}}
}

// transportOf is what a sender makes its requests with.
func transportOf(s *sender) *http.Transport {
	return s.carriers[endpoint.HTTP].(*httpCarrier).transport
}

func TestEachKindOfEndpointHasWhatCarriesToIt(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	for _, kind := range endpoint.Kinds() {
		if s.carriers[kind] == nil {
			t.Errorf("nothing carries to endpoints of the kind %s", kind)
		}
	}
	if len(s.carriers) != len(endpoint.Kinds()) {
		t.Errorf("%d carriers for %d kinds", len(s.carriers), len(endpoint.Kinds()))
	}
}

// An endpoint that a newer process saved is not sent to in the wrong way: its lane waits.
func TestAKindThatIsNotKnownIsNotServed(t *testing.T) {
	t.Parallel()
	e := db.Endpoint{Kind: "pigeon", URL: "https://hooks.example.com"}
	if _, err := newTestSender(t).newTarget(db.Leased{Endpoint: e}, nil); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v", err)
	}
}
