//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/domain/signature"
)

// topicEndpoint makes an endpoint that writes to a topic, and waits until it is active.
func (w *world) topicEndpoint(server, topic string, sasl any, change settings) (id, secret string) {
	w.t.Helper()
	s := settings{
		"kind":        "kafka",
		"kafka":       settings{"bootstrap_servers": []string{server}, "topic": topic, "tls": false, "sasl": sasl},
		"rate_limit":  nil,
		"event_types": []string{topic},
	}
	for name, value := range change {
		s[name] = value
	}
	var made struct{ ID, Secret string }
	w.manage(http.MethodPost, "/endpoints", s, &made)
	eventually(w.t, patience, "the topic "+topic+" is verified", func() bool {
		var now struct{ Status string }
		w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
		return now.Status == "active"
	})
	return made.ID, made.Secret
}

// TestKafkaTopicsReceiveWhatWasAcknowledged: thousands of events arrive in a topic of a real Apache Kafka, signed and
// in the order of their keys, through a restart of its broker. Afterwards each trouble of a topic is a clear outcome
// of its own attempt, and no other endpoint notices.
func TestKafkaTopicsReceiveWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	b := startBroker(t).run()
	w := newWorld(t, func(*arrival) int { return 200 })
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)
	for _, topic := range []string{"orders", "vanishing", "guarded", "elsewhere"} {
		b.create(topic, 4)
	}
	b.create("narrow", 1, "max.message.bytes=2000")
	patient := settings{"ordering": "key", "max_in_flight": 50, "timeout_seconds": 30}
	_, secret := w.topicEndpoint(b.open, "orders", nil, patient)
	troubled := map[string]string{}
	for topic, server := range map[string]string{"vanishing": b.open, "narrow": b.open, "elsewhere": b.elsewhere} {
		troubled[topic], _ = w.topicEndpoint(server, topic, nil, nil)
	}
	credentials := settings{"mechanism": "SCRAM-SHA-512", "username": brokerUser, "password": brokerPassword}
	troubled["guarded"], _ = w.topicEndpoint(b.secured, "guarded", credentials, nil)
	w.endpoint("/well", settings{"event_types": []string{"well"}})

	const keys, perKey = 50, brokered / 50
	var clients sync.WaitGroup
	for k := range keys {
		clients.Go(func() {
			key := fmt.Sprintf("key-%d", k)
			for n := range perKey { // each waits for its acknowledgement, which is what makes an order
				w.emit(emission{Type: "orders", Key: key, Data: payload{Key: key, N: n}, idemp: fmt.Sprintf("%s/%d", key, n)})
			}
		})
	}
	eventually(t, patience, "a part is delivered", func() bool { return w.ask("SELECT count(*) FROM deliveries WHERE status = 2") > keys*perKey/5 })
	b.advertised = "10.1.2.3:9092" // of the listener that one endpoint uses
	b.stop()
	b.run()
	clients.Wait()
	took := w.settled(keys*perKey, 2*patience)
	t.Logf("settled %v after the last acknowledgement", took.Round(time.Millisecond))
	w.balanced(1)
	inOrder(t, w, b.records("orders", keys*perKey+1), secret, keys*perKey, 0)
	// What a broker advertises is asked when a connection to it is made, and again after minutes: a server that is
	// new asks now.
	serve.stop()
	w.serveAt(w.launch("serve", "serve").ready())
	t.Run("trouble", func(t *testing.T) { eachProblemIsClear(t, w, b, troubled) })
}

// inOrder checks that each acknowledged event is there, verifies, and never comes after a newer one of its key. lost is
// how many attempts can be without a record.
func inOrder(t *testing.T, w *world, records []*kgo.Record, secret string, events, lost int) {
	t.Helper()
	acks := w.acknowledgements()
	seen, last := map[string]bool{}, map[string]int{}
	var twice, verifications int
	for _, r := range records {
		header := func(name string) string {
			for _, h := range r.Headers {
				if h.Key == strings.ToLower(name) {
					return string(h.Value)
				}
			}
			return ""
		}
		if err := (signature.Wire{Format: signature.Standard}).Verify(header, r.Value, []string{secret}, r.Timestamp, time.Minute); err != nil {
			t.Fatalf("a record does not verify: %v\n%s", err, r.Value)
		}
		var e struct {
			ID, Type string
			Data     payload
		}
		if err := json.Unmarshal(r.Value, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "endpoint.verification" {
			verifications++
			continue
		}
		if string(r.Key) != e.Data.Key || acks[fmt.Sprintf("%s/%d", e.Data.Key, e.Data.N)] != e.ID || header("webhook-id") != e.ID {
			t.Fatalf("the record of %s: key %q, id %s, header %s", r.Value, r.Key, e.ID, header("webhook-id"))
		}
		if seen[e.ID] {
			twice++
		}
		if n, started := last[e.Data.Key]; started && e.Data.N != n && e.Data.N != n+1 {
			t.Errorf("%s: %d comes after %d", e.Data.Key, e.Data.N, n)
		}
		seen[e.ID], last[e.Data.Key] = true, e.Data.N
	}
	if len(seen) != events || verifications != 1 {
		t.Errorf("%d events and %d verifications arrived, want %d and 1", len(seen), verifications, events)
	}
	// The client sends again by itself what a broken connection left open, and the broker knows it; only what an
	// attempt's time-out took back may be there twice.
	t.Logf("%d of %d events are there twice", twice, events)
	if most := lost + w.ask("SELECT count(*) FROM attempts WHERE status <> 200"); twice > most {
		t.Errorf("%d events are there twice, and %d attempts failed", twice, most)
	}
}

func eachProblemIsClear(t *testing.T, w *world, b *broker, troubled map[string]string) {
	b.remove("vanishing")
	w.manage(http.MethodPatch, "/endpoints/"+troubled["guarded"], settings{"kafka": settings{"sasl": settings{
		"mechanism": "SCRAM-SHA-512",
		"username":  brokerUser,
		"password":  "wrong",
	}}}, nil)
	large, before := strings.Repeat("x", 4000), w.receiver.count()
	started := startWatch()
	for n := range 8 {
		for topic := range troubled {
			e := event(topic, n)
			if topic == "narrow" && n%2 == 0 {
				e.Data.Text = large
			}
			w.emit(e)
		}
		w.emit(event("well", n))
	}
	eventually(t, 5*time.Second, "an endpoint beside them has got everything", func() bool { return w.receiver.count() >= before+8 })
	t.Logf("the endpoint beside them had everything after %v", started.passed().Round(time.Millisecond))
	for topic, want := range map[string]struct {
		status  int
		failure string
		text    string
		state   string
	}{
		"vanishing": {404, "", "UNKNOWN_TOPIC_OR_PARTITION", "retrying"},
		"guarded":   {401, "", "SASL_AUTHENTICATION_FAILED", "retrying"},
		"narrow":    {413, "", "MESSAGE_TOO_LARGE", "failed"},
		"elsewhere": {0, "blocked_address", "blocked address", "retrying"},
	} {
		type attempt struct {
			Status         int
			Failure, Error string
		}
		var first attempt
		eventually(t, patience, "an attempt of "+topic+" is told", func() bool {
			var list struct{ Data []struct{ ID, Status string } }
			w.manage(http.MethodGet, "/deliveries?endpoint="+troubled[topic]+"&status="+want.state, nil, &list)
			if len(list.Data) == 0 {
				return false
			}
			var one struct{ Attempts []attempt }
			w.manage(http.MethodGet, "/deliveries/"+list.Data[0].ID, nil, &one)
			if len(one.Attempts) == 0 {
				return false
			}
			first = one.Attempts[0]
			return true
		})
		if first.Status != want.status || first.Failure != want.failure || !strings.Contains(first.Error, want.text) {
			t.Errorf("%s: %+v, want %+v", topic, first, want)
		}
	}
	// A record that is too large fails alone.
	eventually(t, 10*time.Second, "the small ones are there", func() bool {
		return w.ask("SELECT count(*) FROM deliveries WHERE endpoint_id = (SELECT id FROM endpoints WHERE url LIKE '%/narrow') AND status = 2") == 4
	})
}
