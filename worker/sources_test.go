package worker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/db"
	"posthorn/db/sources"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/source"
)

const orderMapping = `{"type": "order." + body.status, "key": message.key, "data": {"n": body.n}}`

func (h *house) sources(tenant id.UUID) sources.Store {
	return sources.Store{Tenant: tenant, Keys: h.ring, By: db.Author{Kind: "test"}}
}

// source creates a source.
func (h *house) source(tenant id.UUID, s source.Settings) (made show.Source) {
	h.t.Helper()
	if s.Name == "" {
		s.Name = "orders"
	}
	s, err := s.Check(h.policy)
	if err != nil {
		h.t.Fatal(err)
	}
	h.as(tenant, func(q *sql.Queries) error {
		made, err = h.sources(tenant).Create(h.t.Context(), q, s)
		return err
	})
	return made
}

// sourceOf is the source as it is.
func (h *house) sourceOf(tenant, sourceID id.UUID) (s show.Source) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) (err error) {
		s, err = h.sources(tenant).Read(h.t.Context(), q, sourceID)
		return err
	})
	return s
}

// topicOf is a topic of a cluster of its own, and a client that writes to it.
func topicOf(t *testing.T, partitions int32) (*kfake.Cluster, *kgo.Client, *endpoint.KafkaConnection) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return c, client, &endpoint.KafkaConnection{Servers: c.ListenAddrs()[:1], Topic: "orders"}
}

// produce writes orders from a number to another to a topic.
func produce(t *testing.T, client *kgo.Client, from, to int) {
	t.Helper()
	records := make([]*kgo.Record, 0, to-from)
	for n := from; n < to; n++ {
		records = append(records, &kgo.Record{Key: fmt.Appendf(nil, "k%d", n%7), Value: fmt.Appendf(nil, `{"status":"paid","n":%d}`, n)})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// numbers waits until the events of a tenant have all numbers below n, each once.
func (h *house) numbers(tenant id.UUID, n int) {
	h.t.Helper()
	eventually(h.t, 60*time.Second, fmt.Sprintf("%d events are stored", n), func() bool {
		return h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant) >= n
	})
	if all, once := h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant),
		h.count("SELECT count(DISTINCT convert_from(data, 'UTF8')) FROM events WHERE tenant_id = $1", tenant); all != n || once != n {
		h.t.Fatalf("%d events with %d numbers, want %d", all, once, n)
	}
}

func TestRecordsOfATopicBecomeEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering = "key" })
	_, client, to := topicOf(t, 3)
	produce(t, client, 0, 500)
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping})
	h.worker(false)
	h.numbers(tenant, 500)
	produce(t, client, 500, 700)
	h.numbers(tenant, 700)
	eventually(t, 30*time.Second, "all are delivered", func() bool { return len(r.seen()) >= 700 })
	last := map[string]int{}
	for _, a := range r.seen() {
		key := fmt.Sprint("k", a.data.N%7)
		if a.data.N < last[key] {
			t.Fatalf("%d of the key %s arrives after %d", a.data.N, key, last[key])
		}
		last[key] = a.data.N
	}
	if n := h.count("SELECT count(*) FROM events WHERE type = 'order.paid' AND key LIKE 'k_'"); n != 700 {
		t.Errorf("%d events as mapped, want 700", n)
	}
	s := h.sourceOf(tenant, made.ID)
	if s.State.Status() != source.Active || s.State.LastReadAt.IsZero() || s.State.LastSentAt.IsZero() {
		t.Errorf("%+v", s.State)
	}
}

func TestANewestSourceBeginsWithWhatComes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, client, to := topicOf(t, 1)
	produce(t, client, 100, 200)
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping, Start: source.Newest})
	h.worker(false)
	eventually(t, 20*time.Second, "it is connected", func() bool { return h.sourceOf(tenant, made.ID).State.Waiting != nil })
	produce(t, client, 0, 10)
	h.numbers(tenant, 10)
}

func TestAPoisonMessageStopsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, client, to := topicOf(t, 1)
	large := strings.Repeat("x", 300<<10)
	for i, body := range []string{"no JSON", `{"n":1}`, `{"status":"a b","n":1}`, `{"status":"paid","n":["` + large + `"]}`, "", "\xff\xfe"} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(body)}).FirstErr(); err != nil {
			t.Fatal(i, err)
		}
	}
	produce(t, client, 0, 10)
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping})
	h.worker(false)
	h.numbers(tenant, 10)
	eventually(t, 20*time.Second, "all are rejected", func() bool { return h.count("SELECT count(*) FROM outbox_rejected WHERE source_id = $1", made.ID) == 6 })
	for code, want := range map[string]int{"mapping_failed": 4, "type_malformed": 1, "payload_too_large": 1} {
		if n := h.count("SELECT count(*) FROM outbox_rejected WHERE code = $1", code); n != want {
			t.Errorf("%d are rejected as %s, want %d", n, code, want)
		}
	}
	// With another mapping, what was rejected becomes events.
	h.as(tenant, func(q *sql.Queries) error {
		_, err := h.sources(tenant).Change(t.Context(), q, made.ID, func(s source.Settings) (source.Settings, error) {
			s.Mapping = `{"type": "order.other", "data": message.offset}`
			return s.Check(h.policy)
		})
		return err
	})
	h.exec(`WITH again AS (DELETE FROM outbox_rejected RETURNING *) INSERT INTO outbox (id, tenant_id, type, data, source_id)
		SELECT id, tenant_id, type, data, source_id FROM again`)
	eventually(t, 20*time.Second, "they are stored", func() bool { return h.count("SELECT count(*) FROM events WHERE type = 'order.other'") == 6 })
}

func TestAWorkerThatDiesLosesAndDoublesNoRecord(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, client, to := topicOf(t, 4)
	h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping})
	const all = 3000
	for from := 0; from < all; from += 500 {
		produce(t, client, from, from+500)
		_, stop := h.worker(false)
		eventually(t, 30*time.Second, "it reads", func() bool { return h.count("SELECT count(*) FROM events") > from })
		stop()
	}
	h.worker(false)
	h.numbers(tenant, all)
}

func TestTwoReadersOfOneTopicStoreEachRecordOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: &endpoint.KafkaConnection{Servers: []string{"127.0.0.1:9092"}, Topic: "a"}})
	first, second := db.NewID(), db.NewID()
	for _, worker := range []id.UUID{first, second} {
		if err := h.db.Worker(t.Context(), func(q *sql.Queries) error { return q.RegisterWorker(t.Context(), worker, "w") }); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(worker id.UUID) []sources.Claimed {
		own, err := sources.Claim(t.Context(), h.db, worker)
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
	of := claim(first)
	if len(of) != 1 || len(claim(second)) != 0 {
		t.Fatal("a source has not one reader")
	}
	next, err := of[0].Positions(t.Context(), h.db, map[int32]source.Bounds{0: {First: 5, End: 9}})
	if err != nil || next[0] != 5 {
		t.Fatal(next, err)
	}
	record := []source.Message{{Text: `{"type":"a","data":1}`}}
	if err := of[0].Take(t.Context(), h.db, record, source.Moves{0: {From: 5, To: 6}}); err != nil {
		t.Fatal(err)
	}
	// The same once more, and from a worker that was declared dead.
	if err := of[0].Take(t.Context(), h.db, record, source.Moves{0: {From: 5, To: 6}}); !errors.Is(err, sources.ErrLost) {
		t.Errorf("a record is taken twice: %v", err)
	}
	h.exec("UPDATE workers SET dead = true WHERE id = $1", first)
	if own := claim(second); len(own) != 1 || own[0].ID != made.ID {
		t.Fatal("a dead worker's source has no new reader")
	}
	if err := of[0].Take(t.Context(), h.db, record, source.Moves{0: {From: 6, To: 7}}); !errors.Is(err, sources.ErrLost) {
		t.Errorf("a worker that was declared dead takes a record: %v", err)
	}
	if n := h.count("SELECT count(*) FROM outbox"); n != 1 {
		t.Errorf("%d records are taken, want 1", n)
	}
}

func TestARecordThatTheTopicDeletedIsCounted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: &endpoint.KafkaConnection{Servers: []string{"127.0.0.1:9092"}, Topic: "a"}})
	worker := db.NewID()
	if err := h.db.Worker(t.Context(), func(q *sql.Queries) error { return q.RegisterWorker(t.Context(), worker, "w") }); err != nil {
		t.Fatal(err)
	}
	own, err := sources.Claim(t.Context(), h.db, worker)
	if err != nil || len(own) != 1 {
		t.Fatal(own, err)
	}
	at := func(first, end int64) (int64, error) {
		next, err := own[0].Positions(t.Context(), h.db, map[int32]source.Bounds{0: {First: first, End: end}})
		return next[0], err
	}
	if next, err := at(0, 10); next != 0 || err != nil {
		t.Fatal(next, err)
	}
	if next, err := at(4, 10); next != 4 || err != nil || h.sourceOf(tenant, made.ID).State.Missed != 4 {
		t.Errorf("continues at %d, %v", next, err)
	}
	if _, err := at(0, 2); !errors.Is(err, sources.ErrRecreated) {
		t.Errorf("a topic that was created again: %v", err)
	}
}

func TestASourceWaitsForAQuotaAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, client, to := topicOf(t, 1)
	produce(t, client, 0, 2000)
	h.settings(tenant, `{"limits":{"events_per_month":100}}`)
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to, Mapping: orderMapping})
	h.worker(false)
	eventually(t, 30*time.Second, "it waits", func() bool { return h.count("SELECT count(*) FROM outbox WHERE source_id = $1", made.ID) >= 1000 })
	if n := h.count("SELECT count(*) FROM outbox_rejected"); n != 0 {
		t.Errorf("%d are rejected", n)
	}
	h.exec("UPDATE outbox SET tries = 1100")
	h.settings(tenant, `{}`)
	h.exec("UPDATE outbox SET due_at = now()")
	h.numbers(tenant, 2000)
}

func TestASourceThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	_, _, to := topicOf(t, 1)
	to.Topic = "missing"
	made := h.source(tenant, source.Settings{Kind: endpoint.Kafka, Connection: to})
	_, stop := h.worker(false)
	eventually(t, 30*time.Second, "it fails", func() bool { return h.sourceOf(tenant, made.ID).State.Status() == source.Failing })
	if reason := h.sourceOf(tenant, made.ID).State.Reason; !strings.Contains(reason, "UNKNOWN_TOPIC_OR_PARTITION") {
		t.Errorf("it says %q", reason)
	}
	h.as(tenant, func(q *sql.Queries) error {
		_, err := h.sources(tenant).Pause(t.Context(), q, made.ID, true)
		return err
	})
	if s := h.sourceOf(tenant, made.ID); s.State.Status() != source.Paused || s.State.Reason != "" {
		t.Errorf("paused, it is %+v", s.State)
	}
	stop()
}
