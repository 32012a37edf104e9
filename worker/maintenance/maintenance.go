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
	"posthorn/db/seal"
	"posthorn/db/subscriptions"
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
	Objects  history.Store         // has the data of large events; nil: none
	Keys     *seal.Ring            // with Post
	BaseURL  string                // with Post
	Post     subscriptions.Post    // nil: AI clients are not told what they did not get
}

// Maintenance runs the periodic jobs. Create it with New.
type Maintenance struct {
	db        *db.DB
	log       *slog.Logger
	gauges    *gauges
	assessing *loop.Asked
	changed   func(id.UUID)
	history   *history.Keeper // nil: off
	objects   history.Store   // nil: off
	keys      *seal.Ring
	baseURL   string
	post      subscriptions.Post // nil: off
	foldNext  int32              // how many entries of the ledger are folded together next
}

// New returns maintenance that does nothing before Run.
func New(c Config) *Maintenance {
	return &Maintenance{
		db:        c.DB,
		log:       c.Log,
		gauges:    newGauges(c.Registry),
		assessing: loop.NewAsked(),
		changed:   c.Changed,
		history:   c.History,
		objects:   c.Objects,
		keys:      c.Keys,
		baseURL:   c.BaseURL,
		post:      c.Post,
		foldNext:  foldMost,
	}
}

// sweepMost is how many deliveries end in one transaction.
const sweepMost = 500

func (m *Maintenance) jobs() []loop.Job {
	return []loop.Job{
		{Name: "vacuum", Every: vacuumEvery, Do: m.vacuum},
		{Name: "analyze young days", Every: analyzeEvery, Do: m.analyzeYoungDays},
		{Name: "fold the ledger", Every: foldEvery, Do: m.fold},
		{Name: "fold the hours", Every: hoursEvery, Do: m.foldHours},
		{Name: "fail deliveries of deleted endpoints", Every: deletedEvery, Do: m.sweepDeleted},
		{Name: "erase deleted tenants", Every: eraseEvery, Do: m.eraseTenants},
		{Name: "end abandoned listeners", Every: listenEvery, Do: m.endAbandoned},
		{Name: "end lapsed subscriptions", Every: lapsedEvery, Do: m.endLapsed},
		{Name: "tell gaps of subscriptions", Every: gapsEvery, Do: m.tellGaps},
		{Name: "expire idempotency keys", Every: expireEvery, Do: m.expireKeys},
		{Name: "forget expired sessions", Every: forgetEvery, Do: m.forgetExpired},
		{Name: "partitions", Every: partitionsEvery, Do: m.partitions},
		{Name: "trim the logs of feeds", Every: partitionsEvery, Do: m.trimLogs},
		{Name: "catch up endpoints", Every: startsEvery, Do: m.catchUp},
		{Name: "assess feeds", Every: heldEvery, Do: m.assessFeeds},
		{Name: "assess sources", Every: sourcesEvery, Do: m.assessSources},
		{Name: "gauges", Every: gaugeEvery, Do: m.setGauges},
		{Name: "end pauses", Every: endsEvery, Do: m.endPauses},
		{Name: "assess health", Every: assessEvery, Do: m.assessAll},
		{Name: "expire deliveries", Every: lateEvery, Do: m.expireLate},
		{Name: "expire held deliveries", Every: heldEvery, Do: m.expireHeld},
		{Name: "warn of certificates", Every: certificatesEvery, Do: m.warnOfCertificates},
		{Name: "reconcile the ledger", Every: reconcileEvery, Do: m.reconcile},
		{Name: "notices of quotas", Every: quotasEvery, Do: m.postQuotaNotices},
		{Name: "sweep test inboxes", Every: time.Minute, Do: m.sweepInboxes},
		{Name: "delete large payloads", Every: payloadsEvery, Do: m.sweepPayloads},
		{Name: "move history", Every: historyEvery, Do: m.moveHistory},
		{Name: "forget dead workers", Every: time.Hour, Do: m.forgetDeadWorkers},
	}
}

// Do runs one job now, by its name.
func (m *Maintenance) Do(ctx context.Context, name string) error {
	for _, j := range m.jobs() {
		if j.Name == name {
			return j.Do(ctx)
		}
	}
	return fmt.Errorf("no periodic job is named %q", name)
}

// Run runs the jobs until the context ends.
func (m *Maintenance) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { m.assess(ctx) })
	loop.Every(ctx, m.log, m.jobs()...)
}
