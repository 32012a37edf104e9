//go:build (e2e || soak) && unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/domain/id"
	"posthorn/tools/schematest"
)

// refusedWithin is how long a client waits at most to hear that its event can't be stored (SECURITY, "Faults"). A busy
// machine's own time comes on top.
const refusedWithin = 5*time.Second + 500*time.Millisecond

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// world is one installation of Posthorn with a tenant, its database, its receiver and its client.
type world struct {
	t        *testing.T
	environ  []string // names the database
	at       place    // of commands, and of processes that have no other
	sql      *pgxpool.Pool
	tenant   string
	key      string
	receiver *receiver
	launched map[string]int // processes by name

	webs atomic.Pointer[[]string] // URLs of those that take requests
	next atomic.Int64

	emitting sync.WaitGroup // calls of emitAll

	mu    sync.Mutex
	acks  map[string]string // event by idempotency key
	slow  time.Duration     // of the slowest answer that was a refusal
	codes map[int]int       // refusals by status; 0: no answer
}

// newWorld makes an installation on a database of its own, on the server that all tests share.
func newWorld(t *testing.T, answer func(*arrival) int) *world {
	t.Helper()
	url := schematest.Clone(t)
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + url, "POSTHORN_MASTER_KEY=" + masterKey}, answer)
	w.open(url)
	w.makeTenant()
	return w
}

func newWorldAt(t *testing.T, environ []string, answer func(*arrival) int) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newWorldOf(t, environ, newReceiver(t, l, answer))
}

func newWorldOf(t *testing.T, environ []string, r *receiver) *world {
	t.Helper()
	w := &world{
		t:        t,
		environ:  environ,
		receiver: r,
		launched: map[string]int{},
		acks:     map[string]string{},
		codes:    map[int]int{},
	}
	t.Cleanup(w.emitting.Wait) // senders outlive a test that fails, and must not report to it later
	return w
}

// open gives the test its own look into the database, as an operator has it.
func (w *world) open(url string) {
	w.t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg.MaxConns = 4
	cfg.ConnConfig.DialFunc = dial
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "SET search_path = posthorn; SET ROLE posthorn_console")
		return err
	}
	if w.sql, err = pgxpool.NewWithConfig(context.Background(), cfg); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.sql.Close)
}

func (w *world) makeTenant() {
	w.t.Helper()
	var made struct {
		Tenant string `json:"tenant_id"`
		Key    string `json:"api_key"`
	}
	command(w.t, w.environ, w.at, &made, "tenant", "create", "--name", "Acme", "--json")
	w.tenant, w.key = made.Tenant, made.Key
}

// launch starts a process of this installation. Its successors under the same name have a number, so that nobody takes
// the lanes of the dead for theirs.
func (w *world) launch(name string, args ...string) *process {
	w.t.Helper()
	return w.launchAt(w.at, nil, name, args...)
}

// launchAt starts a process at a place, with further variables.
func (w *world) launchAt(at place, environ []string, name string, args ...string) *process {
	w.t.Helper()
	name, _, _ = strings.Cut(name, "#")
	w.launched[name]++
	if n := w.launched[name]; n > 1 {
		name = fmt.Sprintf("%s#%d", name, n)
	}
	return launch(w.t, name, append(append([]string(nil), w.environ...), environ...), at, args...)
}

// serveAt tells the client where to send requests.
func (w *world) serveAt(processes ...*process) {
	urls := make([]string, len(processes))
	for i, p := range processes {
		urls[i] = p.url
	}
	w.webs.Store(&urls)
}

func (w *world) web() string {
	urls := *w.webs.Load()
	return urls[int(w.next.Add(1))%len(urls)]
}

// client gives up on an answer only when it is later than any promise.
var client = &http.Client{
	Timeout: 30 * time.Second,
	Transport: &http.Transport{
		DialContext:         dial,
		MaxIdleConnsPerHost: 64,
	},
}

// call makes a request of the API. The error says that no whole answer came.
func (w *world) call(method, url, body, idempotencyKey string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.key)
	req.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// manage makes a request that must succeed, and reads its answer where one is wanted.
func (w *world) manage(method, path string, body, into any) {
	w.t.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		text = string(b)
	}
	status, answer, err := w.call(method, w.web()+"/api/v1"+path, text, "")
	if err != nil || status/100 != 2 {
		w.t.Fatalf("%s %s %s: %d %s %v", method, path, text, status, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			w.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
}

type settings = map[string]any

// endpoint makes an endpoint at a path of the receiver and waits until it is active. A worker must run.
func (w *world) endpoint(path string, change settings) (id string) {
	w.t.Helper()
	s := settings{"url": w.receiver.url + path, "verification": "simple", "rate_limit": nil}
	for name, value := range change {
		s[name] = value
	}
	var made struct{ ID, Secret string }
	w.manage(http.MethodPost, "/endpoints", s, &made)
	w.receiver.trust(path, made.Secret)
	eventually(w.t, patience, "endpoint "+path+" is active", func() bool {
		var now struct{ Status string }
		w.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
		return now.Status == "active"
	})
	return made.ID
}

// emission is one event that a client wants to get rid of.
type emission struct {
	Type  string  `json:"type"`
	Key   string  `json:"key,omitempty"`
	Data  payload `json:"data"`
	idemp string  // idempotency key
}

func event(typ string, n int) emission {
	return emission{Type: typ, Data: payload{N: n}, idemp: fmt.Sprintf("%s-%d", typ, n)}
}

// emit sends an event until it is acknowledged, under one idempotency key, as a client should. Any answer but a 202, a
// 503 or none at all is an error.
func (w *world) emit(e emission) (id string) {
	body, err := json.Marshal(e)
	if err != nil {
		w.t.Error(err)
		return ""
	}
	for started := startWatch(); started.passed() < patience; time.Sleep(30 * time.Millisecond) {
		if w.t.Context().Err() != nil {
			return "" // the test has ended
		}
		asked := startWatch()
		status, answer, err := w.call(http.MethodPost, w.web()+"/api/v1/events", string(body), e.idemp)
		if err != nil {
			status = 0
		}
		if status != http.StatusAccepted {
			w.refused(status, answer, asked.passed())
			continue
		}
		var accepted struct{ ID string }
		if err := json.Unmarshal(answer, &accepted); err != nil || accepted.ID == "" {
			w.t.Errorf("event %s: accepted with %s", e.idemp, answer)
			return ""
		}
		w.acknowledged(e.idemp, accepted.ID)
		return accepted.ID
	}
	w.t.Errorf("event %s was never accepted", e.idemp)
	return ""
}

func (w *world) acknowledged(key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first, known := w.acks[key]; known && first != id {
		w.t.Errorf("key %s was acknowledged as %s and as %s", key, first, id)
	}
	w.acks[key] = id
}

func (w *world) refused(status int, answer []byte, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes[status]++
	if status != 0 {
		w.slow = max(w.slow, took)
		if status != http.StatusServiceUnavailable || !bytes.Contains(answer, []byte(`"code":`)) {
			w.t.Errorf("an event was answered %d %s", status, answer)
		}
	}
}

func (w *world) refusals(status int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[status]
}

// acknowledgements is a copy of what the client was told: event by idempotency key.
func (w *world) acknowledgements() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]string, len(w.acks))
	for k, v := range w.acks {
		all[k] = v
	}
	return all
}

// emitAll sends events at a rate (0: as fast as it goes) over so many connections and returns when all are
// acknowledged.
func (w *world) emitAll(events []emission, perSecond, connections int) {
	w.emitting.Add(1)
	defer w.emitting.Done()
	queue := make(chan emission)
	var senders sync.WaitGroup
	for range connections {
		senders.Go(func() {
			for e := range queue {
				w.emit(e)
			}
		})
	}
	started := time.Now()
	for i, e := range events {
		if w.t.Context().Err() != nil {
			break // the test has ended
		}
		if perSecond > 0 {
			time.Sleep(time.Until(started.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		}
		queue <- e
	}
	close(queue)
	senders.Wait()
}

// ask reads one value from the database.
func (w *world) ask(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.sql.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// settled waits until so many deliveries have come to their end and none waits.
func (w *world) settled(deliveries int, within time.Duration) time.Duration {
	w.t.Helper()
	return w.settledBut(0, deliveries, within)
}

// settledBut is settled where so many deliveries are expected to wait for a retry that is far away.
func (w *world) settledBut(retrying, deliveries int, within time.Duration) time.Duration {
	w.t.Helper()
	started := startWatch()
	for {
		var ended, waiting, scheduled int
		// The database may be the one that is away.
		err := w.sql.QueryRow(context.Background(), "SELECT (SELECT count(*) FROM deliveries WHERE status >= 2), count(*), count(*) FILTER (WHERE state = 1) FROM queue").Scan(&ended, &waiting, &scheduled)
		if err == nil && ended >= deliveries && waiting == retrying && scheduled == retrying {
			return started.passed()
		}
		if started.passed() > within {
			w.t.Fatalf("not settled within %v: %d of %d deliveries have ended, %d wait, the database says %v; %s", within, ended, deliveries, waiting, err, w.lanes())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// lanes describes who owns what, for a test that has failed.
func (w *world) lanes() string {
	var text string
	if err := w.sql.QueryRow(context.Background(), `SELECT coalesce(string_agg(format('%s: %s lanes, %s rows (%s)', name, lanes, n, states), '; '), 'no lane has rows') FROM (
		SELECT coalesce(w.name || CASE WHEN w.dead THEN ' (dead)' ELSE '' END, 'nobody') AS name, count(DISTINCT l.endpoint_id) AS lanes, count(q.seq) AS n,
			string_agg(DISTINCT q.state::text, ',') AS states
		FROM queue q JOIN lanes l USING (endpoint_id) LEFT JOIN workers w ON w.id = l.owner GROUP BY 1) x`).Scan(&text); err != nil {
		return err.Error()
	}
	return text
}

// owns reports whether a process owns the lane of a path that has work, and is not taken for dead. An empty path: any
// lane.
func (w *world) owns(p *process, path string) bool {
	w.t.Helper()
	return w.ask(`SELECT count(*) FROM lanes l JOIN workers o ON o.id = l.owner JOIN endpoints p ON p.id = l.endpoint_id
		WHERE NOT o.dead AND o.name = $1 AND p.url LIKE '%' || $2 AND EXISTS (SELECT FROM queue q WHERE q.endpoint_id = l.endpoint_id)`, p.name, path) > 0
}

// totals is what the books say, the entries that are not folded yet included.
type totals struct{ accepted, delivered, failed, canceled int }

func (w *world) totals() (b totals) {
	w.t.Helper()
	if err := w.sql.QueryRow(context.Background(), `SELECT coalesce(sum(a), 0)::bigint, coalesce(sum(d), 0)::bigint, coalesce(sum(f), 0)::bigint, coalesce(sum(c), 0)::bigint FROM (
		SELECT accepted AS a, delivered AS d, failed AS f, canceled AS c FROM books
		UNION ALL
		SELECT u.a, u.d, u.f, u.c FROM ledger l CROSS JOIN LATERAL ROWS FROM (unnest(l.accepted), unnest(l.delivered), unnest(l.failed), unnest(l.canceled)) AS u(a, d, f, c)) x`).
		Scan(&b.accepted, &b.delivered, &b.failed, &b.canceled); err != nil {
		w.t.Fatal(err)
	}
	return b
}

// balanced checks that what clients were told, the deliveries and the books are one and the same. perEvent is the
// fan-out.
func (w *world) balanced(perEvent int) {
	w.t.Helper()
	acks := w.acknowledgements()
	if n := w.ask("SELECT count(*) FROM events"); n != len(acks) {
		w.t.Errorf("%d events are stored, %d were acknowledged", n, len(acks))
	}
	if n := w.ask("SELECT count(*) FROM (SELECT e.id FROM events e LEFT JOIN deliveries d ON d.event_id = e.id GROUP BY e.id HAVING count(d.id) <> $1) x", perEvent); n != 0 {
		w.t.Errorf("%d events do not have %d deliveries", n, perEvent)
	}
	table := totals{
		accepted:  w.ask("SELECT count(*) FROM deliveries"),
		delivered: w.ask("SELECT count(*) FROM deliveries WHERE status = 2"),
		failed:    w.ask("SELECT count(*) FROM deliveries WHERE status = 3"),
		canceled:  w.ask("SELECT count(*) FROM deliveries WHERE status = 4"),
	}
	if b := w.totals(); b != table || b.accepted != len(acks)*perEvent {
		w.t.Errorf("the books say %+v, the deliveries %+v, the clients %d", b, table, len(acks)*perEvent)
	}
	if n := w.ask("SELECT count(*) FROM dead_letters"); n != table.failed {
		w.t.Errorf("%d dead letters for %d failed deliveries", n, table.failed)
	}
}

// everyPath is for worlds in which every event goes to the same endpoints.
func everyPath(paths ...string) func(string) []string {
	return func(string) []string { return paths }
}

// eventID is the outer form of an event's id as the database shows it.
func eventID(t *testing.T, text string) string {
	t.Helper()
	u, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id.Event.Format(id.UUID(u))
}
