//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/tools/rabbittest"
	"posthorn/tools/sqstest"
)

// source creates a source of messages that are orders.
func (w *world) source(kind string, connection settings) {
	w.t.Helper()
	w.manage(http.MethodPost, "/sources", settings{
		"name":    "orders",
		"kind":    kind,
		kind:      connection,
		"mapping": `{"type": "order.in", "key": body.key, "data": body}`,
	}, nil)
}

func order(n int) string { return fmt.Sprintf(`{"key":"key-%d","n":%d}`, n%50, n) }

// cameIn waits for all messages and checks that each is one event.
func (w *world) cameIn(incoming int) {
	w.t.Helper()
	eventually(w.t, 3*patience, "all messages are events", func() bool { return w.ask("SELECT count(*) FROM events") >= incoming })
	all, once := w.ask("SELECT count(*) FROM events"), w.ask("SELECT count(DISTINCT convert_from(data, 'UTF8')) FROM events")
	if all != incoming || once != incoming {
		w.t.Errorf("%d events of %d messages, want %d", all, once, incoming)
	}
	if n := w.ask("SELECT count(*) FROM outbox_rejected"); n != 0 {
		w.t.Errorf("%d messages were rejected", n)
	}
}

// part waits until so many messages are events.
func (w *world) part(n int) {
	w.t.Helper()
	eventually(w.t, 2*patience, "a part is stored", func() bool { return w.ask("SELECT count(*) FROM events") > n })
}

// TestThousandsOfRecordsOfKafkaComeInOnce: through a restart of the broker and a kill of the worker that reads them.
func TestThousandsOfRecordsOfKafkaComeInOnce(t *testing.T) {
	t.Parallel()
	b := startBroker(t).run()
	b.create("orders", 4)
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	w.source("kafka", settings{"bootstrap_servers": []string{b.open}, "topic": "orders", "tls": false})
	client, err := kgo.NewClient(kgo.SeedBrokers(b.open), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	produced := make(chan error, 1)
	go func() {
		var failed error
		for n := range brokered {
			client.Produce(context.WithoutCancel(t.Context()), &kgo.Record{Value: []byte(order(n)), Key: fmt.Appendf(nil, "key-%d", n%50)}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed = err
				}
			})
		}
		_ = client.Flush(context.WithoutCancel(t.Context()))
		produced <- failed
	}()
	w.part(brokered / 5)
	b.stop()
	b.run()
	w.part(brokered * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	if err := <-produced; err != nil {
		t.Fatal(err)
	}
	w.cameIn(brokered)
}

// TestThousandsOfMessagesOfRabbitMQComeInOnce: the same for a queue.
func TestThousandsOfMessagesOfRabbitMQComeInOnce(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, t.TempDir(), "", "").Run(t)
	t.Cleanup(func() { b.Kill() })
	b.Bind(t, "shop", "orders", "#", nil)
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	ch := b.Client(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for n := range brokered {
		var err error
		m := amqp.Publishing{Body: []byte(order(n)), MessageId: fmt.Sprintf("order-%d", n), DeliveryMode: amqp.Persistent}
		if last, err = ch.PublishWithDeferredConfirmWithContext(t.Context(), "shop", "order", false, false, m); err != nil {
			t.Fatal(err)
		}
	}
	if !last.Wait() {
		t.Fatal("a message was not confirmed")
	}
	w.source("rabbitmq", settings{"url": "amqp://" + b.Open, "queue": "orders", "username": rabbittest.User, "password": rabbittest.Password})
	w.part(brokered / 10)
	b.Stop()
	b.Run(t)
	w.part(brokered * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	w.cameIn(brokered)
	eventually(t, patience, "all messages are acknowledged", func() bool {
		q, err := b.Client(t).QueueDeclarePassive("orders", true, false, false, false, nil)
		return err == nil && q.Messages == 0
	})
}

// TestThousandsOfMessagesOfSQSComeInOnce: the same for a queue of SQS. What a killed worker had received and not
// deleted is delivered again.
func TestThousandsOfMessagesOfSQSComeInOnce(t *testing.T) {
	t.Parallel()
	s := sqstest.Run(t)
	queue := s.Queue(t, "orders", nil)
	w := newWorld(t, func(*arrival) int { return 200 })
	web, worker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(web)
	bodies := make([]string, brokered)
	for n := range bodies {
		bodies[n] = order(n)
	}
	began := time.Now()
	s.Send(t, queue, bodies...)
	t.Logf("the queue had all after %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	w.source("sqs", settings{"queue_url": queue, "region": "us-east-1", "access_key_id": "test", "secret_access_key": "test"})
	w.part(brokered / 10)
	s.Stop()
	s.Start(t)
	w.part(brokered * 2 / 5)
	worker.kill()
	w.launch("worker", "worker").ready()
	w.cameIn(brokered)
	t.Logf("all came in within %v", time.Since(began).Round(time.Millisecond))
	eventually(t, 2*patience, "all messages are deleted", func() bool { return s.Left(t, queue) == 0 })
	w.cameIn(brokered)
}
