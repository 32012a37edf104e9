package main

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// The words of the rows of transformations and batches.
const (
	shapedStem  = "shaped"
	batchesStem = "batches"
	drained     = "backlog of one endpoint"
	together    = ", 100 in a request"
)

// leastForBatches is how many times the events a CPU must deliver a hundred in a request. The rows of the database, one
// or more of each event, are what batches don't share.
const leastForBatches = 1.8

// shapedFields makes endpoints that build their own JSON. It keeps the time of emission, which the receiver reads.
var shapedFields = map[string]any{
	"rate_limit":    nil,
	"max_in_flight": 50,
	"transformation": map[string]any{
		"kind":       "cel",
		"expression": `{"text": "Event " + event.id + " of type " + event.type, "emitted_ns": data.emitted_ns, "pad": data.pad, "at": event.timestamp}`,
	},
}

// shapedEvents measures endpoints with an expression in CEL beside plain ones.
func shapedEvents(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, shapedStem, func(plain *system) error {
		plainGroup, err := plain.healthy(ctx)
		if err != nil {
			return err
		}
		return with(ctx, o, shapedStem, func(s *system) error {
			g, err := s.setUp(ctx, shape{name: "shaped", tenants: 50, endpoints: 1, address: s.receiverAddr, fields: shapedFields})
			if err != nil {
				return err
			}
			l := load{events: o.events, connections: o.connections}
			return repeat(ctx, rep, oneToOne, l, side{plain, plainGroup, without}, side{s, g, ", shaped by an expression"})
		})
	})
}

// batches measures how one endpoint gets a backlog: an event a request, and a hundred. Accepting the events is not in
// it.
func batches(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, batchesStem, func(s *system) error {
		fields := maps.Clone(unthrottled)
		fields["batch_max_events"], fields["batch_max_wait_ms"] = 100, 10
		rows := map[string]map[string]any{without: unthrottled, together: fields}
		repeats := map[string][]result{}
		for i := range o.repeats {
			for _, suffix := range []string{without, together} {
				r, err := s.drainOne(ctx, fmt.Sprintf("drain%d%d", i, len(suffix)), rows[suffix], o.events)
				if err != nil {
					return err
				}
				o.say("%s%s, %d of %d: %s", drained, suffix, i+1, o.repeats, r)
				repeats[suffix] = append(repeats[suffix], r)
			}
		}
		rep.add(batchesStem, drained+without, median(repeats[without]))
		rep.add(batchesStem, drained+together, median(repeats[together]))
		return nil
	})
}

// drainOne writes a backlog for a new endpoint and measures until it is delivered and recorded.
func (s *system) drainOne(ctx context.Context, name string, fields map[string]any, n int64) (r result, err error) {
	g, err := s.setUp(ctx, shape{name: name, tenants: 1, endpoints: 1, address: s.receiverAddr, fields: fields})
	if err != nil {
		return r, err
	}
	resume, err := s.db.writeOutage(ctx, g.tenants, 1, n)
	if err != nil {
		return r, err
	}
	before, err := s.meters(ctx)
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := resume(); err != nil {
		return r, err
	}
	for {
		left, err := s.db.queued(ctx, g.tenants)
		if err != nil {
			return r, err
		}
		if left == 0 {
			break
		}
		if time.Since(began) > 10*time.Minute {
			return r, fmt.Errorf("%s: %d deliveries are left after ten minutes", name, left)
		}
		if err := s.pause(ctx, 20*time.Millisecond); err != nil {
			return r, err
		}
	}
	after, err := s.meters(ctx)
	if err != nil {
		return r, err
	}
	r.Deliveries = n
	r.EndToEnd = float64(n) / time.Since(began).Seconds()
	r.addCosts(before, after)
	delivered, err := s.db.recorded(ctx, g.tenants, time.Unix(0, 0))
	if r.Lost = n - delivered; r.Lost != 0 {
		r.Problem = "not recorded as delivered"
	}
	return r, err
}
