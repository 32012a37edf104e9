//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/tools/sqstest"
)

// TestSQSReceivesWhatWasAcknowledged: thousands of events arrive in a FIFO queue of ElasticMQ, signed and in the order
// of their keys, through a restart of the server and a kill of the worker.
func TestSQSReceivesWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := sqstest.Run(t)
	queue := s.Queue(t, "webhooks.fifo", nil)
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	delays := make([]int, 20)
	for i := range delays {
		delays[i] = 2
	}
	var made struct{ ID, Secret string }
	w.manage(http.MethodPost, "/endpoints", settings{
		"kind": "sqs",
		"sqs": settings{
			"queue_url":         queue,
			"region":            "us-east-1",
			"access_key_id":     "test",
			"secret_access_key": "test",
		},
		"ordering":      "key",
		"max_in_flight": 50,
		"rate_limit":    nil,
		"retry_policy":  settings{"delays": delays},
	}, &made)
	eventually(t, patience, "the queue is verified", func() bool {
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
	// ElasticMQ stores a message after it has acknowledged it, so it is stopped while nothing is sent to it.
	w.manage(http.MethodPost, "/endpoints/"+made.ID+"/pause", nil, nil)
	delivered := -1
	eventually(t, patience, "nothing is sent any more", func() bool {
		before := delivered
		delivered = w.ask("SELECT count(*) FROM deliveries WHERE status = 2")
		time.Sleep(time.Second) // a second without a delivery
		return before == delivered
	})
	s.Stop()
	s.Start(t)
	w.manage(http.MethodPost, "/endpoints/"+made.ID+"/resume", nil, nil)
	part(keys * perKey * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	clients.Wait()
	t.Logf("finished %v after the last acknowledgment", w.settled(keys*perKey, 3*patience).Round(time.Millisecond))
	w.balanced(1)
	var records []*kgo.Record
	for _, m := range s.Messages(t, queue) {
		r := &kgo.Record{Value: []byte(m.Body)}
		if ms, err := strconv.ParseInt(m.System["SentTimestamp"], 10, 64); err == nil {
			r.Timestamp = time.UnixMilli(ms)
		}
		for name, a := range m.Attributes {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(a.Value)})
		}
		var e struct {
			Type string
			Data payload
		}
		if err := json.Unmarshal(r.Value, &e); err != nil {
			t.Fatal(err)
		}
		if r.Key = []byte(e.Data.Key); e.Type == "orders" && m.System["MessageGroupId"] != e.Data.Key {
			t.Fatalf("the group of %s is %s", e.Data.Key, m.System["MessageGroupId"])
		}
		records = append(records, r)
	}
	inOrder(t, w, records, made.Secret, keys*perKey, 200) // in flight, or not recorded yet, when the worker was killed
}
