//go:build (e2e || soak) && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// TestThePlatformHearsOfItsTenantsByWebhook follows what befalls a tenant's endpoints to an endpoint of the
// platform's own tenant: each event arrives, once, signed as any other (the receiver verifies all), and says whom it
// is about.
func TestThePlatformHearsOfItsTenantsByWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	received := map[string][]accounts.Operational{} // by type
	var well atomic.Bool
	w := newWorld(t, func(a *arrival) int {
		switch a.path {
		case "/gone":
			return http.StatusGone
		case "/rejects":
			return http.StatusUnprocessableEntity
		case "/refuses":
			if !well.Load() {
				return http.StatusUnauthorized
			}
		case "/platform":
			var o accounts.Operational
			if err := json.Unmarshal(a.text, &o); err != nil {
				a.r.t.Errorf("%s holds %s", a.typ, a.text)
			}
			mu.Lock()
			defer mu.Unlock()
			received[a.typ] = append(received[a.typ], o)
		}
		return http.StatusOK
	})
	w.serveAt(w.launch("web", "web").ready())
	w.launch("worker", "worker").ready()
	var own struct {
		Tenant string `json:"tenant_id"`
		Key    string `json:"api_key"`
	}
	command(t, w.environ, place{}, &own, "platform", "tenant", "--json")
	tenants := w.key
	w.key = own.Key
	w.endpoint("/platform", nil)
	w.key = tenants

	w.manage(http.MethodPatch, "/tenant", settings{"health_policy": settings{"auth_minutes": 0}}, nil) // no rejected delivery is retried
	ids := map[string]string{}
	for _, path := range []string{"gone", "rejects", "refuses", "rotated"} {
		ids[path] = w.endpoint("/"+path, settings{"event_types": []string{"to." + path}, "max_in_flight": 1})
	}
	const refused = 6 // of ten that would disable it: a warning comes at five
	w.emit(event("to.gone", 0))
	w.emit(event("to.rejects", 0))
	w.manage(http.MethodPost, "/endpoints/"+ids["rotated"]+"/rotate-secret", settings{}, nil)
	for i := range refused {
		w.emit(event("to.refuses", i))
	}
	eventually(t, patience, "the refusals are on record", func() bool {
		return w.ask("SELECT count(*) FROM deliveries WHERE status = 3") == refused+2 && w.ask("SELECT count(*) FROM notices WHERE kind = 'endpoint.warning'") == 1
	})
	well.Store(true)
	w.emit(event("to.refuses", refused))

	wants := map[notice.Kind]map[string]int{ // how many, by endpoint
		notice.EndpointDisabled:  {"gone": 1},
		notice.EndpointWarning:   {"refuses": 1},
		notice.EndpointRecovered: {"refuses": 1},
		notice.SecretRotated:     {"rotated": 1},
		notice.DeliveryFailed:    {"gone": 1, "rejects": 1, "refuses": refused},
	}
	total := 0
	for _, by := range wants {
		for _, n := range by {
			total += n
		}
	}
	count := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, list := range received {
			n += len(list)
		}
		return n
	}
	eventually(t, patience, fmt.Sprintf("%d events have arrived", total), func() bool { return count() >= total })
	// Nothing is left that could become another.
	eventually(t, patience, "all is told", func() bool {
		return w.ask("SELECT (SELECT count(*) FROM notices WHERE relayed_at IS NULL) + (SELECT count(*) FROM dead_letters WHERE NOT announced) + (SELECT count(*) FROM outbox) + (SELECT count(*) FROM queue)") == 0
	})
	mu.Lock()
	defer mu.Unlock()
	got := map[string]int{}
	for kind, list := range received {
		for _, o := range list {
			got[kind+" "+o.Endpoint]++
			var about struct{ Endpoint string }
			if err := json.Unmarshal(o.Details, &about); err != nil || o.Tenant != w.tenant ||
				about.Endpoint != o.Endpoint {
				t.Errorf("%s: %+v %s", kind, o, o.Details)
			}
			if noticeID, err := id.Notice.Parse(o.Notice); (err != nil ||
				time.Since(noticeID.Time()) > time.Hour) != (kind == string(notice.DeliveryFailed)) {
				t.Errorf("%s names the notice %q", kind, o.Notice)
			}
		}
	}
	for kind, by := range wants {
		for path, n := range by {
			what := string(kind) + " " + ids[path]
			if got[what] != n {
				t.Errorf("%d times %s of /%s, want %d", got[what], kind, path, n)
			}
			delete(got, what)
		}
	}
	for what, n := range got {
		t.Errorf("%d times %s, which did not happen", n, what)
	}
}
