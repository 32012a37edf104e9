// Package maintenance runs the periodic jobs of the database: partitions, roll-ups, retention, reconciling the ledger,
// gauges, the health of endpoints. Every worker runs it. Of a job that the database knows by name, one worker runs it
// at a time.
//
// To add a periodic job, add a file beside this one and a row in jobs.
package maintenance

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/worker/history"
	"posthorn/worker/loop"
)

// Config holds the dependencies of maintenance.
type Config struct {
	DB       *db.DB
	Log      *slog.Logger
	Registry prometheus.Registerer // nil: metrics are not exported
	Changed  func(id.UUID)         // gets the endpoints whose state changed
	History  *history.Keeper       // nil: history stays in the database
}

// Maintenance runs the periodic jobs. Create it with New.
type Maintenance struct {
	db        *db.DB
	log       *slog.Logger
	gauges    *gauges
	assessing *loop.Asked
	changed   func(id.UUID)
	history   *history.Keeper // nil: off
	foldNext  int32           // how many entries of the ledger are folded together next
}

// New returns maintenance that does nothing before Run.
func New(c Config) *Maintenance {
	return &Maintenance{
		db: c.DB, log: c.Log, gauges: newGauges(c.Registry), assessing: loop.NewAsked(),
		changed: c.Changed, history: c.History, foldNext: foldMost,
	}
}

// sweepMost is how many deliveries end in one transaction.
const sweepMost = 500

type job struct {
	name  string
	every time.Duration
	do    func(context.Context) error
}

func (m *Maintenance) jobs() []job {
	return []job{
		{"vacuum", vacuumEvery, m.vacuum},
		{"analyze young days", analyzeEvery, m.analyzeYoungDays},
		{"fold the ledger", foldEvery, m.fold},
		{"fold the hours", hoursEvery, m.foldHours},
		{"fail deliveries of deleted endpoints", deletedEvery, m.sweepDeleted},
		{"erase deleted tenants", eraseEvery, m.eraseTenants},
		{"end abandoned listeners", listenEvery, m.endAbandoned},
		{"expire idempotency keys", expireEvery, m.expireKeys},
		{"forget expired sessions", forgetEvery, m.forgetExpired},
		{"partitions", partitionsEvery, m.partitions},
		{"gauges", gaugeEvery, m.setGauges},
		{"assess health", assessEvery, m.assessAll},
		{"expire held deliveries", heldEvery, m.expireHeld},
		{"reconcile the books", reconcileEvery, m.reconcile},
		{"notices of quotas", quotasEvery, m.postQuotaNotices},
		{"sweep test inboxes", time.Minute, m.sweepInboxes},
		{"move history", historyEvery, m.moveHistory},
		{"forget dead workers", time.Hour, m.forgetDeadWorkers},
	}
}

// Do runs one job now, by its name.
func (m *Maintenance) Do(ctx context.Context, name string) error {
	for _, j := range m.jobs() {
		if j.name == name {
			return j.do(ctx)
		}
	}
	return fmt.Errorf("no periodic job is named %q", name)
}

// Run runs the jobs until the context ends, each in a loop of its own, so that a slow one delays no other.
func (m *Maintenance) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { m.assess(ctx) })
	for _, j := range m.jobs() {
		group.Go(func() {
			for {
				if err := j.do(ctx); err != nil && ctx.Err() == nil && !db.IsPassing(err) {
					m.log.Warn("housekeeping failed", "chore", j.name, "error", err)
				}
				if !loop.Sleep(ctx, j.every) {
					return
				}
			}
		})
	}
}
