package worker

import (
	"net/url"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/domain/egress"
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
		url: u, masked: egress.Mask(address), plain: u.Scheme == "http", timeout: 5 * time.Second, maxInFlight: 5, endpoint: "ep_test",
		signing: signature.Signing{Format: signature.Standard, Prefix: "Webhook", Keys: []signature.Key{key}}, expires: []time.Time{{}},
	}
}

// someJob is a job outside any lane.
func someJob(data string) *job {
	u := db.NewID()
	return &job{delivery: db.NewID(), event: &payload{Event: &db.Event{ID: u, CreatedAt: u.Time(), Type: "order.completed", Data: []byte(data)}}}
}
