//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/tools/rabbittest"
)

// TestRabbitMQReceivesWhatWasAcknowledged: thousands of events arrive in a queue of a real RabbitMQ, signed and in the
// order of their keys, through a restart of the broker and a kill of the worker.
func TestRabbitMQReceivesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, t.TempDir(), "", "").Run(t)
	t.Cleanup(func() { b.Kill() })
	b.Bind(t, "webhooks", "orders", "#", nil)
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	delays := make([]int, 20)
	for i := range delays {
		delays[i] = 2
	}
	var made struct{ ID, Secret string }
	w.manage(http.MethodPost, "/endpoints", settings{
		"kind": "rabbitmq",
		"rabbitmq": settings{
			"url":      "amqp://" + b.Open,
			"exchange": "webhooks",
			"username": rabbittest.User,
			"password": rabbittest.Password,
		},
		"ordering":      "key",
		"max_in_flight": 50,
		"rate_limit":    nil,
		"retry_policy":  settings{"delays": delays},
	}, &made)
	eventually(t, patience, "the exchange is verified", func() bool {
		var now struct{ Status string }
		w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
		return now.Status == "active"
	})
	const keys, perKey = 50, brokered / 50
	var clients sync.WaitGroup
	for k := range keys {
		clients.Go(func() {
			key := fmt.Sprintf("key-%d", k)
			for n := range perKey {
				w.emit(emission{Type: "orders", Key: key, Data: payload{Key: key, N: n}, idemp: fmt.Sprintf("%s/%d", key, n)})
			}
		})
	}
	part := func(n int) {
		eventually(t, 2*patience, "a part is delivered", func() bool { return w.ask("SELECT count(*) FROM deliveries WHERE status = 2") > n })
	}
	part(keys * perKey / 5)
	b.Stop()
	b.Run(t)
	part(keys * perKey * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	clients.Wait()
	t.Logf("finished %v after the last acknowledgment", w.settled(keys*perKey, 3*patience).Round(time.Millisecond))
	w.balanced(1)
	depth, err := b.Client(t).QueueDeclarePassive("orders", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for _, m := range b.Messages(t, "orders", depth.Messages) {
		r := &kgo.Record{Value: m.Body, Timestamp: m.Timestamp}
		for name, value := range m.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: fmt.Append(nil, value)})
		}
		var e struct{ Data payload }
		if err := json.Unmarshal(m.Body, &e); err != nil {
			t.Fatal(err)
		}
		r.Key = []byte(e.Data.Key)
		records = append(records, r)
	}
	inOrder(t, w, records, made.Secret, keys*perKey, 200) // in flight, or not recorded yet, when the worker was killed
}
