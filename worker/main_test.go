package worker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) {
	if os.Getenv(keeperDatabase) != "" {
		if err := keeperMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(workerDatabase) != "" {
		if err := workerMain(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// These tests wait more than they compute, so several run concurrently, however few the processors.
	flag.Parse()
	for name, value := range map[string]string{"test.parallel": "6"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(dbtest.Main(m))
}

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// house is a database with a committer, and the workers that a test starts.
type house struct {
	t      testing.TB
	url    string
	db     *db.DB
	ring   *seal.Ring
	policy egress.Policy
	commit *emit.Committer
	log    *slog.Logger
	mu     sync.Mutex
	onWake func(emit.Batch) []id.UUID
	before func() int64
	sql    *pgxpool.Pool // as the console role, which sees everything
}

func newHouse(t testing.TB) *house {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ring, err := seal.NewRing(masterKey)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := egress.ParseAllow("127.0.0.0/8, ::1/128")
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, url: url, db: d, ring: ring, policy: policy, log: testLog(t), sql: console(t, url)}
	before := func() int64 {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.before == nil {
			return 0
		}
		return h.before()
	}
	h.commit = emit.New(emit.Config{
		DB:           d,
		Log:          h.log,
		BeforeCommit: before,
		OnCommit: func(b emit.Batch) []id.UUID {
			h.mu.Lock()
			wake := h.onWake
			h.mu.Unlock()
			if wake == nil {
				return b.Endpoints
			}
			return wake(b)
		},
	})
	h.run(h.commit.Run)
	return h
}

func testLog(t testing.TB) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("POSTHORN_TEST_LOG") != "" {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		_, err := os.Stderr.Write(p)
		return len(p), err
	}), &slog.HandlerOptions{Level: level}))
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// run runs something until the test ends; the returned function stops it earlier.
func (h *house) run(fn func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// worker starts a worker; local wires the committer to it, as in one process.
func (h *house) worker(local bool) (*Worker, func()) {
	w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring, Name: h.t.Name(), BaseURL: "https://posthorn.example.com"})
	if local {
		h.mu.Lock()
		h.onWake, h.before = w.Committed, w.BeforeCommit
		h.mu.Unlock()
	}
	return w, h.run(w.Run)
}

func (h *house) tenant() id.UUID {
	h.t.Helper()
	t, _, err := accounts.CreateTenant(h.t.Context(), h.db, accounts.NewTenant{Name: "test"}, db.Author{Kind: "command"})
	if err != nil {
		h.t.Fatal(err)
	}
	return t.ID
}

// endpoint creates an active endpoint.
func (h *house) endpoint(tenant id.UUID, url string, change func(*endpoint.Settings)) id.UUID {
	h.t.Helper()
	s := endpoint.ReadDefaults(100000, nil, nil).Settings
	s.URL, s.Verification, s.RateLimit = url, "simple", nil
	if change != nil {
		change(&s)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:])
	secret, err := endpoint.NewSecret(s.Format, "hmac", seed)
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
		h.t.Fatal(err)
	}
	h.exec("UPDATE verifications SET state = 'superseded' WHERE endpoint_id = $1", made.ID)
	h.exec("UPDATE endpoints SET status = 'active' WHERE id = $1", made.ID)
	h.exec("UPDATE lanes SET held = false, rev = rev + 1 WHERE endpoint_id = $1", made.ID)
	return made.ID
}

// exec runs a statement as the console role.
func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	h.query(sql, nil, args...)
}

func (h *house) query(sql string, scan []any, args ...any) {
	h.t.Helper()
	for i, a := range args {
		if uuid, ok := a.(id.UUID); ok {
			args[i] = [16]byte(uuid)
		}
	}
	var err error
	if scan == nil {
		_, err = h.sql.Exec(context.Background(), sql, args...)
	} else {
		err = h.sql.QueryRow(context.Background(), sql, args...).Scan(scan...)
	}
	if err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

// console is a connection to a test's database as the console role, which sees everything.
func console(t testing.TB, url string) *pgxpool.Pool {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 2
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console")
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (h *house) count(sql string, args ...any) (n int) {
	h.t.Helper()
	h.query(sql, []any{&n}, args...)
	return n
}

// emit stores events and returns their ids.
func (h *house) emit(tenant id.UUID, items ...emit.Item) []id.UUID {
	h.t.Helper()
	ids := make([]id.UUID, len(items))
	for i, r := range h.commit.Emit(context.Background(), tenant, items) {
		if r.Err != nil {
			h.t.Fatal(r.Err)
		}
		ids[i] = r.ID
	}
	return ids
}

func item(typ, key string, n int) emit.Item {
	return emit.Item{Emission: event.Emission{Type: typ, Key: key, Data: fmt.Appendf(nil, `{"n":%d}`, n)}}
}

var eventually = dbtest.Eventually

// arrival is one request at a receiver.
type arrival struct {
	id, attempt string
	path        string
	data        struct {
		N int `json:"n"`
	}
	header http.Header
	body   []byte
	at     time.Time
}

// receiver stores requests; answer can be changed.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []arrival
	answer   func(arrival) int // status; nil is 200
	headers  http.Header       // of every response
	inside   int
	most     int
}

func newReceiver(t testing.TB, answer func(arrival) int) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		a := arrival{
			id:      req.Header.Get("webhook-id"),
			attempt: req.Header.Get("webhook-attempt"),
			path:    req.URL.Path,
			header:  req.Header,
			body:    body,
			at:      time.Now(),
		}
		var outer struct {
			Data json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(body, &outer)
		_ = json.Unmarshal(outer.Data, &a.data)
		r.mu.Lock()
		r.arrivals = append(r.arrivals, a)
		r.inside++
		r.most = max(r.most, r.inside)
		decide := r.answer
		r.mu.Unlock()
		status := 200
		if decide != nil {
			status = decide(a)
		}
		r.mu.Lock()
		r.inside--
		for name, values := range r.headers {
			rw.Header()[name] = values
		}
		r.mu.Unlock()
		rw.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// newFailing is a receiver that responds with a status until it is well.
func newFailing(t testing.TB, status int) (r *receiver, well *atomic.Bool) {
	well = &atomic.Bool{}
	return newReceiver(t, func(arrival) int {
		if well.Load() {
			return http.StatusOK
		}
		return status
	}), well
}

func (r *receiver) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]arrival(nil), r.arrivals...)
}

// links makes the signed links of the workers of the house.
func (h *house) links() queue.Links {
	return queue.Links{BaseURL: "https://posthorn.example.com", Keys: h.ring}
}
