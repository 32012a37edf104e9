package api_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/maintenance"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/tools/schematest"
)

// exportedEvents have a megabyte of data each: more than a connection with small buffers holds, and more than one
// statement reads.
const exportedEvents = 8

// exportWorld is a server behind a connection, with a database whose line can be cut, and a tenant with more data
// than all buffers on the way hold.
type exportWorld struct {
	*world
	line   *line
	tenant tenant
	server *httptest.Server
	client *http.Client
}

func newExportWorld(t *testing.T) *exportWorld {
	t.Helper()
	database := schematest.Clone(t)
	l := newLine(t, database, func(sql string) string { return sql })
	w := &exportWorld{world: startWorld(t, t.Cleanup, database, l.url), line: l}
	w.platform = w.MakeKey(accounts.NewKey{Name: "platform", Scopes: access.PlatformScopes()})
	w.tenant = w.world.tenant("Acme")
	w.events(exportedEvents, `'"' || n || b.big || '"'`)
	w.server = httptest.NewUnstartedServer(w.engine)
	w.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
		return ctx
	}
	w.server.Start()
	t.Cleanup(w.server.Close)
	w.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(256 << 10)
			}
			return c, err
		},
	}}
	return w
}

// events stores events. Their data is an expression of n and b.big, a text that hardly compresses.
func (w *exportWorld) events(n int, data string) {
	w.t.Helper()
	w.SQL(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
		SELECT $1, posthorn.created_at(x.u), x.u, 'a', convert_to(`+data+`, 'UTF8'), 1 FROM generate_series(1, $2::int) n, (SELECT string_agg(md5(m::text), '') AS big FROM generate_series(1, 30000) m) b,
			LATERAL (SELECT overlay(posthorn.first_id(clock_timestamp())::text placing lpad(to_hex(n), 12, '0') from 25)::uuid AS u) x`, w.tenant.uuid.String(), n)
}

// begin requests an export and reads its first bytes.
func (w *exportWorld) begin() (*http.Response, []byte) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.server.URL+"/api/v1/tenants/"+w.tenant.id+"/export", strings.NewReader(`{"reason":"they move out"}`))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.platform)
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	first := make([]byte, 64<<10)
	if _, err := io.ReadFull(res.Body, first); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatal(res.Status, err)
	}
	return res, first
}

// unended reads the rest of an export, which must not look complete.
func (w *exportWorld) unended(res *http.Response, first []byte) {
	w.t.Helper()
	rest, err := io.ReadAll(res.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		w.t.Errorf("the answer ends with %v", err)
	}
	file := append(first, rest...)
	if _, err := zip.NewReader(bytes.NewReader(file), int64(len(file))); err == nil || bytes.Contains(file, []byte("manifest.json")) {
		w.t.Errorf("%d bytes are taken for a whole archive", len(file))
	}
}

// left waits until the server and the database have nothing left of exports. It checks that the given number started
// and none was sent.
func (w *exportWorld) left(started int) {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		open := one[int](w.world, `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND state <> 'idle'`)
		if open == 0 && !bytes.Contains(stacks, []byte("export).write")) {
			break
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d transactions are open; goroutines:\n%s", open, stacks)
		}
		time.Sleep(20 * time.Millisecond)
	}
	logged := "SELECT count(*)::int FROM audit_log WHERE action = $1"
	if n := one[int](w.world, logged, "tenant.exported"); n != started {
		w.t.Errorf("the audit log knows of %d exports, want %d", n, started)
	}
	if n := one[int](w.world, logged, "tenant.export_sent"); n != 0 {
		w.t.Errorf("%d broken exports count as sent", n)
	}
	var err error
	for range 10 { // a connection that was cut is noticed when it is used
		err = maintenance.DeleteExported(w.t.Context(), w.db, w.tenant.uuid, "", db.Author{Kind: "command"})
		if e := fault.As(err); e == nil || e.Kind != fault.Unavailable {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "Export it first") {
		w.t.Errorf("after a broken export the tenant can be deleted: %v", err)
	}
}

// whole reads an export to its end.
func (w *exportWorld) whole() {
	w.t.Helper()
	res, first := w.begin()
	rest, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if files := unpacked(w.t, append(first, rest...)); len(files["manifest.json"]) != 1 || len(files["events.ndjson"]) != exportedEvents {
		w.t.Errorf("%d events", len(files["events.ndjson"]))
	}
	if n := one[int](w.world, "SELECT count(*)::int FROM audit_log WHERE action = 'tenant.export_sent'"); n != 1 {
		w.t.Errorf("%d exports count as sent", n)
	}
}

// More exports than can run concurrently: each must release its slot.
func TestAnExportWhoseReaderLeavesIsNotSent(t *testing.T) {
	t.Parallel()
	w := newExportWorld(t)
	for n := 1; n <= 3; n++ {
		res, _ := w.begin()
		_ = res.Body.Close()
		w.left(n)
	}
	w.whole()
}

func TestAThirdConcurrentExportIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	w := newExportWorld(t)
	one, _ := w.begin()
	_, _ = w.begin()
	ask := func() (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.server.URL+"/api/v1/tenants/"+w.tenant.id+"/export", strings.NewReader(`{"reason":"they move out"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.platform)
		res, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		return res, string(body)
	}
	if res, body := ask(); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, "exports_limit") {
		t.Errorf("a third export: %d %s", res.StatusCode, body)
	}
	_ = one.Body.Close()
	deadline := time.Now().Add(20 * time.Second)
	for res, _ := ask(); res.StatusCode != http.StatusOK; res, _ = ask() {
		if time.Now().After(deadline) {
			t.Fatal("no export starts after one of two has ended")
		}
	}
}

func TestAnExportWithoutItsDatabaseBreaksOff(t *testing.T) {
	t.Parallel()
	w := newExportWorld(t)
	res, first := w.begin()
	w.line.cut(false)
	w.unended(res, first)
	w.line.fix()
	w.left(1)
}

func TestAnExportOfARowThatCannotBeReadBreaksOff(t *testing.T) {
	t.Parallel()
	w := newExportWorld(t)
	w.events(1, `E'{"a":\n'`)
	res, first := w.begin()
	w.unended(res, first)
	w.left(1)
}

// What another operator deletes during the export would be missing in a file that looks complete.
func TestAnExportOfATenantThatIsDeletedMeanwhileBreaksOff(t *testing.T) {
	t.Parallel()
	w := newExportWorld(t)
	res, first := w.begin()
	if err := maintenance.DeleteTenant(t.Context(), w.db, w.tenant.uuid, "", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	w.unended(res, first)
	if n := one[int](w.world, "SELECT count(*)::int FROM audit_log WHERE action = 'tenant.export_sent'"); n != 0 {
		t.Error("it counts as sent")
	}
}

// An error before the first byte is a normal error response.
func TestAnExportThatCannotBeginIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.active(acme, map[string]any{"custom_headers": map[string]string{"Authorization": "x"}, "sensitive_headers": []string{"Authorization"}})
	w.SQL("UPDATE endpoints SET custom_headers = '\\x00'")
	req := httptest.NewRequestWithContext(t.Context(), "POST", "/api/v1/tenants/"+acme.id+"/export", nil)
	req.Header.Set("Authorization", "Bearer "+w.platform)
	res := httptest.NewRecorder()
	w.engine.ServeHTTP(res, req)
	if res.Code != http.StatusInternalServerError || res.Header().Get("Content-Disposition") != "" {
		t.Errorf("%d %v", res.Code, res.Header())
	}
	if n := one[int](w, "SELECT count(*)::int FROM audit_log WHERE action = 'tenant.export_sent'"); n != 0 {
		t.Errorf("%d count as sent", n)
	}
}
