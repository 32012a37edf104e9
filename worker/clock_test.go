package worker

import (
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
)

// stepping is a worker for which the database's clock appears to step: the elapsed time here steps the other way.
type stepping struct {
	*Worker
	ahead time.Duration
}

func (h *house) stepping() *stepping {
	s := &stepping{Worker: New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring})}
	s.clock.bootTime = func() time.Duration { return bootTime() - s.ahead }
	return s
}

// look is one scan of the retries.
func (s *stepping) scheduleOnce(h *house) (ready int) {
	h.t.Helper()
	n, _, err := s.scheduleDue(h.t.Context(), time.Time{})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestRetriesKeepTheirDistanceWhenTheClockSteps(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://receiver.example/hook", nil)
	h.emitN(tenant, 3)
	due := func(state int) (in time.Duration) {
		var seconds float64
		h.query("SELECT coalesce(extract(epoch FROM min(due_at) - now()), 0)::float8 FROM queue WHERE state = $1", []any{&seconds}, state)
		return time.Duration(seconds * float64(time.Second))
	}
	h.exec(`UPDATE queue SET state = 1, due_at = now() + interval '30 minutes' WHERE seq = (SELECT min(seq) FROM queue)`)
	h.exec(`UPDATE queue SET state = 3, due_at = now() + interval '2 hours' WHERE seq = (SELECT max(seq) FROM queue)`)
	h.exec(`UPDATE lanes SET not_before = now() + interval '10 minutes' WHERE endpoint_id = $1`, ep)
	first, second := h.stepping(), h.stepping()
	for range 2 {
		if first.scheduleOnce(h)+second.scheduleOnce(h) != 0 {
			t.Fatal("something was promoted before its time")
		}
	}
	for _, tt := range []struct{ step, retry time.Duration }{
		{time.Hour, 90 * time.Minute},
		{-time.Hour, 30 * time.Minute},
		{30 * 24 * time.Hour, 30*24*time.Hour + 30*time.Minute},
	} {
		// A time that is in the past after a backward step is due, but nothing is sent only because of that.
		first.ahead += tt.step
		second.ahead += tt.step
		for range 2 {
			if first.scheduleOnce(h)+second.scheduleOnce(h) != 0 {
				t.Fatalf("a step of %v promoted something", tt.step)
			}
		}
		// Here the clock itself has not moved, so a moved due time is visible.
		if got := due(1); (got - tt.retry).Abs() > 20*time.Second {
			t.Errorf("after a step of %v the retry is due in %v, want %v: moved once, not by each worker", tt.step, got, tt.retry)
		}
	}
	if got := due(3); (got - 2*time.Hour).Abs() > 20*time.Second {
		t.Errorf("what is to be sent at a time of day was moved to %v from now", got)
	}
	if n := h.count("SELECT count(*) FROM lanes WHERE not_before > now() + interval '29 days'"); n != 1 {
		t.Errorf("%d lanes wait as long as Retry-After said", n)
	}
	if n := h.count("SELECT count(*) FROM clock WHERE shifted BETWEEN 30 * 86400 - 60 AND 30 * 86400 + 60"); n != 1 {
		t.Error("the steps are not on record")
	}
	// A worker that was frozen during the step reads it from the record, and adds none of its own.
	late := h.stepping()
	late.scheduleOnce(h)
	late.clock.at, late.clock.shifted = late.clock.at.Add(-30*24*time.Hour), 0
	if late.scheduleOnce(h); late.clock.shifted == 0 || (due(1)-30*24*time.Hour-30*time.Minute).Abs() > 20*time.Second {
		t.Errorf("a worker that comes late moved retries again: due in %v", due(1))
	}
}

// What is old by a clock that was set can be young: nothing irreversible happens because of it.
func TestNothingEndsByItsAgeForADayAfterTheClockStepped(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, "https://receiver.example/hook", nil)
	w := New(Config{DB: h.db, ListenURL: h.url, Log: h.log, Egress: h.policy, Keys: h.ring})
	keys := func() int {
		if err := w.maintenance.Do(t.Context(), "expire idempotency keys"); err != nil {
			t.Fatal(err)
		}
		return h.count("SELECT count(*) FROM idempotency_keys")
	}
	remember := func() {
		h.exec("INSERT INTO idempotency_keys (tenant_id, key, body_hash, event_id, deliveries, expires_at) VALUES ($1, 'k', '\\x00', gen_random_uuid(), 1, now() - interval '1 hour')", tenant)
	}
	remember()
	if keys() != 0 {
		t.Error("keys of emission are never forgotten")
	}
	at := time.Now()
	if moved, _, err := h.db.ClockStepped(t.Context(), 0, 30*24*time.Hour, stepLeast); err != nil ||
		moved != 30*24*time.Hour {
		t.Fatalf("moved by %v, %v", moved, err)
	}
	remember()
	if keys() != 1 {
		t.Error("a key of emission was forgotten on a clock that was just set")
	}
	// Ten failures that seem to have lasted for a month: the real duration is unknown.
	h.counted(tenant, ep, delivery.Counters{
		ConsecutiveFailures: 20,
		UnhealthySince:      at.Add(-30 * 24 * time.Hour),
		FirstFailureAt:      at.Add(-30 * 24 * time.Hour),
	}, time.Time{})
	if done := h.assess(tenant, ep, at); done.Disabled != "" {
		t.Errorf("the endpoint was disabled as %s on a clock that was just set", done.Disabled)
	}
	if done := h.assess(tenant, ep, at.Add(5*24*time.Hour+time.Minute)); done.Disabled != health.Unhealthy {
		t.Errorf("five days after the step it is disabled as %q, want unhealthy", done.Disabled)
	}
	for after, want := range map[time.Duration]bool{0: false, 23 * time.Hour: false, 25 * time.Hour: true} {
		if quiet, err := h.db.IsClockQuiet(t.Context(), at.Add(after)); err != nil || quiet != want {
			t.Errorf("%v after the step the clock is trusted: %v, %v", after, quiet, err)
		}
	}
}

func TestOnlyAChangeBeyondElapsedTimeIsAStep(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name         string
		now          time.Duration // on the database's clock since the first query
		shifted      float64
		began, ended time.Duration
		want         time.Duration
	}{
		{"nothing", time.Second, 0, time.Second, time.Second, 0},
		{"drift", 4 * time.Second, 0, time.Second, time.Second, 0},
		{"an hour ahead", time.Hour + time.Second, 0, time.Second, time.Second, time.Hour},
		{"an hour back", time.Second - time.Hour, 0, time.Second, time.Second, -time.Hour},
		{"the database was away for an hour", time.Hour, 0, time.Hour, time.Hour, 0},
		{"this process was frozen amid the look", time.Second, 0, time.Second, time.Hour, 0},
		{"the database was frozen amid the look", time.Hour, 0, time.Second, time.Hour, 0},
		{"taken account of by another", time.Hour + time.Second, 3600, time.Second, time.Second, 0},
		{"two steps, one of them taken account of", 3*time.Hour + time.Second, 3600, time.Second, time.Second, 3 * time.Hour},
	} {
		c := &clock{}
		if c.observe(at, 0, 0, 0) != 0 {
			t.Fatal("the first look sees a step")
		}
		if got := c.observe(at.Add(tt.now), tt.shifted, tt.began, tt.ended); (got - tt.want).Abs() > time.Millisecond {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
