//go:build (e2e || soak) && unix

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/id"
)

// TestNoKillLeavesALargeEventWithoutItsData kills the server again and again under clients that emit large events and
// retry. Whatever is stored has its data, what was acknowledged arrives, and objects without an event are deleted.
func TestNoKillLeavesALargeEventWithoutItsData(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	w := newWorld(t, func(*arrival) int { return 200 })
	w.environ = append(w.environ, "POSTHORN_HISTORY_URL=file://"+folder, "POSTHORN_MAX_LARGE_PAYLOAD=1000000")
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)
	w.endpoint("/one", settings{"large_payloads": "link", "max_in_flight": 20})
	fill := strings.Repeat("x", 400_000)
	const clients, each = 4, 15
	var emitting sync.WaitGroup
	var mu sync.Mutex
	acked := 0
	for c := range clients {
		emitting.Go(func() {
			for i := range each {
				key := fmt.Sprintf("%d-%d", c, i)
				body := fmt.Sprintf(`{"type":"order.completed","data":{"n":%q,"fill":%q}}`, key, fill)
				for started := startWatch(); started.passed() < patience; time.Sleep(20 * time.Millisecond) {
					if status, _, err := w.call(http.MethodPost, w.web()+"/api/v1/events", body, key); err == nil && status == http.StatusAccepted {
						mu.Lock()
						acked++
						mu.Unlock()
						break
					}
				}
			}
		})
	}
	for range 5 {
		mu.Lock()
		before := acked
		mu.Unlock()
		eventually(t, patience, "events flow", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return acked >= min(before+5, clients*each)
		})
		serve.kill()
		serve = w.launch("serve", "serve").ready()
		w.serveAt(serve)
	}
	emitting.Wait()
	if acked != clients*each {
		t.Fatalf("%d events were acknowledged", acked)
	}
	w.settled(acked, time.Minute)
	rows, err := w.sql.Query(t.Context(), "SELECT tenant_id, id, data FROM events")
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{}
	for rows.Next() {
		var tenant, event [16]byte
		var data []byte
		if err := rows.Scan(&tenant, &event, &data); err != nil {
			t.Fatal(err)
		}
		stored[id.Tenant.Format(tenant)+"/"+id.Event.Format(event)] = data
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(stored) != acked {
		t.Errorf("%d events are stored, and %d were acknowledged", len(stored), acked)
	}
	for name, data := range stored {
		var reference struct{ SHA256 string }
		text, err := os.ReadFile(filepath.Join(folder, "payloads", name))
		sum := sha256.Sum256(text)
		if json.Unmarshal(data, &reference) != nil || err != nil || hex.EncodeToString(sum[:]) != reference.SHA256 {
			t.Errorf("the event %s refers to %s: %d bytes, %v", name, data, len(text), err)
		}
	}
	objects := func() int {
		found, _ := filepath.Glob(filepath.Join(folder, "payloads", "*", "evt_*"))
		return len(found)
	}
	t.Logf("%d objects of %d events before the job", objects(), len(stored))
	if _, err := w.sql.Exec(t.Context(), "UPDATE large_payloads SET check_at = now()"); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "objects without an event are deleted", func() bool { return objects() == len(stored) })
}
