package emit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// house is a database with a committer.
type house struct {
	t      testing.TB
	url    string
	db     *db.DB
	ring   *seal.Ring
	sql    *pgxpool.Pool // as the console role, which sees everything
	commit *Committer
	stop   func()
	mu     sync.Mutex
	told   []Batch
}

func newHouse(t testing.TB) *house {
	t.Helper()
	url := schematest.Clone(t)
	h := &house{t: t, url: url, db: open(t, url)}
	ring, err := seal.NewRing("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	h.ring = ring
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 2
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console")
		return err
	}
	if h.sql, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.sql.Close)
	h.commit, h.stop = h.committer(h.db)
	return h
}

func open(t testing.TB, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// committer starts a committer, as another process has one; stop waits until it has drained.
func (h *house) committer(d *db.DB) (c *Committer, stop func()) {
	c = New(Config{
		DB:  d,
		Log: slog.New(slog.DiscardHandler),
		OnCommit: func(b Batch) []id.UUID {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, b)
			return b.Endpoints
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return c, stop
}

func (h *house) tenant() id.UUID {
	h.t.Helper()
	t, _, err := accounts.CreateTenant(h.t.Context(), h.db, accounts.NewTenant{Name: "test"}, db.Author{Kind: "command"})
	if err != nil {
		h.t.Fatal(err)
	}
	return t.ID
}

// endpoint creates an endpoint that subscribes to everything. Events are queued for it whether it is verified or not.
func (h *house) endpoint(tenant id.UUID, change func(*endpoint.Settings)) id.UUID {
	h.t.Helper()
	s := endpoint.ReadDefaults(100000, nil, nil).Settings
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
	if err := h.db.Tenant(h.t.Context(), tenant, func(q *sql.Queries) (err error) {
		made, err = endpoints.Create(h.t.Context(), q, h.ring, tenant, endpoints.New{
			Settings: s,
			Secret:   secret,
			Limit:    100000,
		})
		return err
	}); err != nil {
		h.t.Error(err) // also called from other goroutines
	}
	return made.ID
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.sql.Exec(context.Background(), sql, plain(args)...); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

func (h *house) count(sql string, args ...any) (n int) {
	h.t.Helper()
	if err := h.sql.QueryRow(context.Background(), sql, plain(args)...).Scan(&n); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func plain(args []any) []any {
	for i, a := range args {
		if uuid, ok := a.(id.UUID); ok {
			args[i] = [16]byte(uuid)
		}
	}
	return args
}

// posted is an emission with its own body; key is an idempotency key.
func posted(n int, key string) Item {
	data := fmt.Appendf(nil, `{"n":%d}`, n)
	return Item{Emission: event.Emission{Type: "order.completed", Data: data, IdempotencyKey: key}, BodyHash: sha256.Sum256(data)}
}

// one emits one item.
func one(c *Committer, tenant id.UUID, it Item) Result {
	return c.Emit(context.Background(), tenant, []Item{it})[0]
}

func code(err error) string {
	if e := fault.As(err); e != nil {
		return e.Code
	}
	if err != nil {
		return "no fault: " + err.Error()
	}
	return ""
}

// balanced checks that the ledger matches the tables, and that every delivery has its queue row.
func (h *house) balanced() {
	h.t.Helper()
	accepted := h.count(`SELECT coalesce(sum(a), 0) FROM (SELECT accepted AS a FROM books
		UNION ALL SELECT x FROM ledger CROSS JOIN LATERAL unnest(accepted) AS x) s`)
	deliveries, queued := h.count("SELECT count(*) FROM deliveries"), h.count("SELECT count(*) FROM queue")
	if accepted != deliveries || queued != deliveries {
		h.t.Errorf("%d accepted, %d deliveries, %d in the queue", accepted, deliveries, queued)
	}
	if n := h.count("SELECT count(*) FROM deliveries d LEFT JOIN events e ON e.id = d.event_id WHERE e.id IS NULL"); n != 0 {
		h.t.Errorf("%d deliveries of no event", n)
	}
}

var eventually = dbtest.Eventually
