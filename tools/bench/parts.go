package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// partsStem is the only scenario that runs web and worker as separate processes.
const partsStem = "parts"

// usage is what the parts have used so far: microseconds of CPU, and bytes.
type usage struct{ web, worker, postgres, wal, disk float64 }

// part is one of its figures with the words for it.
type part struct {
	name string
	of   func(*usage) *float64
}

var partNames = []part{
	{"web, µs of CPU", func(u *usage) *float64 { return &u.web }},
	{"worker, µs of CPU", func(u *usage) *float64 { return &u.worker }},
	{"PostgreSQL, µs of CPU", func(u *usage) *float64 { return &u.postgres }},
	{"WAL, bytes", func(u *usage) *float64 { return &u.wal }},
	{"disk, bytes", func(u *usage) *float64 { return &u.disk }},
}

// costs measures the cost of an event and of a delivery in each part. Two loads separate them: one event for each
// delivery, and one for ten.
func costs(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, partsStem, func(s *system) error {
		single, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		fanning, err := s.setUp(ctx, shape{
			name:      "fanning",
			tenants:   50,
			endpoints: 10,
			address:   s.receiverAddr,
			fields:    unthrottled,
		})
		if err != nil {
			return err
		}
		one, err := s.spent(ctx, rep, oneToOne, single, load{events: o.events, connections: o.connections})
		if err != nil {
			return err
		}
		ten, err := s.spent(ctx, rep, fanOut, fanning, load{events: o.fanOutEvents, connections: o.connections})
		if err != nil {
			return err
		}
		rep.Costs = split(one, ten, float64(fanning.fan))
		return nil
	})
}

// split solves for what belongs to an event and what to each of its deliveries: one is of an event with one delivery,
// many of one with fan.
func split(one, many usage, fan float64) (costs []cost) {
	for _, p := range partNames {
		delivery := (*p.of(&many) - *p.of(&one)) / (fan - 1)
		costs = append(costs, cost{
			What:     p.name,
			Event:    *p.of(&one) - delivery,
			Delivery: delivery,
			FanOut:   *p.of(&many) / fan,
		})
	}
	return costs
}

// cost is the cost in one part.
type cost struct {
	What     string  `json:"what"`
	Event    float64 `json:"event"`
	Delivery float64 `json:"delivery"`
	FanOut   float64 `json:"fan_out_share"` // a delivery with its share of the event, at the fan-out that was measured
}

// spent is the cost of an event of a load, including its deliveries: the median of the repeats.
func (s *system) spent(ctx context.Context, rep *report, name string, g *group, l load) (u usage, err error) {
	var results []result
	figures := make([][]float64, len(partNames))
	for range s.opts.repeats {
		if err := s.db.settle(ctx); err != nil {
			return u, err
		}
		if err := s.pause(ctx, settling); err != nil {
			return u, err
		}
		before, err := s.used(ctx)
		if err != nil {
			return u, err
		}
		r, err := s.measure(ctx, g, l)
		if err != nil {
			return u, err
		}
		after, err := s.used(ctx)
		if err != nil {
			return u, err
		}
		s.opts.say("%s: %s", name, r)
		results = append(results, r)
		for i, p := range partNames {
			figures[i] = append(figures[i], (*p.of(&after)-*p.of(&before))/float64(l.events))
		}
		l.from += l.events
	}
	rep.add(s.stem, name, median(results))
	for i, p := range partNames {
		*p.of(&u) = middle(figures[i])
	}
	return u, nil
}

// used reads the meters.
func (s *system) used(ctx context.Context) (u usage, err error) {
	posthorn, postgres := s.cpu()
	u.web, u.postgres = micros(posthorn), micros(postgres)
	u.worker = micros(cpuTime(s.deliverer.cmd.Process.Pid, false))
	err = s.db.owner.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,
		(SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::float8 FROM pg_inherits i
		 WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass))`, pgx.QueryExecModeSimpleProtocol).Scan(&u.wal, &u.disk)
	return u, err
}

// startDeliverer starts the separate worker process.
func (s *system) startDeliverer(ctx context.Context) error {
	metrics, err := freeAddress()
	if err != nil {
		return err
	}
	s.deliverer, err = start(s.dir+"/worker.log", append(s.env, "POSTHORN_METRICS_ADDR="+metrics), s.opts.binary, "worker")
	if err != nil {
		return err
	}
	return s.deliverer.waitFor(ctx, time.Minute, "the worker is ready", func() error { return get(fmt.Sprintf("http://%s/readyz", metrics), nil) })
}
