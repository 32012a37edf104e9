//go:build soak && unix

package e2e

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/domain/id"
	"posthorn/tools/need"
)

// history writes deliveries of the last days, with their events and an attempt each, as if they had been delivered.
func (w *world) history(days, perDay int) {
	w.t.Helper()
	tenant, err := id.Tenant.Parse(w.tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	w.asOwner(func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(context.Background(), "SELECT posthorn.make_partitions(current_date - $1::int, current_date)", days)
		return err
	})
	const rows = ` FROM (SELECT posthorn.created_at(x.u) AS at, x.u FROM generate_series(1, $2::int) d, generate_series(1, $3::int) n,
		LATERAL (SELECT overlay(posthorn.first_id(now() - make_interval(days => d, secs => n * 0.001))::text placing lpad(to_hex(n), 12, '0') from 25)::uuid AS u) x) r`
	for _, insert := range []string{
		`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
			SELECT $1, r.at, r.u, 'order.paid', convert_to('{"order":"' || r.u || '","note":"' || repeat('x', 100) || '"}', 'UTF8'), 1` + rows,
		`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, attempts, last_status, settled_at)
			SELECT $1, r.at, r.u, r.u, r.u, 'order.paid', 2, 1, 200, r.at + interval '1 second'` + rows,
		`INSERT INTO attempts (tenant_id, created_at, id, delivery_id, endpoint_id, number, status, failure, dns_us, connect_us, tls_us, wait_us, read_us, total_us,
				url, format, signature, response_headers, response_excerpt)
			SELECT $1, r.at, r.u, r.u, r.u, 1, 200, 0, 1, 1, 1, 1, 1, 5, 'https://hooks.example.com/in', 'standard', 'v1,x', 'Content-Type: text/plain', convert_to(repeat('ok ', 50), 'UTF8')` + rows,
	} {
		w.exec(insert, [16]byte(tenant), days, perDay)
	}
}

// TestALongHistoryIsExportedInBoundedMemory: however long it is, neither the process nor its temporary folder grows
// with it.
func TestALongHistoryIsExportedInBoundedMemory(t *testing.T) {
	t.Parallel()
	need.Linux(t)
	const days, perDay, growth = 5, 40_000, 64 << 20
	w := newWorld(t, nil)
	dir := t.TempDir()
	web := w.launchAt(w.at, []string{"TMPDIR=" + dir}, "web", "web").ready()
	w.serveAt(web)
	w.history(days, perDay)
	var made struct {
		Key string `json:"api_key"`
	}
	command(t, w.environ, w.at, &made, "key", "create", "--platform", "--name", "export", "--scopes", "tenants:write", "--json")
	before, most, done := resident(t, web.cmd.Process.Pid), int64(0), make(chan int64)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			most = max(most, resident(t, web.cmd.Process.Pid))
			time.Sleep(20 * time.Millisecond)
		}
		done <- most
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.web()+"/api/v1/tenants/"+w.tenant+"/export", strings.NewReader(`{"reason":"they move out"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+made.Key)
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "export.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, err := io.Copy(file, res.Body)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	cancel()
	most = <-done
	t.Logf("%d deliveries: %d bytes in %s; resident %d MiB before, %d MiB at most", days*perDay, size, took.Round(time.Millisecond), before>>20, most>>20)
	if most-before > growth {
		t.Errorf("the process grew by %d MiB", (most-before)>>20)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("in the temporary folder there are %v %v", left, err)
	}
	archive, err := zip.NewReader(file, size)
	if err != nil {
		t.Fatal(err)
	}
	last, err := archive.Open("manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Lines map[string]int }
	if err := json.NewDecoder(last).Decode(&manifest); err != nil || manifest.Lines["events.ndjson"] != days*perDay ||
		manifest.Lines["deliveries.ndjson"] != days*perDay {
		t.Errorf("%v %v", manifest, err)
	}
}
