package links_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/emit"
	"posthorn/domain/event"
	"posthorn/handlers"
	"posthorn/handlers/links"
	"posthorn/tools/webtest"
)

// shelf is an object storage that a test can damage.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (s *shelf) Put(_ context.Context, name string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = append([]byte{}, body...)
	return nil
}

func (s *shelf) Get(_ context.Context, name string, _ int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if body, ok := s.objects[name]; ok {
		return body, nil
	}
	return nil, errors.New("no object " + name)
}

// TestALinkToLargeDataOpensItOrSaysThatItCannot: never other bytes than were emitted, and no name of an object.
func TestALinkToLargeDataOpensItOrSaysThatItCannot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := &shelf{objects: map[string][]byte{}}
	w.commit = emit.New(emit.Config{DB: w.DB, Log: w.Logger, Objects: store})
	w.Run(w.commit.Run)
	serve := func(o handlers.Objects) {
		w.engine = webtest.Serve(w.Config(time.Now, base), links.Routes(links.Deps{DB: w.DB, Keys: w.Ring, Large: handlers.NewLargeData(o, w.Logger)}))
	}
	tenant, _ := w.Tenant("Acme")
	data := `{"fill": "` + strings.Repeat("ü", 200_000) + `"}`
	dlv, ev := w.delivery(tenant, event.Emission{Data: []byte(data)})
	link, name := w.links.Of(tenant, dlv), event.ObjectName(tenant, ev)
	serve(store)
	if res := w.do(http.MethodGet, link); res.Code != http.StatusOK || res.Body.String() != data || res.Header().Get("Content-Disposition") != "attachment" {
		t.Errorf("%d with %d bytes", res.Code, res.Body.Len())
	}
	for what, damage := range map[string]func(){
		"another byte": func() { store.objects[name][20]++ },
		"shorter":      func() { store.objects[name] = store.objects[name][1:] },
		"deleted":      func() { delete(store.objects, name) },
	} {
		store.objects[name] = []byte(data)
		damage()
		if res := w.do(http.MethodGet, link); res.Code != http.StatusServiceUnavailable || !strings.Contains(res.Body.String(), "payload_not_read") ||
			strings.Contains(res.Body.String(), "payloads/") {
			t.Errorf("%s: %d %.200s", what, res.Code, res.Body)
		}
	}
	serve(nil)
	w.opens("without the storage", link, "payload_not_read")
}
