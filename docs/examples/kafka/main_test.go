package main

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/domain/signature"
)

var secret = signature.NewSecret([32]byte{1})

// record is one as a worker writes it.
func record(t *testing.T, id, kind string, at time.Time) *kgo.Record {
	t.Helper()
	key, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	m := signature.Message{EventID: id, DeliveryID: "dlv_1", Type: kind, CreatedAt: at, OccurredAt: at, Data: []byte(`{"total": 12.50}`)}
	signing := signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}
	r := &kgo.Record{Value: signature.AppendBody(nil, signing.Format, m)}
	for _, h := range signing.Headers(nil, m, r.Value, signature.Send{At: at, Attempt: 1}) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	return r
}

func TestEachEventIsTakenOnceAndOnlyFromPosthorn(t *testing.T) {
	t.Parallel()
	var taken []string
	c, err := newConsumer(secret, func(e event) { taken = append(taken, e.ID+" "+string(e.Data)) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	forged := record(t, "evt_forged", "order.completed", now)
	forged.Value = []byte(`{"id":"evt_forged","type":"order.completed","data":{"total": 0}}`)
	c.take(record(t, "evt_1", "order.completed", now))
	c.take(record(t, "evt_2", "order.completed", now.Add(-48*time.Hour))) // read late
	c.take(record(t, "evt_1", "order.completed", now))                    // came twice
	c.take(record(t, "evt_3", "endpoint.verification", now))
	c.take(forged)
	c.take(&kgo.Record{Value: []byte(`{}`)})
	if want := []string{`evt_1 {"total": 12.50}`, `evt_2 {"total": 12.50}`}; !slices.Equal(taken, want) {
		t.Errorf("took %q, want %q", taken, want)
	}
	if _, err := newConsumer("", nil); err == nil {
		t.Error("an empty secret is accepted")
	}
}
