package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/source"
	"posthorn/tools/rabbittest"
)

// workerDatabase names the database of a process that is a worker.
const workerDatabase = "POSTHORN_TEST_WORKER_DATABASE"

// workerMain is a worker until it is killed.
func workerMain() error {
	ctx, url := context.Background(), os.Getenv(workerDatabase)
	d, err := db.Open(ctx, url, db.Options{MaxConns: 8})
	if err != nil {
		return err
	}
	ring, err := seal.NewRing(masterKey)
	if err != nil {
		return err
	}
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		return err
	}
	return New(Config{DB: d, ListenURL: url, Egress: policy, Keys: ring}).Run(ctx)
}

// killedWorker starts a worker as a process and kills it with SIGKILL when so many events of a tenant are stored. The
// others would notice its silence after half a minute.
func (h *house) killedWorker(tenant id.UUID, stored int) {
	h.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerDatabase+"="+h.url)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		h.exec("UPDATE workers SET dead = true")
	}()
	eventually(h.t, 90*time.Second, fmt.Sprintf("%d events are stored", stored), func() bool {
		return h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant) >= stored
	})
}

const killedMessages = 3000 // the end-to-end tests send more

func TestRecordsSurviveKillsOfTheirWorkers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, client, to := topicOf(t, 4)
	produce(t, client, 0, killedMessages)
	h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping})
	for _, stored := range []int{1, 300, 700, 1500} {
		h.killedWorker(tenant, stored)
	}
	h.worker(false)
	h.numbers(tenant, killedMessages)
}

func TestMessagesSurviveKillsAndARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	b := rabbittest.New(t, t.TempDir(), "", "").Run(t)
	t.Cleanup(func() { b.Kill() })
	b.Bind(t, "shop", "orders", "#", nil)
	ch := b.Client(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for n, body := range orders(0, killedMessages) {
		var err error
		m := amqp.Publishing{Body: []byte(body), MessageId: fmt.Sprint(n), DeliveryMode: amqp.Persistent}
		if last, err = ch.PublishWithDeferredConfirmWithContext(t.Context(), "shop", "order", false, false, m); err != nil {
			t.Fatal(err)
		}
	}
	if !last.Wait() {
		t.Fatal("a message was not confirmed")
	}
	h := newHouse(t)
	tenant := h.tenant()
	to := &endpoint.RabbitMQConnection{URL: "amqp://" + b.Open, RoutingKey: "orders", Username: rabbittest.User, Password: rabbittest.Password}
	h.source(tenant, source.Settings{Kind: endpoint.RabbitMQ, Connection: to, Mapping: `{"type": "order.in", "data": body}`})
	for _, stored := range []int{1, 300, 700} {
		h.killedWorker(tenant, stored)
	}
	h.worker(false)
	eventually(t, 3*time.Minute, "a part is stored", func() bool { return h.count("SELECT count(*) FROM events") > 1200 })
	b.Kill()
	b.Run(t)
	h.numbers(tenant, killedMessages)
	eventually(t, 3*time.Minute, "all are acknowledged", func() bool {
		q, err := b.Client(t).QueueDeclarePassive("orders", true, false, false, false, nil)
		return err == nil && q.Messages == 0
	})
}
