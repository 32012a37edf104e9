package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/days"
	"posthorn/db/emit"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/worker"
	"posthorn/worker/history"
)

// Connections of each pool. They are apart so that a slow list in the dashboard never waits in line with the commit of
// an event, nor an attempt's record with either. A private PostgreSQL takes 100; a process opens at most
// db.ProcessConnections.
const (
	webConnections    = 10
	emitConnections   = 3
	workerConnections = 8
)

// requestGrace is how long requests can continue when the process stops. An emission waits 5 s at most.
const requestGrace = 5 * time.Second

// Parts says which parts of Posthorn a process runs.
type Parts struct{ Web, Worker bool }

func (p Parts) String() string {
	switch {
	case p.Web && p.Worker:
		return "web and worker"
	case p.Web:
		return "web"
	}
	return "worker"
}

// Program is one Posthorn process: Run starts it, Close stops it.
type Program struct {
	Config Config
	Parts  Parts
	Log    *slog.Logger

	limits   limits     // of requests at the public address; zero: publicLimits
	failed   chan error // the first fatal condition after Run
	registry *prometheus.Registry
	store    *store
	pools    []*db.DB
	traces   *traces // nil: off
	ready    *readiness

	stopStreams   sync.Once
	closing       chan struct{} // closed by Close: streams end, so that Close does not wait for them
	main, metrics net.Listener  // nil: not served
	web           *http.Server
	drainer       drainer // of web
	diagnostics   *http.Server
	committer     *task
	keys          *task // notices revoked keys
	homes         *task // asks the other homes how they are
	worker        *task
	notices       *task
	mails         *task
	readiness     *task
}

// task is a part that runs until it is stopped.
type task struct {
	stop context.CancelFunc
	done chan struct{}
}

// Run starts everything and returns once it serves. On an error everything is closed again. The context bounds only the
// start.
func (p *Program) Run(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		_ = p.Close()
		return err
	}
	return nil
}

// Failed delivers the error of a part that ended by itself; the process can only be closed then.
func (p *Program) Failed() <-chan error { return p.failed }

func (p *Program) start(ctx context.Context) (err error) {
	p.failed, p.closing = make(chan error, 1), make(chan struct{})
	if p.limits == (limits{}) {
		p.limits = publicLimits
	}
	p.registry = newRegistry()
	for name, like := range p.Config.Suspects {
		p.Log.Warn("a variable that nothing reads; was another meant?", "variable", name, "meant", like)
	}
	// The addresses first: they fail at once, a database takes its time.
	if err := p.listen(ctx); err != nil {
		return err
	}
	if len(p.Config.frameAncestors()) > 0 && strings.HasPrefix(p.URL(), "http://") {
		p.Log.Warn("in a frame of another site, browsers keep the portal's cookie only over https; set POSTHORN_BASE_URL to an https URL", "url", p.URL())
	}
	if p.Config.MasterKey == "" && !p.Config.embedded() {
		return errNoMasterKey
	}
	if p.store, err = openStore(ctx, &p.Config, p.Log, true); err != nil {
		return err
	}
	if err := p.store.migrate(ctx); err != nil {
		return err
	}
	if err := p.assemble(ctx); err != nil {
		return err
	}
	p.Log.Info("posthorn runs", "version", buildVersion(), "parts", p.Parts.String(), "url", p.URL(), "metrics", p.MetricsURL())
	return nil
}

func (p *Program) listen(ctx context.Context) (err error) {
	if p.Parts.Web {
		if p.main, err = listen(ctx, p.Config.Addr, "POSTHORN_ADDR"); err != nil {
			return err
		}
	}
	if p.Config.MetricsAddr != "off" {
		p.metrics, err = listen(ctx, p.Config.MetricsAddr, "POSTHORN_METRICS_ADDR")
	}
	return err
}

// assemble connects the parts and sets them going, the worker before the events that would wake it.
func (p *Program) assemble(ctx context.Context) error {
	general, err := p.pool(ctx, "web", webConnections)
	if err != nil {
		return err
	}
	ring, err := openRing(ctx, &p.Config, p.store, general)
	if err != nil {
		return err
	}
	if err := p.takeHome(ctx, general); err != nil {
		return err
	}
	if p.traces, err = newTraces(&p.Config, p.Parts, p.Log); err != nil {
		return err
	}
	p.ready = &readiness{database: general, url: p.store.listenURL, home: p.Config.Home, log: p.Log}
	if p.store.cluster != nil {
		p.ready.server = p.store.cluster.Ready
	}
	var w *worker.Worker
	if p.Parts.Worker {
		if w, err = p.startWorker(ctx, general, ring); err != nil {
			return err
		}
		p.ready.worker = w.Ready
		if err := p.startMail(ctx, ring); err != nil {
			return err
		}
	}
	if p.Parts.Web {
		if err := p.startWeb(ctx, general, ring, w); err != nil {
			return err
		}
	}
	if p.metrics != nil {
		p.diagnostics = newServer(diagnostics(p.registry, p.ready), limits{}, p.Log) // a profile takes any time
		p.serve(p.diagnostics, p.metrics)
	}
	p.readiness = p.run("readiness", p.ready.watch)
	return nil
}

// takeHome holds the configuration to the home that the database is.
func (p *Program) takeHome(ctx context.Context, general *db.DB) error {
	if p.Config.Home == "" {
		return nil
	}
	is, err := accounts.TakeHome(ctx, general, p.Config.Home)
	if err == nil && is != p.Config.Home {
		err = fault.New(fault.Invalid, "home_other", fmt.Sprintf("The database is that of the home %s, and POSTHORN_HOME is %s. Correct POSTHORN_HOME or POSTHORN_DATABASE_URL.", is, p.Config.Home))
	}
	return err
}

// stored reads days in storage; nil where there is no storage.
func (p *Program) stored(general *db.DB) days.Source {
	if p.Config.History == nil {
		return nil
	}
	return history.NewSource(general, p.Config.History)
}

func (p *Program) startWorker(ctx context.Context, general *db.DB, ring *seal.Ring) (*worker.Worker, error) {
	pool, err := p.pool(ctx, "worker", workerConnections)
	if err != nil {
		return nil, err
	}
	name := p.Config.WorkerName
	if name == "" {
		name, _ = os.Hostname()
	}
	var keeper *history.Keeper
	if p.Config.History != nil {
		keeper = history.New(history.Config{
			DB:    pool,
			Store: p.Config.History,
			Log:   p.Log,
			After: int(p.Config.HistoryAfterDays),
			Back:  int(p.Config.HistoryBackDays),
		})
	}
	w := worker.New(worker.Config{
		DB:        pool,
		ListenURL: p.store.listenURL,
		Log:       p.Log,
		Egress:    p.Config.Egress,
		Keys:      ring,
		Name:      name,
		Registry:  p.registry,
		Grace:     p.Config.ShutdownGrace,
		Tracer:    p.traces.tracer(),
		Inbox:     newInbox(p.Log, general, ring),
		BaseURL:   p.URL(),
		History:   keeper,
		Objects:   p.Config.History,
	})
	p.worker = p.run("worker", w.Run)
	return w, nil
}

// startWeb takes requests. The worker of this process gets what they emit without a detour; nil: there is none.
func (p *Program) startWeb(ctx context.Context, general *db.DB, ring *seal.Ring, w *worker.Worker) error {
	pool, err := p.pool(ctx, "emit", emitConnections)
	if err != nil {
		return err
	}
	c := emit.Config{DB: pool, Log: p.Log, Tracer: p.traces.tracer()}
	if p.Config.MaxLargePayload > 0 {
		c.Objects = p.Config.History
	}
	if w != nil {
		c.OnCommit, c.BeforeCommit = w.Committed, w.BeforeCommit
	}
	committer := emit.New(c)
	p.committer = p.run("committer", committer.Run)
	p.web = newServer(newRouter(p, general, ring, committer), p.limits, p.Log)
	p.drainer.attach(p.web)
	p.serve(p.web, p.main)
	return nil
}

// pool opens connections that Close gives back.
func (p *Program) pool(ctx context.Context, name string, connections int32) (*db.DB, error) {
	d, err := p.store.open(ctx, name, connections)
	if err == nil {
		p.pools = append(p.pools, d)
	}
	return d, err
}

// run starts a part in the background. If it ends before it is stopped, the process ends too.
func (p *Program) run(name string, do func(context.Context) error) *task {
	ctx, cancel := context.WithCancel(context.Background())
	t := &task{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		err := do(ctx)
		switch {
		case ctx.Err() == nil && err == nil:
			p.fail(fmt.Errorf("the %s has stopped by itself", name))
		case ctx.Err() == nil:
			p.fail(fmt.Errorf("the %s has stopped: %w", name, err))
		case err != nil:
			p.Log.Warn("a part did not stop cleanly", "part", name, "error", err)
		}
	}()
	return t
}

func (p *Program) serve(s *http.Server, l net.Listener) {
	go func() {
		if err := serve(s, l); err != nil && !p.drainer.stopping.Load() {
			p.fail(err)
		}
	}()
}

// fail reports the first fatal condition.
func (p *Program) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// Close stops everything in the order in which work flows, so that each part finishes what the one before handed on:
// requests, the committer, the worker (within its grace), connections, the private PostgreSQL. It may be called after a
// start that failed.
func (p *Program) Close() error {
	if p.ready != nil {
		p.ready.stop()
	}
	if p.web != nil {
		p.drainer.linger(p.Config.ShutdownDelay)
	}
	p.stopStreams.Do(func() { close(p.closing) })
	if p.web != nil {
		p.drainer.drain(p.main)
	}
	stopServer(p.web, p.main, min(requestGrace, p.Config.ShutdownGrace))
	p.readiness.end()
	p.keys.end()
	p.homes.end()
	p.committer.end()
	p.worker.end()
	p.notices.end() // after the worker, which posts them
	p.mails.end()
	p.traces.close()
	for _, d := range p.pools {
		d.Close()
	}
	err := p.store.Close(context.Background())
	stopServer(p.diagnostics, p.metrics, 0) // last, to be watched while the rest stops
	return err
}

// end stops a part and waits until it has ended. It may be called on nil.
func (t *task) end() {
	if t != nil {
		t.stop()
		<-t.done
	}
}

// URL is where people find the dashboard and programs the API: as configured, else from the address listened on.
func (p *Program) URL() string {
	if p.Config.BaseURL != "" || p.main == nil {
		return p.Config.BaseURL
	}
	return "http://" + reachable(p.main)
}

// MetricsURL is where Prometheus finds the metrics; empty when they are off.
func (p *Program) MetricsURL() string {
	if p.metrics == nil {
		return ""
	}
	return "http://" + reachable(p.metrics) + "/metrics"
}

// reachable is a listener's address as this machine can type it: "all addresses" is none.
func reachable(l net.Listener) string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
