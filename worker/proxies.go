package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/db/endpoints"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
)

// proxyNoteEvery bounds how often a process records that a proxy fails.
const proxyNoteEvery = 10 * time.Second

// proxyFailures records what was seen of egress proxies that fail, for the operators.
type proxyFailures struct {
	mu    sync.Mutex
	noted map[id.UUID]time.Time // by owner
}

// due reports whether a failure is to be recorded now.
func (p *proxyFailures) due(owner id.UUID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.noted[owner]) < proxyNoteEvery {
		return false
	}
	if p.noted == nil {
		p.noted = map[id.UUID]time.Time{}
	}
	p.noted[owner] = now
	return true
}

// noteProxy records that the proxy of an owner failed.
func (w *Worker) noteProxy(owner id.UUID, r delivery.Result, text string) {
	if r.Failure != delivery.FailProxy {
		return
	}
	name := "platform"
	if !owner.IsZero() {
		name = id.Tenant.Format(owner)
	}
	w.metrics.proxies.WithLabelValues(name).Inc()
	if !w.proxies.due(owner, time.Now()) {
		return
	}
	w.log.Warn("the egress proxy failed; its deliveries wait", "proxy", name, "error", text)
	w.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.sending), proxyNoteEvery)
		defer cancel()
		if err := endpoints.NoteProxyFailure(ctx, w.db, owner, text); err != nil {
			w.log.Warn("the failure of the egress proxy could not be recorded", "proxy", name, "error", err)
		}
	})
}
