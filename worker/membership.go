package worker

import (
	"context"
	"sync"
	"time"

	"posthorn/worker/loop"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
)

// The fence. Each worker counts its beats in the database. The others declare it dead when its count has not changed
// for too long, by their own monotonic clocks.
const (
	beatEvery = 5 * time.Second
	deadAfter = incidents.Silent
	// of the last acknowledged beat: well before another worker can declare this one dead
	sendWithin   = 20 * time.Second
	registerWait = time.Second
)

// membership is this worker's place among the workers of its database.
type membership struct {
	mu       sync.Mutex
	current  id.UUID // zero: not registered
	lastBeat time.Time
	alone    bool                 // no other worker is alive
	others   map[id.UUID]*silence // the last beat seen of each
	looked   time.Time            // when they were last seen
}

type silence struct {
	beat  int64
	since time.Time
}

// id is this worker's current id. It changes when the worker was declared dead and registers again.
func (w *Worker) id() id.UUID {
	w.member.mu.Lock()
	defer w.member.mu.Unlock()
	return w.member.current
}

// mayLive reports whether no other worker can have declared this one dead yet, so that requests can start.
func (m *membership) mayLive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.current.IsZero() && time.Since(m.lastBeat) < sendWithin
}

func (m *membership) isAlone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alone
}

// register adds this worker under a new id, and tries until it succeeds.
func (w *Worker) register(ctx context.Context) error {
	for {
		began := time.Now()
		workerID := db.NewID()
		err := w.db.Worker(ctx, func(q *sql.Queries) error {
			return q.RegisterWorker(ctx, workerID, w.name)
		})
		if err == nil {
			w.member.mu.Lock()
			w.member.current, w.member.lastBeat = workerID, began
			w.member.mu.Unlock()
			w.log.Info("worker registered", "worker", id.Worker.Format(workerID), "name", w.name)
			w.checkPeers(ctx)
			return nil
		}
		w.log.Warn("worker could not register; trying again", "error", err)
		if !loop.Sleep(ctx, registerWait) {
			return ctx.Err()
		}
	}
}

// beat keeps this worker alive and watches the others until the context ends.
func (w *Worker) beat(ctx context.Context) {
	for loop.Sleep(ctx, beatEvery) {
		began, me := time.Now(), w.id()
		// A beat that takes longer than its interval is as good as none.
		attempt, cancel := context.WithTimeout(ctx, beatEvery)
		var rows int64
		err := w.db.Worker(attempt, func(q *sql.Queries) (err error) {
			rows, err = q.Beat(attempt, me)
			return err
		})
		cancel()
		switch {
		case err != nil:
			w.log.Warn("beat failed", "error", err)
		case rows == 0:
			w.died(me)
			if w.register(ctx) != nil {
				return
			}
		default:
			w.member.mu.Lock()
			w.member.lastBeat = began
			w.member.mu.Unlock()
			w.dispatch.Kick() // sends that waited for a beat
			w.checkPeers(ctx)
		}
	}
}

// died forgets everything that this worker held under an id that was declared dead.
func (w *Worker) died(epoch id.UUID) {
	w.member.mu.Lock()
	if w.member.current != epoch || epoch.IsZero() {
		w.member.mu.Unlock()
		return
	}
	w.member.current = id.UUID{}
	w.member.mu.Unlock()
	w.log.Error("this worker was declared dead: it drops its lanes and registers again", "worker", id.Worker.Format(epoch))
	w.dispatch.Reset()
}

// checkPeers declares workers dead whose beat has not changed for too long, and frees their lanes.
func (w *Worker) checkPeers(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	var live []sql.LiveWorkersRow
	if err := w.db.Worker(attempt, func(q *sql.Queries) (err error) {
		live, err = q.LiveWorkers(attempt)
		return err
	}); err != nil {
		return
	}
	for _, silent := range w.member.observe(live, time.Now()) {
		freed, done, err := queue.DeclareDead(attempt, w.db, silent.ID, silent.Beat)
		if err != nil || !done {
			continue
		}
		w.log.Warn("worker declared dead", "worker", id.Worker.Format(silent.ID), "name", silent.Name, "lanes", len(freed))
		w.dispatch.Wake(freed)
	}
}

// observe takes the beats of all workers and returns those that have been silent for too long. Silence counts only
// while this worker can read the database: if the database was unavailable to all, or this worker was frozen, a beat
// that has not changed proves nothing.
func (m *membership) observe(live []sql.LiveWorkersRow, now time.Time) (silent []sql.LiveWorkersRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	listened := now.Sub(m.looked) < deadAfter/2
	m.looked = now
	seen := make(map[id.UUID]*silence, len(live))
	for _, l := range live {
		if l.ID == m.current {
			continue
		}
		s := m.others[l.ID]
		if s == nil || s.beat != l.Beat || !listened {
			s = &silence{beat: l.Beat, since: now}
		}
		seen[l.ID] = s
		if now.Sub(s.since) >= deadAfter {
			silent = append(silent, l)
		}
	}
	m.others = seen
	m.alone = len(seen) == 0
	return silent
}
