package db

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/analytics"
	"posthorn/domain/id"
)

// LatencyBounds are the upper bounds of the roll-ups' histogram, in microseconds; a sixteenth slot holds what is longer.
var LatencyBounds = [15]int32{1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 3e7}

// Stats gathers the roll-ups of one transaction: attempts that share endpoint, type, minute, class and slot are one entry.
type Stats map[statKey]*statCount

type statKey struct {
	endpoint  id.UUID
	eventType string
	minute    int32
	kind      int16 // class * 16 + slot, and analytics.Retry for attempts that are not a delivery's first
}

type statCount struct {
	n  int32
	us int64
}

func (s Stats) add(o *Outcome) {
	slot, exact := slices.BinarySearch(LatencyBounds[:], o.Attempt.Total)
	if exact {
		slot++ // a bound belongs to the slot above it
	}
	k := statKey{o.EndpointID, o.EventType, int32(o.Attempt.StartedAt.Unix() / 60), o.Attempt.Class*16 + int16(slot)}
	if o.Attempts > 1 {
		k.kind += analytics.Retry
	}
	c := s[k]
	if c == nil {
		c = &statCount{}
		s[k] = c
	}
	c.n++
	c.us += int64(o.Attempt.Total)
}

// maxStats keeps a ledger row within a page, so that it is not moved out of line.
const maxStats = 100

func (s Stats) queue(b *pgx.Batch) {
	var p EnterStatsParams
	flush := func() {
		if len(p.Endpoints) > 0 {
			b.Queue(enterStats, p.Endpoints, p.Types, p.Minutes, p.Kinds, p.Counts, p.Us)
			p = EnterStatsParams{}
		}
	}
	for k, c := range s {
		p.Endpoints, p.Types, p.Minutes = append(p.Endpoints, k.endpoint), append(p.Types, k.eventType), append(p.Minutes, k.minute)
		p.Kinds, p.Counts, p.Us = append(p.Kinds, k.kind), append(p.Counts, c.n), append(p.Us, c.us)
		if len(p.Endpoints) == maxStats {
			flush()
		}
	}
	flush()
}
