package emit

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/quota"
)

const perSecond, perMonth, maxPayload = "events_per_second", "events_per_month", "max_payload"

// limit sets a tenant's limits, as in its settings.
func (h *house) limit(tenant id.UUID, limits map[string]int64) {
	h.t.Helper()
	text, err := json.Marshal(map[string]any{"limits": limits})
	if err != nil {
		h.t.Fatal(err)
	}
	err = h.db.Console(h.t.Context(), func(q *sql.Queries) error {
		t, err := q.GetTenant(h.t.Context(), tenant)
		if err != nil {
			return err
		}
		_, err = q.UpdateTenant(h.t.Context(), sql.UpdateTenantParams{
			TenantID:      tenant,
			Name:          t.Name,
			StrictTypes:   t.StrictTypes,
			RetentionDays: t.RetentionDays,
			Settings:      text,
		})
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// clocked are quotas with a clock and a bucket of the test.
func clocked(at *time.Time, draw func(want int) (int, error), sum func() (int64, error)) *quotas {
	q := newQuotas(nil)
	q.now = func() time.Time { return *at }
	q.draw = func(_ context.Context, _ id.UUID, _ quota.Limits, want int) (int, error) { return draw(want) }
	q.used = func(context.Context, id.UUID, time.Time) (int64, error) { return sum() }
	return q
}

func TestUnusedTokensExpireAfterASecond(t *testing.T) {
	t.Parallel()
	at, asked := time.Date(2031, 3, 9, 0, 0, 0, 0, time.UTC), 0
	left := 30
	q := clocked(&at, func(want int) (int, error) {
		asked++
		got := min(want, left)
		left -= got
		return got, nil
	}, nil)
	l, tenant := quota.Limits{EventsPerSecond: 40}, db.NewID()
	take := func(n, want int, refused bool) {
		t.Helper()
		got, err := q.take(t.Context(), tenant, l, n)
		if got != want || (err != nil) != refused {
			t.Errorf("of %d events %d are let through, want %d; %v", n, got, want, err)
		}
	}
	take(1, 1, false) // draws ten
	take(9, 9, false)
	if asked != 1 {
		t.Errorf("the bucket was asked %d times for one draw", asked)
	}
	take(1, 1, false)
	at = at.Add(time.Second + time.Millisecond)
	take(10, 10, false) // the nine have expired; draws the last ten
	take(2, 0, true)    // empty
	take(1, 0, true)    // and no second draw immediately
	if asked != 4 {
		t.Errorf("the bucket was asked %d times, want 4", asked)
	}
	q.settle(tenant, 10, 4) // six were not stored
	take(6, 6, false)
	at = at.Add(time.Second)
	left = 5
	take(7, 5, true)
}

func TestAnUnavailableDatabaseLimitsNothing(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 3, 9, 0, 0, 0, 0, time.UTC)
	away := errors.New("away")
	q := clocked(&at, func(int) (int, error) { return 0, away }, func() (int64, error) { return 0, away })
	if n, err := q.take(t.Context(), db.NewID(), quota.Limits{EventsPerSecond: 1, EventsPerMonth: 1000}, 5); n != 5 ||
		err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestAMonthIsCountedOnceAndRestarts(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 3, 31, 23, 59, 58, 0, time.UTC)
	sum := int64(90)
	q := clocked(&at, nil, func() (int64, error) { return sum, nil })
	l, tenant := quota.Limits{EventsPerMonth: 100}, db.NewID()
	if n, err := q.take(t.Context(), tenant, l, 8); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	q.settle(tenant, 8, 6) // two were not stored: 96 are
	if n, err := q.take(t.Context(), tenant, l, 8); n != 4 || err == nil {
		t.Errorf("%d are let through, want 4; %v", n, err)
	}
	q.settle(tenant, 4, 4)
	sum, at = 99, at.Add(time.Second) // the database's number is older than what this process knows
	if n, _ := q.take(t.Context(), tenant, l, 1); n != 0 {
		t.Error("a sum that is older than what was stored since is believed")
	}
	sum, at = 0, at.Add(time.Second)
	if n, err := q.take(t.Context(), tenant, l, 100); n != 100 || err != nil {
		t.Errorf("in the new month %d are let through; %v", n, err)
	}
}

func TestItemsBeyondAQuotaFailAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	h.endpoint(tenant, nil)
	h.limit(tenant, map[string]int64{perMonth: 5, maxPayload: 1024})
	large := posted(9, "")
	large.Emission.Data = []byte(`"` + strings.Repeat("x", 1023) + `"`)
	items := []Item{posted(1, "a"), posted(2, ""), large, posted(3, ""), posted(4, "")}
	for i, r := range h.commit.Emit(t.Context(), tenant, items) {
		if want := map[bool]string{true: "payload_too_large"}[i == 2]; code(r.Err) != want {
			t.Errorf("item %d: %v", i, r.Err)
		}
	}
	// Four are stored, and one more is allowed. The repeat of the first costs nothing, and gets the first response.
	items = []Item{posted(5, "b"), posted(1, "a"), posted(6, "c"), posted(7, "")}
	results := h.commit.Emit(t.Context(), tenant, items)
	for i, want := range []string{"", "", "events_per_month_limit", "events_per_month_limit"} {
		if code(results[i].Err) != want {
			t.Errorf("item %d: %v", i, results[i].Err)
		}
	}
	if !results[1].Duplicate {
		t.Error("the repeat is no repeat")
	}
	if r := one(h.commit, tenant, posted(5, "b")); r.Err != nil || !r.Duplicate {
		t.Errorf("a repeat over the limit: %+v", r)
	}
	changed := posted(50, "b")
	if r := one(h.commit, tenant, changed); code(r.Err) != "idempotency_conflict" {
		t.Errorf("another body under a known key: %+v", r)
	}
	if r := one(h.commit, other, posted(1, "")); r.Err != nil {
		t.Errorf("another tenant: %v", r.Err)
	}
	var used int64
	if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
		u, err := accounts.ReadUsage(t.Context(), q, tenant, 50, 1<<18, time.Now())
		used = u.Events
		return err
	}); err != nil || used != 5 || h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant) != 5 {
		t.Errorf("%d events are counted, want 5: %v", used, err)
	}
	h.limit(tenant, map[string]int64{perMonth: 0})
	for began := time.Now(); ; {
		r := one(h.commit, tenant, posted(8, ""))
		if r.Err == nil {
			break
		}
		if time.Since(began) > 2*sumEvery {
			t.Fatalf("unlimited again: %v", r.Err)
		}
	}
	h.balanced()
}

// Two committers are two processes that accept requests.
func TestEventsASecondHoldAcrossProcesses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	const rate = 20
	h.limit(tenant, map[string]int64{perSecond: rate})
	second, _ := h.committer(open(t, h.url))
	began := time.Now()
	var accepted atomic.Int64
	var emitters sync.WaitGroup
	for i, c := range []*Committer{h.commit, second, h.commit, second} {
		emitters.Go(func() {
			for n := 0; time.Since(began) < 1500*time.Millisecond; n++ {
				r := one(c, tenant, posted(i*100000+n, ""))
				if r.Err == nil {
					accepted.Add(1)
				} else if code(r.Err) != "events_per_second_limit" {
					t.Error(r.Err)
					return
				}
			}
		})
	}
	emitters.Wait()
	took := time.Since(began)
	most := int64(2*rate + rate*took.Seconds() + 2*rate/drawFraction + 1)
	least := int64(rate*took.Seconds()) - 2*rate/drawFraction
	if n := accepted.Load(); n > most || n < least {
		t.Errorf("%d events were accepted in %v by two processes, want %d to %d", n, took, least, most)
	}
	if n := h.count("SELECT count(*) FROM events WHERE tenant_id = $1", tenant); int64(n) != accepted.Load() {
		t.Errorf("%d events are stored, %d were accepted", n, accepted.Load())
	}
}

func TestATenantIsNotifiedOnceOfEachStageOfItsMonth(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.limit(tenant, map[string]int64{perMonth: 10})
	fold := func() {
		if err := h.db.Worker(t.Context(), func(q *sql.Queries) error {
			_, err := q.FoldLedger(t.Context(), 1000)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	emitted := 0
	for _, tt := range []struct {
		until int
		want  string
	}{{7, ""}, {8, string(notice.QuotaWarning)}, {9, string(notice.QuotaWarning)}, {10, string(notice.QuotaReached)}} {
		for ; emitted < tt.until; emitted++ {
			if r := one(h.commit, tenant, posted(emitted, "")); r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		fold()
		for range 2 {
			if _, err := accounts.PostQuotaNotices(t.Context(), h.db, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.count("SELECT count(*) FROM notices WHERE tenant_id = $1", tenant); n != map[string]int{
			"":                          0,
			string(notice.QuotaWarning): 1,
			string(notice.QuotaReached): 2,
		}[tt.want] {
			t.Errorf("after %d events there are %d notices", tt.until, n)
		}
	}
	if n := h.count("SELECT count(*) FROM notices WHERE details->>'used' = '10' AND details->>'limit' = '10' AND kind = $1", string(notice.QuotaReached)); n != 1 {
		t.Error("the notice does not say how many")
	}
}
