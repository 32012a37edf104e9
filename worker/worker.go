// Package worker is the engine: it leases lanes, reads the heads of their queues, sends deliveries, and records the
// results.
//
// A delivery passes five stages, each typed and small:
//
//	announcements -> reader (lease, read)        reader.go, order.go
//	              -> dispatcher (what is next?)  worker/lanes
//	              -> sender (one attempt)        worker/send
//	              -> decide (pure)               domain/delivery
//	              -> recorder (one transaction)  record.go
//
// Around them are membership (which workers are alive), scheduler (what is due), refresh (what changed), rescan (what
// was missed), and maintenance (periodic jobs). All state is in PostgreSQL: a worker that is killed loses only the
// knowledge of what it was sending.
package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/history"
	"posthorn/worker/jobs"
	"posthorn/worker/lanes"
	"posthorn/worker/loop"
	"posthorn/worker/maintenance"
	"posthorn/worker/send"
)

// Config is what a worker needs.
type Config struct {
	DB        *db.DB
	ListenURL string // a direct connection for LISTEN
	Log       *slog.Logger
	Egress    egress.Policy
	Keys      *seal.Ring
	Name      string                // shown to operators; default the host's name
	Registry  prometheus.Registerer // nil: metrics are not exported
	Grace     time.Duration         // how long a stop waits for requests in flight; default 20 s
	Tracer    oteltrace.Tracer      // makes a span of each attempt of a sampled event; nil: none
	History   *history.Keeper       // moves closed days into a store; nil: they stay
	Objects   history.Store         // has the data of large events; nil: none
	Inbox     http.Handler          // receives requests to test inboxes; nil: they fail
	BaseURL   string                // the public URL, which names the platform in its own signatures
}

// Worker serves lanes. New makes one; Run can be called once.
type Worker struct {
	db     *db.DB
	listen string
	log    *slog.Logger
	keys   *seal.Ring
	name   string
	grace  time.Duration

	member      membership
	dispatch    *lanes.Dispatcher
	sender      *send.Sender
	tracer      oteltrace.Tracer // nil: off
	inbox       http.Handler     // receives what is sent to test inboxes; nil without
	baseURL     string
	events      *eventCache
	watermark   lanes.Watermark
	listener    db.Listener // of the announcements of other processes
	scheduler   *scheduler
	clock       *clock
	changed     *loop.Asked // endpoints whose configuration changed
	maintenance *maintenance.Maintenance
	metrics     *metrics
	signals     chan struct{}
	outbox      chan struct{} // something was emitted in SQL
	pauses      chan struct{} // operators paused or resumed something
	results     chan *result
	storing     atomic.Pointer[time.Time] // since when the recorder has been writing its current batch; nil: it is idle
	proxies     proxyFailures
	background  sync.WaitGroup
	jobs        chan *lanes.Job // to senders that wait for one
	waiting     atomic.Int32    // how many do
	ended       chan struct{}   // closed when no delivery starts any more
	sends       sync.WaitGroup  // deliveries in flight
	sending     context.Context // of the requests in flight
}

// New makes a worker. It does nothing before Run.
func New(c Config) *Worker {
	w := &Worker{
		db:        c.DB,
		listen:    c.ListenURL,
		log:       c.Log,
		keys:      c.Keys,
		name:      c.Name,
		grace:     c.Grace,
		sender:    send.New(c.Egress),
		events:    newEventCache(),
		scheduler: newScheduler(),
		clock:     newClock(),
		changed:   loop.NewAsked(),
		signals:   make(chan struct{}, 1),
		outbox:    make(chan struct{}, 1),
		pauses:    make(chan struct{}, 1),
		results:   make(chan *result, 8192),
		sending:   context.Background(),
		jobs:      make(chan *lanes.Job),
		ended:     make(chan struct{}),
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.grace <= 0 {
		w.grace = 20 * time.Second
	}
	w.inbox, w.tracer, w.baseURL = c.Inbox, c.Tracer, c.BaseURL
	w.sender.UseLinks(queue.Links{BaseURL: c.BaseURL, Keys: c.Keys})
	w.listener.Log = w.log
	w.metrics = newMetrics(c.Registry, w.listener.Age)
	w.dispatch = lanes.New(w.startJob, w.signal, func(ep id.UUID) { w.changed.Ask(ep) }, w.mayStart)
	w.maintenance = maintenance.New(maintenance.Config{
		DB:       w.db,
		Log:      w.log,
		Registry: c.Registry,
		Changed:  func(ep id.UUID) { w.changed.Ask(ep) },
		History:  c.History,
		Objects:  c.Objects,
		Keys:     c.Keys,
		BaseURL:  c.BaseURL,
		Post:     send.NewTester(c.Egress).Post,
	})
	return w
}

// BeforeCommit returns a mark of the moment before a committer's transaction, for Committed.
func (w *Worker) BeforeCommit() int64 { return w.dispatch.Mark() }

// Committed takes the rows that a committer of this process has stored. Rows of lanes with nothing left to read go
// straight to the dispatcher. It returns the endpoints of the other rows, which are announced and read.
func (w *Worker) Committed(b emit.Batch) []id.UUID {
	fresh := make([]*send.Payload, len(b.Events))
	rows := make([]lanes.Fresh, 0, len(b.Events))
	for i, e := range b.Events {
		fresh[i] = &send.Payload{Event: &e.Event}
		for k := range e.Deliveries {
			d := &e.Deliveries[k]
			rows = append(rows, lanes.Fresh{Seq: d.Seq, EndpointID: d.EndpointID, DeliveryID: d.ID, Event: fresh[i], ExpiresAt: d.ExpiresAt})
		}
	}
	w.events.add(fresh)
	var foreign []id.UUID
	if left := w.dispatch.HandOver(b.Mark, w.id(), rows); len(left) > 0 {
		foreign = w.dispatch.Wake(left)
	}
	if w.member.isAlone() {
		return nil
	}
	return foreign
}

// Ready reports why the worker cannot serve lanes, or nil.
func (w *Worker) Ready() error {
	if !w.member.mayLive() {
		return fault.New(fault.Unavailable, "worker_not_ready", "The worker is not registered with the database, or its last heartbeat is too old.")
	}
	return nil
}

// Run serves lanes until the context ends. Then it starts nothing more, waits for requests in flight within the grace
// period, records their results, and gives its lanes back.
func (w *Worker) Run(ctx context.Context) error {
	if w.learnPauses(ctx) != nil || w.register(ctx) != nil {
		return nil // asked to stop before it began
	}
	w.readBot(ctx)
	defer w.openInbox()()
	var loops, recorder sync.WaitGroup
	sending, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	w.sending = sending
	// The recorder and the beat outlive the context: what was sent must be recorded while this worker is alive.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	recorder.Go(func() { w.runRecorder(work) })
	for _, loop := range []func(context.Context){
		w.read, w.schedule, w.notifications, w.rescan, w.refresh, w.noteLimits, w.followPauses, w.maintenance.Run,
		w.runRelay, w.readSources, w.verifications, w.followBot,
		jobs.New(w.db, w.listen, w.log).Run,
	} {
		loops.Go(func() { loop(ctx) })
	}
	var beating sync.WaitGroup
	beating.Go(func() { w.beat(work) })
	w.signal()

	<-ctx.Done()
	w.dispatch.Stop()
	loops.Wait()
	w.drain(abort)
	close(w.ended)
	close(w.results)
	finish, cancel := context.WithTimeout(work, 10*time.Second)
	defer cancel()
	waitFor(finish, &recorder)
	w.signOff(finish)
	stop()
	beating.Wait()
	recorder.Wait()
	w.background.Wait() // the recorder starts some of it
	w.sender.Close()
	return nil
}

// openInbox lets test inboxes receive requests until the returned function is called.
func (w *Worker) openInbox() (shut func()) {
	if w.inbox == nil {
		return func() {}
	}
	return w.sender.OpenInbox(w.inbox)
}

// drain waits for requests in flight. After the grace period they are canceled and recorded as they are.
func (w *Worker) drain(abort context.CancelFunc) {
	grace := time.AfterFunc(w.grace, abort)
	defer grace.Stop()
	w.sends.Wait()
}

func waitFor(ctx context.Context, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// signOff gives the lanes back with their tokens, and removes this worker from the list.
func (w *Worker) signOff(ctx context.Context) {
	me := w.id()
	if me.IsZero() {
		return
	}
	release := releaseParams(w.dispatch.Inventory(time.Now()), me)
	err := w.db.Worker(ctx, func(q *sql.Queries) error {
		if err := q.ReleaseLanes(ctx, release); err != nil {
			return err
		}
		if _, err := q.FreeLanesOf(ctx, &me); err != nil {
			return err
		}
		return q.DeleteWorker(ctx, me)
	})
	if err != nil {
		w.log.Warn("lanes could not be given back; others take them when this worker's silence is noticed", "error", err)
	}
}

// waitingSenders is how many senders wait for a delivery to start. A new goroutine would cost more: its stack grows
// while it sends for the first time.
const waitingSenders = 64

// startJob gives a delivery to a sender that waits, or to a new one.
func (w *Worker) startJob(j *lanes.Job) {
	w.sends.Add(1)
	select {
	case w.jobs <- j:
	default:
		go w.send(j)
	}
}

// send sends a delivery and continues with the next one as long as there is one. Then it waits for another, unless
// enough senders do.
func (w *Worker) send(j *lanes.Job) {
	for j != nil {
		for j != nil {
			j = w.perform(j)
		}
		w.sends.Done()
		if w.waiting.Add(1) <= waitingSenders {
			select {
			case j = <-w.jobs:
			case <-w.ended:
			}
		}
		w.waiting.Add(-1)
	}
}

// perform makes one attempt, decides, gives the outcome to the recorder, and returns the delivery that starts next.
func (w *Worker) perform(j *lanes.Job) (next *lanes.Job) {
	s := j.Lane.Settings()
	if s.Batch != nil {
		return w.performBatch(j, s)
	}
	number := int(j.Attempts) + 1
	span := w.startSpan(j, s.Destination, number)
	response, attempt := delivery.Result{Failure: delivery.FailExpired}, &queue.Attempt{}
	if j.ExpiresAt == nil || time.Now().Before(*j.ExpiresAt) {
		response, attempt = w.sender.Deliver(w.sending, s.Destination, messageOf(j))
	}
	decision := delivery.Decide(s.Policy, number-int(j.Probes), response, rand.Float64())
	o := w.outcomeOf(j, span, response, attempt, decision)
	w.noteProxy(s.Destination.ProxyOwner, response, attempt.Error)
	then := w.dispatch.Finish(j, o, time.Now())
	r := resultOf(j, then.Decision, response, attempt, s)
	r.health, r.wait, r.assess = then.Change, then.Wait, then.Assess
	w.results <- r
	return then.Next
}

// messageOf is a delivery's event on its way.
func messageOf(j *lanes.Job) send.Message {
	return send.Message{
		Event:      j.Event,
		EventID:    j.EventText(),
		Delivery:   j.DeliveryID,
		DeliveryID: j.DeliveryText(),
		FirstID:    j.FirstText(),
		Attempt:    int(j.Attempts) + 1,
		Replayed:   j.Replay,
		Version:    j.Version(),
	}
}

// outcomeOf completes an attempt, and says what it means for its lane.
func (w *Worker) outcomeOf(j *lanes.Job, span oteltrace.Span, r delivery.Result, a *queue.Attempt, d delivery.Decision) lanes.Outcome {
	if span != nil {
		endSpan(span, r, a, d)
	}
	a.Class, a.Held = statClass(r, d.Class), j.HeldBack
	o := lanes.Outcome{Decision: d, Result: r, Aborted: w.sending.Err() != nil && r.Failure == delivery.FailReset}
	if d.Class != delivery.Success {
		o.LastError = lastError(r, a)
	}
	return o
}

// resultOf is what the recorder writes about a delivery.
func resultOf(j *lanes.Job, d delivery.Decision, r delivery.Result, a *queue.Attempt, s *lanes.Settings) *result {
	number := j.Attempts + 1
	if r.Failure.NotTried() {
		a, number = nil, j.Attempts // nothing was sent, and no attempt is used up
	}
	return &result{
		job: j,
		outcome: queue.Outcome{
			TenantID:   j.TenantID,
			DeliveryID: j.DeliveryID,
			EventID:    j.EventID,
			EndpointID: j.EndpointID,
			EventType:  j.Event.Type,
			Gen:        j.Gen,
			Attempts:   number,
			Probes:     j.Probes,
			Decision:   d,
			Result:     r,
			Attempt:    a,
			Edited:     s.Destination.NewestTransformation(),
		},
	}
}

// maxLastExcerpt is how much of a response's body a notice to the endpoint's owner shows, in bytes.
const maxLastExcerpt = 500

// lastError is the text about a failure for the endpoint's owner.
func lastError(r delivery.Result, a *queue.Attempt) health.LastError {
	e := health.LastError{
		Status:  r.Status,
		Failure: r.Failure,
		Text:    a.Error,
		Excerpt: delivery.Clip(string(a.ResponseExcerpt), maxLastExcerpt),
	}
	if e.Text == "" {
		e.Text = "the endpoint returned " + strings.TrimSpace(strconv.Itoa(r.Status)+" "+http.StatusText(r.Status))
	}
	return e
}

// The classes of attempts in the roll-ups, by their numbers in the database.
const (
	statOK int16 = iota
	statRedirect
	statClient
	statServer
	statNetwork
	statTimeout
	statBlocked
)

func statClass(r delivery.Result, class delivery.Class) int16 {
	switch {
	case class == delivery.Success:
		return statOK // also a conflict that the endpoint accepts as delivered
	case r.Failure == delivery.FailTimeout:
		return statTimeout
	case r.Failure == delivery.FailBlocked:
		return statBlocked
	case r.Failure != delivery.FailNone, r.Status < 200, r.Status >= 600:
		return statNetwork
	case r.Status < 400:
		return statRedirect
	case r.Status < 500:
		return statClient
	}
	return statServer
}
