package emit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// proxy is between a committer and its database, and can break connections at chosen moments.
type proxy struct {
	net.Listener
	network, target string
	cutAfterCommit  atomic.Int64 // this many more COMMITs are executed without a response
	cutBefore       atomic.Int64 // this many more connections break after a statement's response, before its COMMIT
	cuts            atomic.Int64
}

// newProxy listens for a database's URL and returns the URL of the proxy.
func newProxy(t testing.TB, database string) (p *proxy, through string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p = &proxy{Listener: l, network: "tcp", target: net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))}
	if strings.HasPrefix(cfg.Host, "/") {
		p.network, p.target = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", cfg.Host, cfg.Port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(c)
		}
	}()
	u := url.URL{
		Scheme: "postgres",
		User:   url.UserPassword(cfg.User, cfg.Password),
		Host:   l.Addr().String(),
		Path: "/" +
			cfg.Database,
		RawQuery: "sslmode=disable",
	}
	return p, u.String()
}

func (p *proxy) forward(client net.Conn) {
	server, err := net.Dial(p.network, p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	closeBoth := func() { _ = client.Close(); _ = server.Close() }
	go func() {
		defer closeBoth()
		_, _ = io.Copy(server, client)
	}()
	defer closeBoth()
	buf, tail := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		seen := append(tail, buf[:n]...)
		if bytes.Contains(seen, []byte("COMMIT\x00")) && takeOne(&p.cutAfterCommit) || bytes.Contains(seen, []byte("INSERT 0 ")) &&
			takeOne(&p.cutBefore) {
			p.cuts.Add(1)
			return
		}
		tail = append([]byte(nil), seen[max(0, len(seen)-8):]...)
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// takeOne counts down and reports whether the count was above zero.
func takeOne(n *atomic.Int64) bool {
	for {
		v := n.Load()
		if v <= 0 {
			return false
		}
		if n.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

func TestACommitWhoseAnswerIsLostStoresOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		after, before int64
	}{
		{"after COMMIT", 1, 0},
		{"after COMMIT, twice", 2, 0},
		{"in mid-transaction", 0, 1},
		{"both", 1, 1},
	} {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, keys %v", tt.name, keyed), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				tenant := h.tenant()
				h.endpoint(tenant, nil)
				h.endpoint(tenant, nil)
				p, through := newProxy(t, h.url)
				c, _ := h.committer(open(t, through))
				if r := one(c, tenant, posted(0, "")); r.Err != nil { // routes are read, statements prepared
					t.Fatal(r.Err)
				}
				p.cutAfterCommit.Store(tt.after)
				p.cutBefore.Store(tt.before)
				items := make([]Item, 20)
				for i := range items {
					key := ""
					if keyed {
						key = fmt.Sprintf("key %d", i%15) // the last five are the first five again
						items[i] = posted(i%15, key)
						continue
					}
					items[i] = posted(i, key)
				}
				want := 20
				if keyed {
					want = 15
				}
				for i, r := range c.Emit(t.Context(), tenant, items) {
					if r.Err != nil || r.ID.IsZero() || r.Deliveries != 2 || r.Duplicate != (keyed && i >= 15) {
						t.Errorf("item %d: %+v", i, r)
					}
				}
				if p.cuts.Load() != tt.after+tt.before {
					t.Errorf("%d connections were cut, want %d: the test proves nothing", p.cuts.Load(), tt.after+tt.before)
				}
				if n := h.count("SELECT count(*) FROM events"); n != want+1 {
					t.Errorf("%d events, want %d", n, want+1)
				}
				if n := h.count("SELECT count(*) FROM deliveries"); n != 2*(want+1) {
					t.Errorf("%d deliveries, want %d", n, 2*(want+1))
				}
				h.balanced()
			})
		}
	}
}

func TestAnUnavailableDatabaseIsReportedInTimeAndRecovers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	p, through := newProxy(t, h.url)
	c, _ := h.committer(open(t, through))
	if r := one(c, tenant, posted(0, "")); r.Err != nil {
		t.Fatal(r.Err)
	}
	p.cutBefore.Store(1 << 40)
	began := time.Now()
	r := one(c, tenant, posted(1, "key"))
	if e := fault.As(r.Err); e == nil || e.Kind != fault.Unavailable || e.RetryAfter == 0 {
		t.Errorf("%+v, want unavailable and when to come again", r)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("told after %v", took)
	}
	p.cutBefore.Store(0)
	if r := one(c, tenant, posted(1, "key")); r.Err != nil {
		t.Errorf("after it healed: %v", r.Err)
	}
	if n := h.count("SELECT count(*) FROM events"); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	h.balanced()
}

func TestABadItemFailsAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, nil)
	bad := func(n int, key string) Item { // both the API and the database reject this
		it := posted(n, key)
		it.Emission.Key = "a\x00b"
		return it
	}
	// Held back until all are queued, so that they are one batch.
	held := New(Config{DB: h.db, Log: h.commit.log})
	results := make([][]Result, 40)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			items := []Item{posted(i, ""), posted(i, fmt.Sprintf("key %d", i))}
			if i == 7 || i == 31 {
				items = []Item{posted(i, ""), bad(i, ""), bad(i, fmt.Sprintf("key %d", i)), posted(i, "")}
			}
			results[i] = held.Emit(context.Background(), tenant, items)
		})
	}
	eventually(t, 5*time.Second, "all are queued", func() bool { return held.waiting.Load() == 38*2+2*4 })
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- held.Run(ctx) }()
	all.Wait()
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	failed := 0
	for i, list := range results {
		for k, r := range list {
			isBad := (i == 7 || i == 31) && (k == 1 || k == 2)
			if isBad != (r.Err != nil) {
				t.Errorf("request %d, item %d: %+v", i, k, r)
			}
			if r.Err != nil {
				failed++
				if code(r.Err) != "internal" {
					t.Errorf("request %d, item %d: %s", i, k, code(r.Err))
				}
			}
		}
	}
	if failed != 4 {
		t.Errorf("%d items failed, want the 4 bad ones", failed)
	}
	if n := h.count("SELECT count(*) FROM events"); n != 38*2+2*2 {
		t.Errorf("%d events, want %d", n, 38*2+2*2)
	}
	if n := h.count("SELECT count(*) FROM idempotency_keys"); n != 38 {
		t.Errorf("%d keys are taken, want 38: one that failed may be used again", n)
	}
	h.balanced()
}

func TestAFullCommitterReturnsBusyAndKeepsWhatItAccepted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	held := New(Config{DB: h.db, Log: h.commit.log}) // stores nothing yet
	const each = 500
	results := make(chan []Result, 100)
	requests := 0
	for range maxWaitingEvents/each + 5 {
		items := make([]Item, each)
		for i := range items {
			items[i] = posted(i, "")
		}
		requests++
		go func() { results <- held.Emit(context.Background(), tenant, items) }()
	}
	for range 5 {
		for _, r := range <-results {
			if e := fault.As(r.Err); e == nil || e.Code != "busy" || e.RetryAfter != 1 || e.Kind != fault.Unavailable {
				t.Fatalf("%+v, want busy", r)
			}
		}
	}
	if n := held.waiting.Load(); n != maxWaitingEvents {
		t.Errorf("%d events wait, want %d", n, maxWaitingEvents)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	// The waiting requests have reached their time limit, or soon will. They are stored nevertheless while the database
	// responds.
	go func() { ran <- held.Run(ctx) }()
	stored := 0
	for range requests - 5 {
		for _, r := range <-results {
			if r.Err == nil {
				stored++
			} else if e := fault.As(r.Err); e == nil || e.Kind != fault.Unavailable {
				t.Fatalf("%+v", r)
			}
		}
	}
	cancel()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if n := h.count("SELECT count(*) FROM events"); n != stored {
		t.Errorf("%d events, %d were acknowledged", n, stored)
	}
	if stored == 0 || held.waiting.Load() != 0 || held.bytes.Load() != 0 {
		t.Errorf("%d stored; %d events and %d bytes still count", stored, held.waiting.Load(), held.bytes.Load())
	}
	if r := one(held, tenant, posted(1, "")); code(r.Err) != "busy" {
		t.Errorf("after the stop: %+v, want busy", r)
	}
}

func TestAStopStoresAcceptedRequests(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, nil)
	var acknowledged, refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				switch r := one(h.commit, tenant, posted(i, "")); {
				case r.Err == nil:
					acknowledged.Add(1)
				case code(r.Err) == "busy":
					refused.Add(1)
					return
				default:
					t.Error(r.Err)
					return
				}
			}
		})
	}
	eventually(t, 10*time.Second, "work is under way", func() bool { return acknowledged.Load() > 50 })
	h.stop()
	all.Wait()
	if n := h.count("SELECT count(*) FROM events"); int64(n) != acknowledged.Load() {
		t.Errorf("%d events, %d acknowledged", n, acknowledged.Load())
	}
	h.balanced()
}

func TestACanceledCallerBlocksNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ctx, cancel := context.WithCancel(t.Context())
	held := New(Config{DB: h.db, Log: h.commit.log})
	if _, err := held.routes.of(ctx, tenant); err != nil {
		t.Fatal(err)
	}
	done := make(chan []Result, 1)
	go func() { done <- held.Emit(ctx, tenant, []Item{posted(1, "key")}) }()
	eventually(t, 5*time.Second, "it is queued", func() bool { return held.waiting.Load() == 1 })
	cancel()
	if r := (<-done)[0]; code(r.Err) != "timeout" || !r.ID.IsZero() {
		t.Errorf("%+v", r)
	}
	run, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- held.Run(run) }()
	if r := one(held, tenant, posted(1, "key")); r.Err != nil || !r.Duplicate {
		t.Errorf("sent again: %+v, want the answer to the first", r)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// No worker has been there for so long that today has no partitions: the first event makes them.
func TestAnEventMakesItsDay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, nil)
	if r := one(h.commit, tenant, posted(1, "")); r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, key := range []string{"", "k"} {
		for _, table := range []string{"attempts", "deliveries", "events"} {
			if _, err := h.db.Pool().Exec(t.Context(), "SELECT posthorn.drop_partition($1, (now() AT TIME ZONE 'UTC')::date)", table); err != nil {
				t.Fatal(err)
			}
		}
		if r := one(h.commit, tenant, posted(2, key)); r.Err != nil || r.Deliveries != 1 {
			t.Errorf("%+v", r)
		}
		if n := h.count("SELECT count(*) FROM events"); n != 1 {
			t.Errorf("%d events are stored, want 1", n)
		}
	}
}

// Where the partitions can't be made, the response says that it passes.
func TestAnEventOfADayThatCannotBeMadeIsUnavailable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	it := posted(1, "")
	it.ID = id.New(time.Now().AddDate(1, 0, 0), [10]byte{1})
	if r := one(h.commit, tenant, it); code(r.Err) != "database_unavailable" {
		t.Errorf("%+v", r)
	}
}
