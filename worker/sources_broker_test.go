package worker

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/source"
	"posthorn/tools/rabbittest"
	"posthorn/tools/sqstest"
	"posthorn/worker/send"
)

// orders are the bodies of orders from a number to another.
func orders(from, to int) (bodies []string) {
	for n := from; n < to; n++ {
		bodies = append(bodies, fmt.Sprintf(`{"status":"paid","n":%d}`, n))
	}
	return bodies
}

// paused pauses a source or resumes it.
func (h *house) pausedSource(tenant, sourceID id.UUID, paused bool) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		_, err := h.sources(tenant).Pause(h.t.Context(), q, sourceID, paused)
		return err
	})
}

func TestMessagesOfRabbitMQBecomeEventsOnce(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, t.TempDir(), "", "").Run(t)
	t.Cleanup(func() { b.Kill() })
	b.Bind(t, "shop", "orders", "#", nil)
	ch := b.Client(t)
	publish := func(messageID string, bodies ...string) {
		t.Helper()
		for i, body := range bodies {
			m := amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent, Type: "paid", Timestamp: time.Now(), Headers: amqp.Table{"n": int32(i), "region": "eu"}}
			if messageID != "" {
				m.MessageId = fmt.Sprintf("%s-%d", messageID, i)
			}
			if err := ch.PublishWithContext(t.Context(), "shop", "shop.order", false, false, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("a", orders(0, 500)...)
	h := newHouse(t)
	tenant := h.tenant()
	to := &endpoint.RabbitMQConnection{URL: "amqp://" + b.Open, RoutingKey: "orders", Username: rabbittest.User, Password: rabbittest.Password}
	made := h.source(tenant, source.Settings{
		Kind:       endpoint.RabbitMQ,
		Connection: to,
		Mapping:    `{"type": message.key + "." + message.type, "channels": [message.headers.region], "data": {"n": body.n}}`,
	})
	_, stop := h.worker(false)
	h.numbers(tenant, 500)
	if n := h.count("SELECT count(*) FROM events WHERE type = 'shop.order.paid' AND channels = '{eu}'"); n != 500 {
		t.Errorf("%d events as mapped, want 500", n)
	}
	publish("a", orders(0, 500)...)   // the same ids once more
	publish("", orders(500, 1000)...) // without ids
	h.numbers(tenant, 1000)
	eventually(t, 30*time.Second, "all are acknowledged, and it says that none waits", func() bool {
		s := h.sourceOf(tenant, made.ID).State
		return s.Waiting != nil && *s.Waiting == 0 && h.count("SELECT count(*) FROM outbox") == 0
	})
	stop()
	q, err := b.Client(t).QueueDeclarePassive("orders", true, false, false, false, nil)
	if err != nil || q.Messages != 0 {
		t.Errorf("%d messages are left, %v", q.Messages, err)
	}

	// A sample stays in the queue.
	publish("b", orders(1000, 1001)...)
	m, err := send.NewTester(h.policy).Sample(t.Context(), made.Settings)
	if err != nil || m == nil || m.ID != "b-0" || m.Key != "shop.order" || m.Headers["region"] != "eu" || m.Time == nil || m.Text != orders(1000, 1001)[0] {
		t.Fatalf("the sample is %+v, %v", m, err)
	}
	_, stop = h.worker(false)
	h.numbers(tenant, 1001)

	// A broker that restarts is connected to again.
	b.Stop()
	eventually(t, 60*time.Second, "it fails", func() bool { return h.sourceOf(tenant, made.ID).State.Status() == source.Failing })
	b.Run(t)
	ch = b.Client(t)
	publish("c", orders(1001, 1101)...)
	h.numbers(tenant, 1101)
	eventually(t, 60*time.Second, "it is active", func() bool { return h.sourceOf(tenant, made.ID).State.Status() == source.Active })

	// A paused source leaves its messages in the queue.
	h.pausedSource(tenant, made.ID, true)
	eventually(t, 30*time.Second, "it is not consumed", func() bool {
		q, err := b.Client(t).QueueDeclarePassive("orders", true, false, false, false, nil)
		return err == nil && q.Consumers == 0
	})
	publish("d", orders(1101, 1111)...)
	h.pausedSource(tenant, made.ID, false)
	h.numbers(tenant, 1111)
	stop()
}

func TestMessagesOfSQSBecomeEventsOnce(t *testing.T) {
	t.Parallel()
	s := sqstest.Run(t)
	queue := s.Queue(t, "orders", map[string]string{"VisibilityTimeout": "5"})
	s.Send(t, queue, orders(0, 300)...)
	h := newHouse(t)
	tenant := h.tenant()
	made := h.source(tenant, source.Settings{
		Kind:       endpoint.SQS,
		Connection: &endpoint.SQSConnection{QueueURL: queue, Region: "us-east-1", AccessKeyID: "test", SecretKey: "test"},
		Mapping:    orderMapping,
	})
	m, err := send.NewTester(h.policy).Sample(t.Context(), made.Settings)
	if err != nil || m == nil || m.ID == "" || m.Time == nil || m.Queue != "orders" {
		t.Fatalf("the sample is %+v, %v", m, err)
	}
	_, stop := h.worker(false)
	h.numbers(tenant, 300)
	eventually(t, 30*time.Second, "all are deleted", func() bool { return s.Left(t, queue) == 0 })
	stop()
	h.worker(false)
	s.Send(t, queue, orders(300, 400)...)
	h.numbers(tenant, 400)
	if n := h.count("SELECT count(*) FROM source_messages"); n != 400 {
		t.Errorf("%d messages are known, want 400", n)
	}
	h.exec("UPDATE source_messages SET taken_at = now() - interval '16 days'")
	w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring})
	if err := w.maintenance.Do(t.Context(), "assess sources"); err != nil {
		t.Fatal(err)
	}
	if n := h.count("SELECT count(*) FROM source_messages"); n != 0 {
		t.Errorf("%d messages are known after 16 days", n)
	}
}

func TestATenantIsToldOnceOfASourceThatFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: &endpoint.KafkaConnection{Servers: []string{"127.0.0.1:9092"}, Topic: "a"}})
	w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring})
	told := func(want int) {
		t.Helper()
		h.exec("DELETE FROM chores WHERE name = 'sources'")
		if err := w.maintenance.Do(t.Context(), "assess sources"); err != nil {
			t.Fatal(err)
		}
		if n := h.count("SELECT count(*) FROM notices WHERE kind = 'source.failing'"); n != want {
			t.Errorf("told %d times, want %d", n, want)
		}
	}
	told(0)
	h.exec("UPDATE sources SET failing_since = now() - interval '6 minutes', reason = 'x' WHERE id = $1", made.ID)
	told(1)
	told(1)
	h.exec("UPDATE sources SET failing_since = NULL, waiting = 300, behind_since = now() - interval '2 hours' WHERE id = $1", made.ID)
	told(2)
}
