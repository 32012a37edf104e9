package api_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/handlers"
	"posthorn/handlers/api"
	"posthorn/handlers/readers"
	"posthorn/tools/need"
	"posthorn/tools/webtest"
)

// The mutation check of the isolation probe. A tenant is isolated twice: by a condition in every query and by
// row-level security. Each must suffice alone. A proxy between the program and PostgreSQL rewrites queries as they
// pass.

// inCondition finds the tenant in a condition: an argument, one that the console leaves out, or a column of arguments.
var inCondition = regexp.MustCompile(`tenant_id = (?:@tenant_id|sqlc\.narg\('tenant(?:_id)?'\)|u\.tenant_id)`)

// tenantQueries names the queries that run as a tenant and have its id in a condition.
func tenantQueries(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, noun := range []string{"keys", "tenants", "events", "event_types", "audit", "endpoints", "secrets", "deliveries", "verifications", "lanes", "bulk", "analytics", "listeners", "outbox"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "queries", noun+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			name, _, _ := strings.Cut(query, " ")
			if inCondition.MatchString(query) {
				names[name] = true
			}
		}
	}
	if len(names) < 30 {
		t.Fatalf("%d queries", len(names))
	}
	return names
}

var ofTenant = regexp.MustCompile(`((?:\w+\.)?tenant_id = (?:\$\d+|u\.tenant_id))`)

// withoutTenant removes the tenant from the conditions of some queries.
func withoutTenant(wanted func(name string) bool) func(sql string) string {
	return func(sql string) string {
		rest, named := strings.CutPrefix(sql, "-- name: ")
		name, _, _ := strings.Cut(rest, " ")
		if !named || !wanted(name) {
			return sql
		}
		return ofTenant.ReplaceAllString(sql, "($1 OR true)")
	}
}

// line is a proxy between the program and its database. It rewrites prepared statements and can be cut.
type line struct {
	url     string
	to      *pgconn.Config
	rewrite func(string) string

	mu    sync.Mutex
	state lineState
	conns map[net.Conn]struct{}
}

type lineState int

const (
	whole  lineState = iota
	closed           // connections break, new ones are rejected
	mute             // connections stay, and nothing passes
)

// newLine starts a proxy to a database.
func newLine(t *testing.T, database string, rewrite func(sql string) string) *line {
	t.Helper()
	to, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{to: to, rewrite: rewrite, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut(false)
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.relay(client)
		}
	}()
	u := url.URL{
		Scheme: "postgres",
		User:   url.UserPassword(to.User, to.Password),
		Host:   listener.Addr().String(),
		Path: "/" +
			to.Database,
		RawQuery: "sslmode=disable",
	}
	l.url = u.String()
	return l
}

// cut breaks the open connections, or blocks them in silence.
func (l *line) cut(silently bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = mute
	if silently {
		return
	}
	l.state = closed
	for c := range l.conns {
		_ = c.Close()
	}
}

// fix accepts new connections again. Blocked ones are broken, because they missed messages.
func (l *line) fix() {
	l.cut(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = whole
}

// passes reports whether messages pass now.
func (l *line) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == whole
}

// hold registers a connection. It is false when the line is closed.
func (l *line) hold(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return l.state != closed
}

func (l *line) relay(client net.Conn) {
	defer client.Close()
	if !l.hold(client) {
		return
	}
	network, address := pgconn.NetworkAddress(l.to.Host, l.to.Port)
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	if startup := message(client, 0); startup == nil || l.send(server, startup) != nil {
		return
	}
	for {
		m := message(client, 1)
		if m == nil {
			return
		}
		if m[0] == 'P' {
			m = rewriteParse(m, l.rewrite)
		}
		if l.send(server, m) != nil {
			return
		}
	}
}

// send forwards a message, or drops it.
func (l *line) send(to io.Writer, m []byte) error {
	if !l.passes() {
		return nil
	}
	_, err := to.Write(m)
	return err
}

// message reads one message of the protocol: a type (except for the first), a length that includes itself, a body.
func message(from io.Reader, kind int) []byte {
	head := make([]byte, kind+4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil
	}
	m := make([]byte, kind+int(binary.BigEndian.Uint32(head[kind:])))
	copy(m, head)
	if _, err := io.ReadFull(from, m[kind+4:]); err != nil {
		return nil
	}
	return m
}

// rewriteParse changes the statement of a Parse message: name, statement, types.
func rewriteParse(m []byte, rewrite func(string) string) []byte {
	name, rest, _ := strings.Cut(string(m[5:]), "\x00")
	sql, types, _ := strings.Cut(rest, "\x00")
	body := name + "\x00" + rewrite(sql) + "\x00" + types
	out := binary.BigEndian.AppendUint32([]byte{'P'}, uint32(len(body)+4))
	return append(out, body...)
}

// openPolicies lets the tenant role see every row of the tables.
func (w *world) openPolicies() {
	w.t.Helper()
	w.ownerConnection(func(c *pgx.Conn) error {
		for _, table := range guarded(w.t, c) {
			if table == "ledger" {
				continue
			}
			for _, statement := range []string{"DROP POLICY tenant ON %s", "CREATE POLICY tenant ON %s TO posthorn_tenant USING (true) WITH CHECK (true)"} {
				if _, err := c.Exec(w.t.Context(), fmt.Sprintf(statement, "posthorn."+table)); err != nil {
					return fmt.Errorf("%s: %w", table, err)
				}
			}
		}
		return nil
	})
}

func (w *world) ownerConnection(do func(*pgx.Conn) error) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.t.Context()) }()
	if err := do(conn); err != nil {
		w.t.Fatal(err)
	}
}

// mutant probes the routes below a path in a world where some queries lack the tenant, and optionally the policies
// are open.
func mutant(t *testing.T, wanted func(string) bool, policies bool, below string) []string {
	t.Helper()
	database, s := newScene(t)
	if !policies {
		(&world{World: &webtest.World{T: t, URL: database}, t: t, url: database}).openPolicies()
	}
	w := startWorld(t, t.Cleanup, database, newLine(t, database, withoutTenant(wanted)).url)
	p := &prober{w: w, s: s, quick: true}
	p.run(slices.DeleteFunc(api.Routes(api.Deps{}, readers.Routes), func(r handlers.Route) bool {
		return !strings.HasPrefix(r.Path, "/api/v1"+
			below)
	}))
	return p.violations
}

func none(string) bool { return false }

func TestEachOfTheTwoWallsBetweenTenantsHoldsAlone(t *testing.T) {
	t.Parallel()
	queries := tenantQueries(t)
	tenants := func(name string) bool { return queries[name] }
	for name, c := range map[string]struct {
		without  func(string) bool
		policies bool
		green    bool
	}{
		"no query names its tenant, policies stand": {tenants, true, true},
		"every query names its tenant, no policies": {none, false, true},
		"neither": {tenants, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			violations := mutant(t, c.without, c.policies, "")
			if (len(violations) == 0) != c.green {
				t.Errorf("%d violations: %q", len(violations), violations)
			}
		})
	}
}

// gates are the queries that alone decide whether an object belongs to the tenant, with their files. The statements
// after them name the tenant again, so a mistake in those shows nothing by itself.
var gates = map[string]string{
	"GetEvent":        "/events",
	"EventExists":     "/events",
	"GetEventType":    "/event-types",
	"DeleteEventType": "/event-types",
	"ListEventTypes":  "/event-types",
	"GetEndpoint":     "/endpoints",
	"LockEndpoint":    "/endpoints",
	"ListEndpoints":   "/endpoints",
	"ReadDeliveries":  "/deliveries",
	"GetKey":          "/keys",
	"ListKeys":        "/keys",
	"ScanAudit":       "/audit-log",
	"ListRejected":    "/outbox",
	"RetryRejected":   "/outbox",
	"DiscardRejected": "/outbox",
}

func TestTheProbeSeesAGateThatForgetsItsTenant(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		need.Missing(t, "the time", "Without -short a probe is made for each query.")
	}
	queries := tenantQueries(t)
	for name, below := range gates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !queries[name] {
				t.Fatal("there is no such query")
			}
			if violations := mutant(t, func(n string) bool { return n == name }, false, below); len(violations) == 0 {
				t.Errorf("%s forgot its tenant and nothing was seen", name)
			}
		})
	}
}
