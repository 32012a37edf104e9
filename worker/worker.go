// Package worker is the engine: it leases lanes, reads their heads, sends what is there and records what came of it.
//
// A delivery passes five stages, each typed and small:
//
//	announcements -> reader (lease, read)        reader.go, order.go, horizon.go
//	              -> dispatcher (whose turn?)    dispatch.go, lane.go
//	              -> sender (one attempt)        worker/send
//	              -> decide (pure)               domain/delivery
//	              -> recorder (one transaction)  record.go
//
// Around them: membership (who lives), promoter (what is due), revisions (what changed), walk (what was missed) and
// chores (what must be kept in order). Everything of note is in PostgreSQL; a worker that is killed loses nothing but the
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

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/worker/jobs"
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
	Registry  prometheus.Registerer // nil: metrics are kept to itself
	Grace     time.Duration         // how long a stop waits for requests under way; default 20 s
	Inbox     http.Handler          // receives what is sent to test inboxes; nil: nothing reaches them
}

// Worker serves lanes. Make it with New; Run it once.
type Worker struct {
	db     *db.DB
	listen string
	log    *slog.Logger
	keys   *seal.Ring
	name   string
	grace  time.Duration

	member     membership
	dispatch   *dispatcher
	sender     *send.Sender
	inbox      http.Handler // receives what is sent to test inboxes; nil without
	events     *eventCache
	horizon    horizon
	promoter   *promoter
	clock      *clock
	revisions  *revisions
	assessor   *assessor
	metrics    *metrics
	signals    chan struct{}
	outbox     chan struct{} // something was emitted in SQL
	pauses     chan struct{} // operators paused something, or let it go on
	results    chan *result
	storing    atomic.Pointer[time.Time] // since when the recorder has been at its present batch; nil: it rests
	background sync.WaitGroup
	sends      sync.WaitGroup
	sending    context.Context // of the requests under way
}

// New makes a worker; it does nothing before Run.
func New(c Config) *Worker {
	w := &Worker{
		db: c.DB, listen: c.ListenURL, log: c.Log, keys: c.Keys, name: c.Name, grace: c.Grace,
		sender: send.New(c.Egress), events: newEventCache(), promoter: newPromoter(), clock: newClock(), revisions: newRevisions(), assessor: newAssessor(),
		signals: make(chan struct{}, 1), outbox: make(chan struct{}, 1), pauses: make(chan struct{}, 1), results: make(chan *result, 8192), sending: context.Background(),
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.grace <= 0 {
		w.grace = 20 * time.Second
	}
	w.inbox = c.Inbox
	w.metrics = newMetrics(c.Registry)
	w.dispatch = newDispatcher(w.startJob, w.signal, w.mayStart)
	return w
}

// Committed takes in what a committer of this process has stored and returns the endpoints that others should hear of.
func (w *Worker) Committed(b emit.Batch) []id.UUID {
	fresh := make([]*send.Payload, len(b.Events))
	for i, e := range b.Events {
		fresh[i] = &send.Payload{Event: e}
	}
	w.events.add(fresh)
	foreign := w.dispatch.wake(b.Endpoints)
	if w.member.isAlone() {
		return nil
	}
	return foreign
}

// Ready reports why the worker cannot serve lanes, or nil.
func (w *Worker) Ready() error {
	if !w.member.mayLive() {
		return fault.New(fault.Unavailable, "worker_not_ready", "The worker is not registered with the database, or its last beat is too old.")
	}
	return nil
}

// Run serves lanes until the context ends; then it starts nothing more, waits for the requests under way within its
// grace, records what came of them, and gives its lanes back.
func (w *Worker) Run(ctx context.Context) error {
	if w.learnPauses(ctx) != nil || w.register(ctx) != nil {
		return nil // asked to stop before it began
	}
	defer w.openInbox()()
	var loops, recorder sync.WaitGroup
	sending, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	w.sending = sending
	// The recorder and the beat outlive the context: what was sent must be recorded, under a worker that lives.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	recorder.Go(func() { w.record(work) })
	for _, loop := range []func(context.Context){w.read, w.promote, w.hear, w.walk, w.watch, w.followPauses, w.keepOrder, w.relay, w.verifications, w.assess, jobs.New(w.db, w.listen, w.log).Run} {
		loops.Go(func() { loop(ctx) })
	}
	var beating sync.WaitGroup
	beating.Go(func() { w.beat(work) })
	w.signal()

	<-ctx.Done()
	w.dispatch.stop()
	loops.Wait()
	w.drain(abort)
	close(w.results)
	finish, cancel := context.WithTimeout(work, 10*time.Second)
	defer cancel()
	waitFor(finish, &recorder)
	w.retire(finish)
	stop()
	beating.Wait()
	recorder.Wait()
	w.background.Wait() // the recorder starts some of it
	w.sender.Close()
	return nil
}

// openInbox lets test inboxes receive until the returned function is called.
func (w *Worker) openInbox() (shut func()) {
	if w.inbox == nil {
		return func() {}
	}
	return w.sender.OpenInbox(w.inbox)
}

// drain waits for the requests under way; what is not done within the grace is broken off and recorded as it is.
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

// retire gives the lanes back with their tokens, and takes the worker's name off the list.
func (w *Worker) retire(ctx context.Context) {
	me := w.id()
	if me.IsZero() {
		return
	}
	lanes, tokens := w.dispatch.inventory(time.Now())
	err := w.db.Worker(ctx, func(q *db.Queries) error {
		if err := q.ReleaseLanes(ctx, db.ReleaseLanesParams{Endpoints: lanes, Tokens: tokens, Worker: me}); err != nil {
			return err
		}
		if _, err := q.FreeLanesOf(ctx, &me); err != nil {
			return err
		}
		return q.RetireWorker(ctx, me)
	})
	if err != nil {
		w.log.Warn("lanes could not be given back; others take them when this worker's silence is noticed", "error", err)
	}
}

// startJob sends in a goroutine that goes on with the next delivery as long as there is one.
func (w *Worker) startJob(j *job) {
	w.sends.Add(1)
	go func() {
		defer w.sends.Done()
		for j != nil {
			j = w.perform(j)
		}
	}()
}

// perform makes one attempt, decides, hands the result to the recorder and returns the delivery that starts next.
func (w *Worker) perform(j *job) (next *job) {
	t := j.lane.target.Load()
	number := int(j.attempts) + 1
	response, attempt := w.sender.Deliver(w.sending, t.Destination, send.Message{
		Event: j.event, EventID: j.eventText(), DeliveryID: j.deliveryText(), Attempt: number, Replayed: j.replay,
	})
	decision := delivery.Decide(t.policy, number-int(j.probes), response, rand.Float64())
	attempt.Class = statClass(response, decision.Class)
	r := &result{job: j, outcome: db.Outcome{
		TenantID: j.lane.tenant, DeliveryID: j.delivery, EventID: j.event.ID, EndpointID: j.lane.id, EventType: j.event.Type, Gen: j.gen,
		Attempts: int16(number), Result: response, Attempt: attempt,
	}}
	e := end{decision: decision, result: response, broken: w.sending.Err() != nil && response.Failure == delivery.FailReset}
	if decision.Class != delivery.Success {
		e.error = lastError(response, attempt)
	}
	then := w.dispatch.finished(j, e, time.Now())
	r.outcome.Decision, r.outcome.Probes, r.health, r.assess = then.decision, j.probes, then.change, then.assess
	w.results <- r
	return then.next
}

// maxLastExcerpt is how much of an answer's body an endpoint's owner is shown with a notice, in bytes.
const maxLastExcerpt = 500

// lastError is what the endpoint's owner is told of a failure.
func lastError(r delivery.Result, a *db.AttemptRecord) db.LastError {
	e := db.LastError{Status: r.Status, Failure: r.Failure, Text: a.Error, Excerpt: delivery.Clip(string(a.ResponseExcerpt), maxLastExcerpt)}
	if e.Text == "" {
		e.Text = "the endpoint answered " + strings.TrimSpace(strconv.Itoa(r.Status)+" "+http.StatusText(r.Status))
	}
	return e
}

// The classes of the roll-ups, as the schema numbers them.
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
		return statOK // a conflict that the endpoint takes for delivered is one too
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
