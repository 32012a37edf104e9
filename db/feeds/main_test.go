package feeds

import (
	"context"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// house is a tenant with a database of its own.
type house struct {
	t      testing.TB
	db     *db.DB
	ring   *seal.Ring
	sql    *pgxpool.Pool // as the console role, which sees everything
	tenant id.UUID
}

func newHouse(t testing.TB) *house {
	t.Helper()
	url := schematest.Clone(t)
	h := &house{t: t}
	var err error
	if h.db, err = db.Open(t.Context(), url, db.Options{MaxConns: 6}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.db.Close)
	if h.ring, err = seal.NewRing("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="); err != nil {
		t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 12
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console")
		return err
	}
	if h.sql, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.sql.Close)
	made, _, err := accounts.CreateTenant(t.Context(), h.db, accounts.NewTenant{Name: "test"}, db.Author{Kind: "command"})
	if err != nil {
		t.Fatal(err)
	}
	h.tenant = made.ID
	return h
}

// feed creates a feed.
func (h *house) feed(change func(*endpoint.Settings)) id.UUID {
	h.t.Helper()
	return h.endpoint(func(s *endpoint.Settings) {
		s.Kind, s.URL = endpoint.Feed, endpoint.FeedURL
		if change != nil {
			change(s)
		}
	})
}

// endpoint creates an endpoint.
func (h *house) endpoint(change func(*endpoint.Settings)) id.UUID {
	h.t.Helper()
	s := endpoint.ReadDefaults(100, nil, nil).Settings
	s.URL = "https://example.com/"
	if change != nil {
		change(&s)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:])
	secret, err := endpoint.NewSecret(s.Format, endpoint.HMAC, seed)
	if err != nil {
		h.t.Fatal(err)
	}
	var made show.Endpoint
	h.in(func(q *sql.Queries) (err error) {
		made, err = endpoints.Create(h.t.Context(), q, h.ring, h.tenant, endpoints.New{Settings: s, Secret: secret, Limit: 100})
		return err
	})
	return made.ID
}

func (h *house) in(fn func(*sql.Queries) error) {
	h.t.Helper()
	if err := h.db.Tenant(h.t.Context(), h.tenant, fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) exec(text string, args ...any) {
	h.t.Helper()
	if _, err := h.sql.Exec(context.Background(), text, args...); err != nil {
		h.t.Fatalf("%s: %v", text, err)
	}
}

// read reads a page.
func (h *house) read(feedID id.UUID, o Options) Page {
	h.t.Helper()
	p, err := h.try(feedID, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *house) try(feedID id.UUID, o Options) (Page, error) {
	if o.Limit == 0 {
		o.Limit = feed.DefaultLimit
	}
	o.Now = time.Now()
	return Read(h.t.Context(), h.db, h.ring, h.tenant, feedID, o)
}

// consumers changes the consumers of a feed.
func (h *house) consumers(feedID id.UUID) Consumers {
	return Consumers{Tenant: h.tenant, Feed: feedID, By: db.Author{Kind: "command"}, Now: time.Now()}
}

// consumer creates a consumer.
func (h *house) consumer(feedID id.UUID, name string, start feed.Start) {
	h.t.Helper()
	h.in(func(q *sql.Queries) error {
		_, _, err := h.consumers(feedID).Create(h.t.Context(), q, name, start)
		return err
	})
}

// ack acknowledges a page.
func (h *house) ack(feedID id.UUID, name string, to feed.Place) {
	h.t.Helper()
	h.in(func(q *sql.Queries) error {
		_, err := h.consumers(feedID).Acknowledge(h.t.Context(), q, name, to)
		return err
	})
}

// commit is a transaction of an emission that has not ended.
type commit struct {
	pgx.Tx
	events []id.UUID
}

// begin stores events in a transaction as the group commit does, and leaves it open. An id can be older than the
// transaction by any time.
func (h *house) begin(events ...id.UUID) *commit {
	h.t.Helper()
	tx, err := h.sql.Begin(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	c := &commit{Tx: tx, events: events}
	run := func(text string, args ...any) {
		h.t.Helper()
		if _, err := tx.Exec(context.Background(), text, args...); err != nil {
			h.t.Fatalf("%s: %v", text, err)
		}
	}
	run("SELECT pg_current_xact_id()")
	for _, one := range events {
		run(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
			SELECT $1, $2, $3, 'order.completed', '{}', t.routing_version FROM tenants t WHERE t.id = $1`, h.tenant, one.Time(), one)
	}
	run(sql.InsertLog, db.Args(sql.InsertLogParams{Events: events, Tenants: []id.UUID{h.tenant}, Firsts: []int32{1}, Lasts: []int32{int32(len(events))}})...)
	return c
}

func (h *house) end(c *commit, kept bool) {
	h.t.Helper()
	do := c.Rollback
	if kept {
		do = c.Commit
	}
	if err := do(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// emit stores events in a transaction of their own.
func (h *house) emit(events ...id.UUID) { h.end(h.begin(events...), true) }

// at is a new id of a moment.
func at(moment time.Time) id.UUID {
	var random [10]byte
	_, _ = rand.Read(random[:])
	return id.New(moment, random)
}

// settle waits until the watermark has passed everything that ended before: transactions of other databases of the
// server keep it back.
func (h *house) settle() {
	h.t.Helper()
	h.exec("UPDATE feed_logs SET settled = base + pg_current_xact_id()::text::bigint WHERE settled IS NULL")
	dbtest.Eventually(h.t, time.Minute, "the watermark to pass what has ended", func() bool {
		var passed bool
		if err := h.sql.QueryRow(context.Background(), `SELECT NOT EXISTS (SELECT FROM event_log r JOIN feed_logs l USING (tenant_id)
			WHERE r.position >= l.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
			AND NOT EXISTS (SELECT FROM feed_logs l WHERE l.settled > l.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint)`).Scan(&passed); err != nil {
			h.t.Fatal(err)
		}
		return passed
	})
}
