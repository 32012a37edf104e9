package queue

import (
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/ledger"
	"posthorn/db/sql"
	"posthorn/domain/analytics"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// attemptStats gathers the roll-ups of one transaction: attempts that share endpoint, type, minute, class and slot are
// one entry.
type attemptStats map[statKey]*statCount

type statKey struct {
	endpoint  id.UUID
	eventType string
	minute    int32
	kind      int16 // class * 16 + slot, and analytics.Retry for attempts that are not a delivery's first
}

type statCount struct {
	n           int32
	us          int64
	least, most int32 // us of the shortest and of the longest
}

func (s attemptStats) add(o *Outcome) {
	slot, exact := slices.BinarySearch(health.LatencyBounds[:], time.Duration(o.Attempt.Total)*time.Microsecond)
	if exact {
		slot++ // a bound itself belongs to the slot above it
	}
	k := statKey{o.EndpointID, o.EventType, int32(o.Attempt.StartedAt.Unix() / 60), o.Attempt.Class*16 + int16(slot)}
	if o.Attempts > 1 {
		k.kind += analytics.Retry
	}
	c := s[k]
	if c == nil {
		c = &statCount{least: math.MaxInt32}
		s[k] = c
	}
	c.n++
	c.us += int64(o.Attempt.Total)
	c.least = min(c.least, o.Attempt.Total)
	c.most = max(c.most, o.Attempt.Total)
}

// failureCounts counts the results of failed attempts, by endpoint, minute and code.
type failureCounts map[failureKey]int32

type failureKey struct {
	endpoint id.UUID
	minute   int32
	code     int16 // the HTTP status; negative: the failure
}

// failureCode is the stored form of a result, and ErrorCount reads it back.
func failureCode(r delivery.Result) int16 {
	if r.Failure != delivery.FailNone {
		return -int16(r.Failure)
	}
	return int16(r.Status)
}

// ErrorCount is the inverse of failureCode.
func ErrorCount(code int16, n int64) health.ErrorCount {
	if code < 0 {
		return health.ErrorCount{Failure: delivery.Failure(-code), Count: n}
	}
	return health.ErrorCount{Status: int(code), Count: n}
}

func (f failureCounts) add(o *Outcome) {
	if o.Attempt.Class == health.ClassOK {
		return
	}
	f[failureKey{o.EndpointID, int32(o.Attempt.StartedAt.Unix() / 60), failureCode(o.Result)}]++
}

func (f failureCounts) queue(b *pgx.Batch) {
	var p sql.EnterFailuresParams
	flush := func() {
		if len(p.Endpoints) > 0 {
			b.Queue(sql.EnterFailures, db.Args(p)...)
			p = sql.EnterFailuresParams{}
		}
	}
	for k, n := range f {
		p.Endpoints = append(p.Endpoints, k.endpoint)
		p.Minutes = append(p.Minutes, k.minute)
		p.Codes = append(p.Codes, k.code)
		p.Counts = append(p.Counts, n)
		if len(p.Endpoints) == maxStats {
			flush()
		}
	}
	flush()
}

// maxStats keeps a ledger row within a page, so that it is not stored out of line.
const maxStats = 100

// queue enters the roll-ups. The totals go into the same row if both are small.
func (s attemptStats) queue(b *pgx.Batch, totals ledger.Totals) {
	p := newOutcomeEntries(len(s))
	switch {
	case len(totals) == 0:
	case len(s)+len(totals) > maxStats:
		tenants, days, counts := totals.Columns()
		b.Queue(sql.EnterSettled, tenants, days, counts[0], counts[1], counts[2], counts[3], counts[4])
	default:
		var counts [6][]int32
		p.Tenants, p.Days, counts = totals.Columns()
		p.Accepted, p.Delivered, p.Failed, p.Canceled, p.Expunged = counts[0], counts[1], counts[2], counts[3], counts[4]
	}
	flush := func() {
		if len(p.Endpoints)+len(p.Tenants) > 0 {
			b.Queue(sql.EnterOutcomes, db.Args(p)...)
			p = newOutcomeEntries(0)
		}
	}
	for k, c := range s {
		p.Endpoints = append(p.Endpoints, k.endpoint)
		p.Types = append(p.Types, k.eventType)
		p.Minutes = append(p.Minutes, k.minute)
		p.Kinds = append(p.Kinds, k.kind)
		p.Counts = append(p.Counts, c.n)
		p.Us = append(p.Us, c.us)
		p.Least = append(p.Least, c.least)
		p.Longest = append(p.Longest, c.most)
		if len(p.Endpoints) == maxStats {
			flush()
		}
	}
	flush()
}

// newOutcomeEntries makes empty slices instead of nil ones, which would be NULL.
func newOutcomeEntries(stats int) sql.EnterOutcomesParams {
	n := min(stats, maxStats)
	return sql.EnterOutcomesParams{
		Tenants:   []id.UUID{},
		Days:      []time.Time{},
		Accepted:  []int32{},
		Delivered: []int32{},
		Failed:    []int32{},
		Canceled:  []int32{},
		Expunged:  []int32{},
		Endpoints: make([]id.UUID, 0, n),
		Types:     make([]string, 0, n),
		Minutes:   make([]int32, 0, n),
		Kinds:     make([]int16, 0, n),
		Counts:    make([]int32, 0, n),
		Us:        make([]int64, 0, n),
		Least:     make([]int32, 0, n),
		Longest:   make([]int32, 0, n),
	}
}
