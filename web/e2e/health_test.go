//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// freeze has every write to a table wait until the returned function is called.
func (w *world) freeze(table string) (thaw func()) {
	w.t.Helper()
	thaw, frozen := w.freezeNext(table)
	<-frozen
	return thaw
}

// freezeNext is freeze behind whoever writes to the table now. It returns when it is next in the line; frozen is
// closed when its turn has come.
func (w *world) freezeNext(table string) (thaw func(), frozen <-chan struct{}) {
	w.t.Helper()
	conn, err := w.sql.Acquire(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := conn.Exec(context.Background(), "RESET ROLE; BEGIN; LOCK TABLE posthorn."+table+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			w.t.Error(err)
		}
	}()
	eventually(w.t, patience, table+" is about to be frozen", func() bool {
		return w.ask("SELECT count(*) FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND relation = $1::regclass", "posthorn."+table) > 0
	})
	thaw = sync.OnceFunc(func() {
		<-done
		if _, err := conn.Exec(context.Background(), "ROLLBACK; SET ROLE posthorn_console"); err != nil {
			w.t.Error(err)
		}
		conn.Release()
	})
	w.t.Cleanup(thaw)
	return thaw, done
}

// TestAKilledWorkerDisablesAndWarnsOnce kills the worker between each pair of steps of what follows when an endpoint
// refuses ten times: the step that writes a table is held up, and the worker dies waiting for it.
func TestAKilledWorkerDisablesAndWarnsOnce(t *testing.T) {
	t.Parallel()
	steps := []string{"endpoint_warnings", "endpoints", "endpoint_revisions", "lanes", "notices", "audit_log"}
	gates := map[string]chan struct{}{}
	for _, table := range steps {
		gates["/"+table] = make(chan struct{})
	}
	w := newWorld(t, func(a *arrival) int {
		gate := gates[a.path]
		if gate == nil {
			return http.StatusOK
		}
		select {
		case <-gate:
		case <-a.gone:
		}
		return http.StatusUnauthorized
	})
	web := w.launch("web", "web").ready()
	w.serveAt(web)
	worker := w.launch("worker", "worker").ready()
	w.manage(http.MethodPatch, "/tenant", settings{"health_policy": settings{"auth_minutes": 0}}, nil) // the count alone decides
	ids := map[string]string{}
	for _, table := range steps {
		ids[table] = w.endpoint("/"+table, settings{"event_types": []string{"to." + table}, "max_in_flight": 1})
	}
	emit := func(table string, from, to int) {
		var batch []emission
		for i := from; i < to; i++ {
			batch = append(batch, event("to."+table, i))
		}
		w.emitAll(batch, 0, 4)
	}
	for _, table := range steps {
		if table == "endpoint_warnings" {
			emit(table, 0, 6) // enough to be warned of, too few to be disabled
		} else {
			emit(table, 0, 30)
		}
		eventually(t, patience, "the first request to /"+table+" is under way", func() bool { return w.receiver.busy() > 0 })
		thaw := w.freeze(table)
		close(gates["/"+table])
		eventually(t, patience, "the worker waits to write "+table, func() bool {
			return w.ask("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::regclass", "posthorn."+table) > 0
		})
		worker.kill()
		thaw()
		worker = w.launch("worker", "worker").ready()
	}
	emit("endpoint_warnings", 6, 30)
	count := func(what, table string) int {
		return w.ask(fmt.Sprintf("SELECT count(*) FROM endpoints e JOIN lanes l ON l.endpoint_id = e.id WHERE e.url LIKE $1 AND %s", what), "%/"+table)
	}
	for _, table := range steps {
		// Found dead after 30 s, its lanes go on, or the next assessment finds what it left.
		eventually(t, 3*time.Minute, "/"+table+" is disabled", func() bool { return count("e.status = 'disabled' AND e.status_reason = 'auth' AND l.held", table) == 1 })
	}
	for _, table := range steps {
		for what, want := range map[string]int{
			"(SELECT count(*) FROM notices n WHERE n.endpoint_id = e.id AND n.kind = 'endpoint.disabled') = 1":                                                                    1,
			"(SELECT count(*) FROM notices n WHERE n.endpoint_id = e.id AND n.kind = 'endpoint.warning') > 1":                                                                     0,
			"(SELECT count(*) FROM notices n WHERE n.endpoint_id = e.id AND n.kind = 'endpoint.recovered') > 0":                                                                   0,
			"(SELECT count(*) FROM endpoint_revisions r WHERE r.endpoint_id = e.id AND r.status = 'disabled') = 1":                                                                1,
			"(SELECT count(*) FROM audit_log a WHERE a.action = 'endpoint.disabled' AND a.object_id = '" + ids[table] + "') = 1":                                                  1,
			"(SELECT count(*) FROM notices n WHERE n.endpoint_id = e.id AND n.kind = 'endpoint.warning') = (SELECT count(*) FROM endpoint_warnings x WHERE x.endpoint_id = e.id)": 1,
		} {
			if n := count(what, table); n != want {
				t.Errorf("killed at %s: %d endpoints with %s, want %d", table, n, what, want)
			}
		}
	}
	w.balanced(1)
}
