package worker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// deadLetters stores n events with one failed delivery each, numbered, as if all attempts had failed. With a key all
// have it.
func (h *house) deadLetters(tenant, ep id.UUID, n int, key string) {
	h.t.Helper()
	events, deliveries, numbers := make([][16]byte, n), make([][16]byte, n), make([]string, n)
	for i := range n {
		events[i], deliveries[i], numbers[i] = db.NewID(), db.NewID(), strconv.Itoa(i)
	}
	h.exec(`INSERT INTO events (tenant_id, created_at, id, type, data, key, routing_version)
		SELECT $1, posthorn.created_at(u.id), u.id, 'order.completed', convert_to('{"n":' || u.n || '}', 'UTF8'), nullif($4, ''), 1
		FROM ROWS FROM (unnest($2::uuid[]), unnest($3::text[])) AS u(id, n)`, tenant, events, numbers, key)
	h.exec(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, settled_at)
		SELECT $1, posthorn.created_at(u.id), u.id, u.event, $2, 'order.completed', 3, 1, 1, now()
		FROM ROWS FROM (unnest($3::uuid[]), unnest($4::uuid[])) AS u(id, event)`, tenant, ep, deliveries, events)
	h.exec(`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason)
		SELECT $1, u, $2, 'order.completed', 1 FROM unnest($3::uuid[]) AS u`, tenant, ep, deliveries)
	h.exec(`INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
		SELECT ARRAY[$1::uuid], ARRAY[(posthorn.created_at(u) AT TIME ZONE 'UTC')::date], '{1}', '{0}', '{1}', '{0}', '{0}' FROM unnest($2::uuid[]) AS u`, tenant, deliveries)
}

// bulk starts a job.
func (h *house) bulk(tenant id.UUID, n deliveries.NewBulkJob) (job sql.BulkJob) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		made, err := deliveries.StartBulkJob(h.t.Context(), q, tenant, db.Author{Kind: "command"}, n)
		job.TenantID, job.ID = made.TenantID, made.ID
		return err
	})
	return h.job(job)
}

func (h *house) job(of sql.BulkJob) (job sql.BulkJob) {
	h.t.Helper()
	h.as(of.TenantID, func(q *sql.Queries) (err error) {
		job, err = q.GetBulkJob(h.t.Context(), of.TenantID, of.ID)
		return err
	})
	return job
}

// over waits until a job is done.
func (h *house) over(of sql.BulkJob, within time.Duration) (job sql.BulkJob) {
	h.t.Helper()
	eventually(h.t, within, "the job is over", func() bool { job = h.job(of); return job.State.Over() })
	return job
}

func failedOf(ep id.UUID) bulk.Filter {
	return bulk.Filter{Status: "failed", Endpoint: id.Endpoint.Format(ep)}
}

func TestTwoWorkersShareAReplayAndSendEachEventOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.MaxInFlight = 20 })
	const n = 1600
	h.deadLetters(tenant, ep, n, "")
	h.worker(false)
	h.worker(false)
	job := h.over(h.bulk(tenant, deliveries.NewBulkJob{Kind: bulk.Replay, Filter: failedOf(ep)}), 20*time.Second)
	if job.State != bulk.Done || job.Done != n || job.Exact && job.Expected != n {
		t.Errorf("the job: %+v", job)
	}
	h.settled(20*time.Second, delivery.Delivered, n)
	times := map[string]int{}
	for _, a := range r.seen() {
		times[a.id]++
		if a.header.Get("webhook-replayed") != "true" || a.attempt != "1" {
			t.Fatalf("%s: replayed %q, attempt %s", a.id, a.header.Get("webhook-replayed"), a.attempt)
		}
	}
	if len(times) != n || len(r.seen()) != n {
		t.Errorf("%d events arrived %d times, want %d once", len(times), len(r.seen()), n)
	}
	h.balanced()
}

func TestAReplayKeepsTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering = "key" })
	const n = 60
	h.deadLetters(tenant, ep, n, "k")
	h.worker(true)
	h.bulk(tenant, deliveries.NewBulkJob{Kind: bulk.Replay, Filter: failedOf(ep), Pace: 20})
	h.settled(25*time.Second, delivery.Delivered, n)
	if got := ns(r.seen()); !slices.Equal(got, upTo(n)) {
		t.Errorf("the order: %v", got)
	}
}

// In each chunk the first statement that writes fails once, then the second, the third and the last. A failed
// transaction leaves neither a row of its chunk nor its progress.
func TestAChunkThatFailsIsDoneOnceInTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://receiver.test", nil)
	const n = 90
	h.deadLetters(tenant, ep, n, "")
	owner, err := pgx.Connect(t.Context(), h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.Background()) }()
	for _, statement := range []string{
		"CREATE SEQUENCE posthorn.faults; GRANT USAGE ON SEQUENCE posthorn.faults TO PUBLIC",
		`CREATE FUNCTION posthorn.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('posthorn.faults') % 14 IN (1, 3, 6, 10) THEN RAISE 'fault' USING ERRCODE = '57P01'; END IF; RETURN NULL; END $$`,
		"CREATE TRIGGER fail AFTER INSERT ON posthorn.deliveries FOR EACH STATEMENT EXECUTE FUNCTION posthorn.fail()",
		"CREATE TRIGGER fail AFTER INSERT ON posthorn.queue FOR EACH STATEMENT EXECUTE FUNCTION posthorn.fail()",
		"CREATE TRIGGER fail AFTER UPDATE ON posthorn.dead_letters FOR EACH STATEMENT EXECUTE FUNCTION posthorn.fail()",
		"CREATE TRIGGER fail AFTER UPDATE ON posthorn.bulk_jobs FOR EACH ROW WHEN (OLD.done <> NEW.done) EXECUTE FUNCTION posthorn.fail()",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	job := h.bulk(tenant, deliveries.NewBulkJob{Kind: bulk.Replay, Filter: failedOf(ep), Pace: 30})
	failures := 0
	eventually(t, 30*time.Second, "the job is over", func() bool {
		step, err := deliveries.StepBulkJob(t.Context(), h.db, deliveries.BulkRef{TenantID: tenant, ID: job.ID})
		var broken *fault.Error
		if errors.As(err, &broken) && broken.Code == "database_unavailable" {
			failures++
		} else if err != nil {
			t.Fatal(err)
		}
		if !step.Over {
			h.exec("UPDATE bulk_jobs SET due_at = now()")
		}
		return err == nil && step.Over
	})
	if want := 4 * n / 30; failures != want {
		t.Errorf("%d chunks failed, want %d", failures, want)
	}
	if after := h.job(job); after.State != bulk.Done || after.Done != n {
		t.Errorf("the job: %+v", after)
	}
	if got := h.count("SELECT count(DISTINCT replay_of) FROM deliveries"); got != n || h.count("SELECT count(*) FROM queue WHERE replay") != n {
		t.Errorf("%d of %d were replayed, %d rows wait", got, n, h.waiting(ep))
	}
	h.balanced()
}

// A cancellation over a lane at full speed: each delivery is delivered or canceled, and the ledger knows which.
func TestABulkCancelUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		rate := 100
		s.MaxInFlight, s.RateLimit, s.Burst = 10, &rate, &rate
	})
	h.pause(tenant, ep)
	const n = 3000
	h.emitN(tenant, n)
	h.worker(true)
	h.resume(tenant, ep)
	eventually(t, 10*time.Second, "deliveries are under way", func() bool { return len(r.seen()) > 50 })
	job := h.over(h.bulk(tenant, deliveries.NewBulkJob{Kind: bulk.Cancel, Filter: bulk.Filter{Status: "pending"}}), 20*time.Second)
	eventually(t, 20*time.Second, "nothing waits", func() bool { return h.waiting(ep) == 0 })
	h.balanced()
	var delivered, canceled int // at one moment: a late success changes one from canceled to delivered
	h.query("SELECT count(*) FILTER (WHERE status = 2), count(*) FILTER (WHERE status = 4) FROM deliveries", []any{&delivered, &canceled})
	if job.State != bulk.Done || canceled == 0 || delivered+canceled != n || int(job.Done) < canceled {
		t.Errorf("%d delivered, %d canceled; the job: %+v", delivered, canceled, job)
	}
	eventually(t, time.Minute, "every request ended in a delivery", func() bool {
		return h.count("SELECT count(*) FROM deliveries WHERE status = 2") == len(r.seen())
	})
}

// resumeDropping resumes an endpoint as a member does who drops the held deliveries.
func (h *house) resumeDropping(tenant, ep id.UUID) (job sql.BulkJob) {
	h.t.Helper()
	h.as(tenant, func(q *sql.Queries) error {
		if _, _, err := endpoints.SetState(h.t.Context(), q, h.ring, tenant, ep, endpoint.Resume); err != nil {
			return err
		}
		made, err := deliveries.DropHeld(h.t.Context(), q, tenant, ep, db.Author{Kind: "command"}, "")
		job.TenantID, job.ID = made.TenantID, made.ID
		return err
	})
	return h.job(job)
}

// Events are emitted before the pause, during it and after it, without a break. Deliveries to an ordered endpoint wait
// only as long as older ones are being dropped.
func TestDroppedDeliveriesAreNotSentAndLaterOnesAre(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"none", "key"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			tenant := h.tenant()
			r := newReceiver(t, nil)
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Ordering, s.MaxInFlight = ordering, 20 })
			h.worker(true)
			h.worker(false)
			h.pause(tenant, ep)
			eventually(t, 5*time.Second, "nobody has the lane", func() bool { return h.count("SELECT count(*) FROM lanes WHERE owner IS NOT NULL") == 0 })
			const held = 1200
			batch := make([]emit.Item, held)
			for i := range batch {
				batch[i] = item("order.completed", "k", i)
			}
			h.emit(tenant, batch...)
			h.emit(tenant, emit.Item{Emission: event.Emission{
				Type:      "order.completed",
				Data:      []byte(`{"n":-1}`),
				DeliverAt: time.Now().Add(3 * time.Second),
			}})

			stop, sent := make(chan struct{}), make(chan []id.UUID)
			go func() { // emissions continue during the resume
				var after []id.UUID
				defer func() { sent <- after }()
				for n := held; ; n++ {
					select {
					case <-stop:
						return
					default:
						after = append(after, h.emit(tenant, item("order.completed", "k", n))...)
					}
				}
			}()
			job := h.resumeDropping(tenant, ep)
			job = h.over(job, 30*time.Second)
			close(stop)
			events := <-sent
			for left := h.waiting(ep); left > 0; { // one after the other: as many as were emitted during the job
				before := left
				eventually(t, 30*time.Second, "fewer wait", func() bool { left = h.waiting(ep); return left < before })
			}
			h.balanced()
			if job.State != bulk.Done || job.Done < held || h.count("SELECT count(*) FROM lanes WHERE drop_below > 0") != 0 {
				t.Errorf("the job: %+v", job)
			}
			if n := h.count("SELECT count(*) FROM deliveries WHERE status = 4"); n != int(job.Done) {
				t.Errorf("%d are canceled, the job says %d", n, job.Done)
			}
			got := ns(r.seen())
			if i := slices.Index(got, -1); i < 0 {
				t.Error("the scheduled event was dropped")
			} else {
				got = slices.Delete(got, i, i+1)
			}
			want := make([]int, 0, len(events))
			for n := int(job.Done); n < held+len(events); n++ {
				// exactly the last ones: numbers of the queue are drawn in the order of emission here
				want = append(want, n)
			}
			if ordering == "none" {
				slices.Sort(got)
			}
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%d arrived, want %d: %v", len(got), len(want), got[:min(len(got), 20)])
			}
		})
	}
}

func TestACanceledDropDeliversTheRest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	r := newReceiver(t, nil)
	ep := h.endpoint(tenant, r.URL, nil)
	h.pause(tenant, ep)
	h.emitN(tenant, 5)
	job := h.resumeDropping(tenant, ep)
	h.exec("UPDATE bulk_jobs SET due_at = now() + interval '1 hour'") // no chunk was done yet
	w, _ := h.worker(true)
	h.emit(tenant, item("order.completed", "", 5))
	h.settled(10*time.Second, delivery.Delivered, 1)
	if got := ns(r.seen()); !slices.Equal(got, []int{5}) {
		t.Errorf("arrived: %v", got)
	}
	h.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.CancelBulkJob(t.Context(), q, tenant, job.ID, db.Author{Kind: "command"})
		return err
	})
	h.followed(w, ep)
	h.settled(10*time.Second, delivery.Delivered, 6)
	h.balanced()
}

// An event is expunged while its request is in flight: the request is recorded, its response is not.
func TestResponsesToAnExpungedEventAreNotKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	g := newGate(t)
	r := newReceiver(t, func(arrival) int { g.pass(); return 500 })
	r.headers = http.Header{"X-Echo": {"secret"}}
	h.endpoint(tenant, r.URL, nil)
	h.worker(true)
	event := h.emit(tenant, item("order.completed", "", 1))[0]
	g.waitEntered(t)
	h.as(tenant, func(q *sql.Queries) error {
		done, err := deliveries.ExpungeEvents(t.Context(), q, tenant, []id.UUID{event})
		if err == nil && (len(done.Events) != 1 || done.Canceled != 1) {
			t.Errorf("expunged: %+v", done)
		}
		return err
	})
	g.release()
	eventually(t, 10*time.Second, "the attempt is on record", func() bool { return h.count("SELECT count(*) FROM attempts WHERE late AND status = 500") == 1 })
	if n := h.count("SELECT count(*) FROM attempts WHERE response_headers IS NOT NULL OR response_excerpt IS NOT NULL"); n != 0 {
		t.Error("with what was answered")
	}
	if status, reason, _ := h.state(h.deliveryOf(event)); status != delivery.Canceled || reason != delivery.Expunged {
		t.Errorf("the delivery is %s, %s", status, reason)
	}
	h.balanced()
}
