package emit

import (
	"context"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/quota"
)

// How exact quotas are across the processes that accept requests. Events per second come from one bucket in the
// database. A process draws a quarter of a second's worth at a time, and loses what it does not use within a second. So
// in any time T at most burst + rate * T, and a quarter of a second's worth for each process, are accepted. Events per
// month are counted in the transaction that stores them. A process reads the sum once a second and adds its own, so the
// limit is exceeded by at most the events that other processes accept within that second.
const (
	drawFraction = 4           // a draw is the rate divided by this
	drawLife     = time.Second // how long drawn tokens can be used
	sumEvery     = time.Second
)

// quotas meters the tenants with limits on events.
type quotas struct {
	draw func(ctx context.Context, tenant id.UUID, l quota.Limits, want int) (int, error)
	used func(ctx context.Context, tenant id.UUID, month time.Time) (int64, error)
	now  func() time.Time

	mu     sync.Mutex
	meters map[id.UUID]*meter
}

// meter is what one process knows of a tenant's use. Its mutex is held during the query to the database: only requests
// of the same tenant wait for it.
type meter struct {
	mu      sync.Mutex
	tokens  int // drawn and not used
	drawnAt time.Time
	emptyTo time.Time // the bucket was empty: no draw before this time
	month   time.Time
	sum     int64 // stored in that month, as far as this process knows
	pending int64 // accepted and not stored yet
	readAt  time.Time
	asked   time.Time // when the limits were last read before a rejection
}

func newQuotas(d *db.DB) *quotas {
	return &quotas{
		now:    time.Now,
		meters: map[id.UUID]*meter{},
		draw: func(ctx context.Context, tenant id.UUID, l quota.Limits, want int) (n int, err error) {
			err = d.Ingest(ctx, func(q *sql.Queries) error {
				drawn, err := q.DrawTokens(ctx, sql.DrawTokensParams{
					TenantID: tenant,
					Rate:     float64(l.EventsPerSecond),
					Size:     float64(l.Burst()),
					Want:     int32(want),
				})
				n = int(drawn)
				return err
			})
			return n, err
		},
		used: func(ctx context.Context, tenant id.UUID, month time.Time) (n int64, err error) {
			err = d.Ingest(ctx, func(q *sql.Queries) error {
				n, err = q.EventsSince(ctx, tenant, month)
				return err
			})
			return n, err
		},
	}
}

func (q *quotas) of(tenant id.UUID) *meter {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.meters[tenant]
	if m == nil {
		m = &meter{}
		q.meters[tenant] = m
	}
	return m
}

// take accepts up to n events of a tenant and says why it rejects the others. If the database does not respond, nothing
// is limited here: it will not store anything either. Accepted events must be passed to settle.
func (q *quotas) take(ctx context.Context, tenant id.UUID, l quota.Limits, n int) (granted int, refusal error) {
	if l.EventsPerSecond == 0 && l.EventsPerMonth == 0 {
		return n, nil
	}
	m, now := q.of(tenant), q.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.EventsPerMonth > 0 {
		q.count(ctx, m, tenant, now)
		if left := max(int64(l.EventsPerMonth)-m.sum-m.pending, 0); int64(n) > left {
			n, refusal = int(left), l.OverMonth(now)
		}
	}
	if l.EventsPerSecond > 0 && n > 0 {
		q.fill(ctx, m, tenant, l, n, now)
		if n > m.tokens {
			n, refusal = m.tokens, l.OverSecond()
		}
		m.tokens -= n
	}
	m.pending += int64(n)
	return n, refusal
}

// count refreshes the month's sum. The sum never falls below what this process itself has stored.
func (q *quotas) count(ctx context.Context, m *meter, tenant id.UUID, now time.Time) {
	if month := quota.Month(now); !month.Equal(m.month) {
		m.month, m.sum, m.readAt = month, 0, time.Time{}
	}
	if now.Sub(m.readAt) < sumEvery {
		return
	}
	if sum, err := q.used(ctx, tenant, m.month); err == nil {
		m.sum = max(m.sum, sum)
	}
	m.readAt = now
}

// fill draws tokens if there are too few for n events.
func (q *quotas) fill(ctx context.Context, m *meter, tenant id.UUID, l quota.Limits, n int, now time.Time) {
	if now.Sub(m.drawnAt) > drawLife {
		m.tokens = 0
	}
	if m.tokens >= n || now.Before(m.emptyTo) {
		return
	}
	want := max(n-m.tokens, (l.EventsPerSecond+drawFraction-1)/drawFraction)
	got, err := q.draw(ctx, tenant, l, want)
	if err != nil {
		got = want
	}
	m.tokens, m.drawnAt = m.tokens+got, now
	if got < want {
		m.emptyTo = now.Add(max(time.Second/time.Duration(l.EventsPerSecond), 10*time.Millisecond))
	}
}

// mayAsk reports whether to read a tenant's limits again before a rejection: once a second.
func (q *quotas) mayAsk(tenant id.UUID) bool {
	m, now := q.of(tenant), q.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.asked) < sumEvery {
		return false
	}
	m.asked, m.emptyTo = now, time.Time{}
	return true
}

// settle returns the granted events that were not stored: stored says how many were.
func (q *quotas) settle(tenant id.UUID, granted, stored int) {
	if granted == 0 {
		return
	}
	m := q.of(tenant)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending -= int64(granted)
	m.sum += int64(stored)
	m.tokens += granted - stored
}

// admit accepts the items of a request as far as the tenant's quotas allow. Those beyond fail alone, except for repeats
// of accepted items, which get their first response. Events emitted in SQL are stored already and only count.
func (c *Committer) admit(ctx context.Context, l quota.Limits, r *request) {
	if len(r.items) == 0 || r.items[0].given {
		return
	}
	granted, refusal := c.quotas.take(ctx, r.tenant, l, len(r.items))
	if refusal != nil && c.quotas.mayAsk(r.tenant) {
		// The limits possibly changed. The database checks stored events against the present limits, but nothing checks
		// a rejection.
		if route, err := c.routes.refresh(ctx, r.tenant); err == nil && route.limits != l {
			c.quotas.settle(r.tenant, granted, 0)
			l = route.limits
			granted, refusal = c.quotas.take(ctx, r.tenant, l, len(r.items))
		}
	}
	if refusal == nil {
		r.charged = l.EventsPerSecond > 0 || l.EventsPerMonth > 0
		r.granted = granted
		return
	}
	r.charged, r.granted = true, granted
	known := c.repeats(ctx, r.tenant, r.items[granted:])
	kept := r.items[:granted:granted]
	for _, it := range r.items[granted:] {
		if it.IdempotencyKey != "" && known[it.IdempotencyKey] {
			kept = append(kept, it)
			continue
		}
		it.result.Err = refusal
		r.bytes -= int64(len(it.Data))
	}
	r.items = kept
}

// repeats returns the items' idempotency keys that already have a response. If they can't be read it returns none, and
// the database returns the first response later.
func (c *Committer) repeats(ctx context.Context, tenant id.UUID, items []*item) map[string]bool {
	var tenants []id.UUID
	var keys []string
	for _, it := range items {
		if it.IdempotencyKey != "" {
			tenants = append(tenants, tenant)
			keys = append(keys, it.IdempotencyKey)
		}
	}
	known := map[string]bool{}
	if len(keys) == 0 {
		return known
	}
	_ = c.db.Ingest(ctx, func(q *sql.Queries) error {
		rows, err := q.IdempotencyAnswers(ctx, tenants, keys)
		for _, r := range rows {
			known[r.Key] = true
		}
		return err
	})
	return known
}

// settle returns the grants of a request that were not used.
func (c *Committer) settle(r *request) {
	if !r.charged {
		return
	}
	stored := 0
	for _, it := range r.items[:r.granted] {
		if it.result.Err == nil && !it.result.Duplicate {
			stored++
		}
	}
	c.quotas.settle(r.tenant, r.granted, stored)
}
