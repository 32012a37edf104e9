package send

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
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

// someDestination is a destination without an endpoint.
func someDestination(t testing.TB, address string) *Destination {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(signature.Standard, signature.NewSecret([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return &Destination{
		kind:     endpoint.HTTP,
		to:       &httpAddress{url: u, plain: u.Scheme == "http"},
		Masked:   egress.Mask(address),
		timeout:  5 * time.Second,
		Endpoint: "ep_test",
		signing:  signature.Signing{Format: signature.Standard, Prefix: "Webhook", Keys: []signature.Key{key}},
		expires:  []time.Time{{}},
	}
}

// someMessage is an event for any destination.
func someMessage(data string) Message {
	eventID := db.NewID()
	return Message{
		Event:      &Payload{Event: &sql.Event{ID: eventID, CreatedAt: eventID.Time(), Type: "order.completed", Data: []byte(data)}},
		EventID:    id.Event.Format(eventID),
		DeliveryID: id.Delivery.Format(db.NewID()),
		Attempt:    1,
	}
}

// stockTransport is the transport that a sender uses.
func stockTransport(s *Sender) *http.Transport {
	return s.transports[endpoint.HTTP].(*httpTransport).transport
}

func TestEachKindOfEndpointHasATransport(t *testing.T) {
	t.Parallel()
	s := newTestSender(t)
	for _, kind := range endpoint.Kinds() {
		if s.transports[kind] == nil {
			t.Errorf("nothing carries to endpoints of the kind %s", kind)
		}
	}
	if len(s.transports) != len(endpoint.Kinds()) {
		t.Errorf("%d transports for %d kinds", len(s.transports), len(endpoint.Kinds()))
	}
}

// An endpoint that a newer process saved is not sent to in a wrong way: its lane waits.
func TestAnUnknownKindIsNotServed(t *testing.T) {
	t.Parallel()
	e := sql.Endpoint{Kind: "pigeon", URL: "https://hooks.example.com"}
	if _, err := newTestSender(t).NewDestination(queue.Leased{Endpoint: e}, endpoint.Settings{Kind: "pigeon"},
		nil); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v", err)
	}
}
