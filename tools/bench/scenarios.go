package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// scenario is one group of rows. Each runs on its own system.
type scenario struct {
	name string
	what string
	run  func(context.Context, *options, *report) error
}

// The words of the table's rows; report looks its promises up by them.
const (
	oneToOne = "one to one"
	light    = "50/s"
	fanOut   = "fan-out 10"
	without  = ", without" // the burden of the scenario
)

func scenarios() []scenario {
	return []scenario{
		{"raw", "HTTP posts from generator to receiver, nothing between: the machine's own limit", rawHop},
		{"one-to-one", "50 endpoints of 50 tenants, one event for each delivery", engine},
		{"fan-out", "50 tenants with ten endpoints each", fanOutTen},
		{partsStem, "web and worker apart: CPU of each part, WAL and disk, by event and delivery", costs},
		{"svix", "the same events emitted through Posthorn's own API and through Svix's, by a platform key", emissionBySvix},
		{tracesStem, "one event for each delivery, with a tenth of the traces exported and without", tracedEngine},
		{shapedStem, "one event for each delivery, whose endpoint has an expression, and without", shapedEvents},
		{batchesStem, "the backlog of one endpoint, a hundred events in a request, and without", batches},
		{"half", "50 endpoints of 50 tenants, at half of the throughput that was just measured", halfLoad},
		{"cold", "10,000 endpoints that have received nothing yet, at 50 events/s", coldLanes},
		{"stuck", "500 endpoints of 50 other tenants never answer and hold a backlog", stuckNeighbours},
		{"recovery", "an endpoint of another tenant was down for a week and gets what it missed, at its rate", comingBack},
		{"fairness", "a tenant with 5,000 busy endpoints that want all slots, with a long backlog", busyTenant},
		{"history", "100 day partitions and five million deliveries behind, then the pages over them", longHistory},
		{"pages", "pages and lists over such a history, and no emission beside a system without; p99 is p95 in their rows", pageAnswers},
		{"stored", "a day of history in the tables and in storage: bytes, and how long requests take; p99 is p95", storedHistory},
		{"snapshot", "a snapshot is held open for ten minutes, as a backup does", heldSnapshot},
	}
}

// side is one of the systems that are compared, with the load that it gets and the words for its rows.
type side struct {
	system *system
	group  *group
	suffix string
}

// turn measures one side while the others are frozen, so that they cost nothing.
func turn(ctx context.Context, l load, at int, sides []side) (r result, err error) {
	now := sides[at]
	for j, other := range sides {
		if j == at {
			continue
		}
		if err := other.system.server.freeze(true); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, other.system.server.freeze(false)) }()
	}
	if len(sides) > 1 {
		// It was frozen until now: deliveries that became due in that time come first.
		if err := now.system.pause(ctx, settling); err != nil {
			return r, err
		}
	}
	return now.system.measure(ctx, now.group, l)
}

const settling = 3 * time.Second

// repeat measures the same load several times on each side, in turns, and adds the medians to the table: a machine
// whose speed moves during the run moves all sides alike.
func repeat(ctx context.Context, rep *report, name string, l load, sides ...side) error {
	repeats := make([][]result, len(sides))
	for i := range sides[0].system.opts.repeats {
		for j, side := range sides {
			r, err := turn(ctx, l, j, sides)
			if err != nil {
				return fmt.Errorf("%s: %w", name+side.suffix, err)
			}
			side.system.opts.say("%s, %d of %d: %s", name+side.suffix, i+1, side.system.opts.repeats, r)
			repeats[j] = append(repeats[j], r)
		}
		l.from += l.events
	}
	for j, side := range sides {
		rep.add(side.system.stem, name+side.suffix, median(repeats[j]))
	}
	return nil
}

// both measures throughput and light load, which is what most scenarios compare.
func both(ctx context.Context, rep *report, sides ...side) error {
	o, last := sides[0].system.opts, sides[len(sides)-1]
	if o.profile {
		if err := last.system.db.resetStatements(ctx); err != nil {
			return err
		}
		last.system.profile(oneToOne+last.suffix, 20)
	}
	if err := repeat(ctx, rep, oneToOne, load{events: o.events, connections: o.connections}, sides...); err != nil {
		return err
	}
	if o.profile {
		if err := last.system.keepStatements(ctx, oneToOne+last.suffix); err != nil {
			return err
		}
	}
	return repeat(ctx, rep, light, load{events: o.lightEvents, rate: 50, connections: o.connections}, sides...)
}

// keepStatements writes the most expensive statements to a file next to the profiles.
func (s *system) keepStatements(ctx context.Context, row string) error {
	lines, err := s.db.statements(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(s.profileStem(row)+".statements.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func rawHop(ctx context.Context, o *options, rep *report) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.scratch, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &system{opts: o, dir: dir, stem: "raw", receiverAddr: address}
	if s.receiver, err = s.startReceiver(ctx, address); err != nil {
		return err
	}
	defer s.receiver.stop(time.Second)
	text, err := json.Marshal([]target{{Type: "bench.order"}})
	if err != nil {
		return err
	}
	g := &group{plan: filepath.Join(dir, "raw.json")}
	if err := os.WriteFile(g.plan, text, 0o600); err != nil {
		return err
	}
	var repeats []result
	for range o.repeats {
		if err := s.resetReceiver(); err != nil {
			return err
		}
		emitted, err := s.emit(ctx, g, "http://"+address+"/", load{events: o.events, connections: o.connections})
		if err != nil {
			return err
		}
		var arrived arrivalStats
		if err := get("http://"+address+"/stats", &arrived); err != nil {
			return err
		}
		r := emittedResult(emitted)
		r.Deliveries = emitted.Accepted
		r.Lost = emitted.Accepted - arrived.N
		r.addArrivals(arrived, time.Duration(arrived.LastNs-emitted.BeganNs))
		o.say("raw hop: %s", r)
		repeats = append(repeats, r)
	}
	rep.add("raw", "raw hop", median(repeats))
	return nil
}

func engine(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "one-to-one", func(s *system) error {
		g, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		return both(ctx, rep, side{s, g, ""})
	})
}

func fanOutTen(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "fan-out", func(s *system) error {
		g, err := s.setUp(ctx, shape{name: "fanning", tenants: 50, endpoints: 10, address: s.receiverAddr, fields: unthrottled})
		if err != nil {
			return err
		}
		if o.profile {
			s.profile(fanOut, 5)
		}
		return repeat(ctx, rep, fanOut, load{events: o.fanOutEvents, connections: o.connections}, side{s, g, ""})
	})
}

// halfLoad measures p99 where half of the machine is free.
func halfLoad(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, halfStem, func(s *system) error {
		g, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		full, err := s.measure(ctx, g, load{events: o.events, connections: o.connections})
		if err != nil {
			return err
		}
		o.say("half: %s", full)
		rep.add(halfStem, oneToOne, full)
		rate := max(int(full.EndToEnd/2), 1)
		return repeat(ctx, rep, fmt.Sprintf("%s, %d/s", halfStem, rate), load{
			events:      int64(rate) * int64(halfFor/time.Second),
			from:        o.events,
			rate:        rate,
			connections: o.connections,
		}, side{s, g, ""})
	})
}

const (
	halfStem = "half"
	// halfFor is how long a measurement at half load lasts.
	halfFor = 20 * time.Second
)

// coldLanes never emits to the same endpoint twice.
func coldLanes(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "cold", func(s *system) error {
		const perTenant = 50 // the default limit
		g, err := s.setUp(ctx, shape{
			name:      "cold",
			tenants:   o.coldEndpoints / perTenant,
			endpoints: perTenant,
			ownTypes:  true,
			address:   s.receiverAddr,
			fields:    unthrottled,
		})
		if err != nil {
			return err
		}
		events := min(3000, int64(o.coldEndpoints/o.repeats))
		return repeat(ctx, rep, fmt.Sprintf("%d cold endpoints, 50/s", o.coldEndpoints), load{
			events:      events,
			rate:        50,
			connections: o.connections,
		}, side{s, g, ""})
	})
}

func stuckNeighbours(ctx context.Context, o *options, rep *report) error {
	return besidePlain(ctx, o, "stuck", func(s *system, g *group, plain side) error {
		stuck, err := s.setUp(ctx, shape{name: "stuck", tenants: 50, endpoints: 10, address: s.hangingAddr})
		if err != nil {
			return err
		}
		o.say("stuck: building the backlog")
		emitted, err := s.emit(ctx, stuck, "http://"+s.api+"/api/v1/events", load{events: o.backlog / stuck.fan, connections: o.connections})
		if err != nil {
			return err
		}
		if emitted.Bad > 0 {
			return fmt.Errorf("stuck: %d emissions refused: %s", emitted.Bad, emitted.FirstBad)
		}
		// Two timeouts of 15 s open the breakers, and a minute later the first probes are sent. The measurement shows
		// the steady state after that.
		if err := s.pause(ctx, 75*time.Second); err != nil {
			return err
		}
		if err := both(ctx, rep, plain, side{s, g, ", stuck neighbours"}); err != nil {
			return err
		}
		left, err := s.db.queued(ctx, stuck.tenants)
		if err != nil {
			return err
		}
		rep.backlog(s.stem, int64(left))
		if int64(left) < o.backlog*9/10 {
			return fmt.Errorf("stuck: only %d of %d deliveries are still waiting; the measurement was not about them", left, o.backlog)
		}
		return nil
	})
}

// recoveryDays is how long the endpoint was down: a day partition each.
const recoveryDays = 7

// comingBack measures neighbors of an endpoint while its backlog drains. Its events carry no time of emission, so the
// receiver accepts them and does not count them.
func comingBack(ctx context.Context, o *options, rep *report) error {
	return besidePlain(ctx, o, "recovery", func(s *system, g *group, plain side) error {
		back, err := s.setUp(ctx, shape{
			name:      "back",
			tenants:   1,
			endpoints: 1,
			address:   s.receiverAddr,
			fields:    map[string]any{"rate_limit": o.recoveryRate, "max_in_flight": 50},
		})
		if err != nil {
			return err
		}
		o.say("recovery: writing %d deliveries over %d days", o.recoveryBacklog, recoveryDays)
		resume, err := s.db.writeOutage(ctx, back.tenants, recoveryDays, o.recoveryBacklog)
		if err != nil {
			return err
		}
		if err := resume(); err != nil {
			return err
		}
		if err := s.pause(ctx, settling); err != nil {
			return err
		}
		if err := both(ctx, rep, plain, side{s, g, ", a week's backlog drains"}); err != nil {
			return err
		}
		rate, left, err := s.drains(ctx, back)
		if err != nil {
			return err
		}
		rep.backlog(s.stem, left)
		o.say("recovery: it drains at %.0f/s, %d deliveries are left", rate, left)
		if most := float64(o.recoveryRate); rate < 0.9*most || rate > 1.1*most {
			return fmt.Errorf("recovery: it drained at %.0f deliveries/s, and its rate is %d", rate, o.recoveryRate)
		}
		return nil
	})
}

// drains measures how fast a group's backlog shrinks, and how much is left.
func (s *system) drains(ctx context.Context, g *group) (perSecond float64, left int64, err error) {
	before, err := s.db.queued(ctx, g.tenants)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := s.pause(ctx, 5*time.Second); err != nil {
		return 0, 0, err
	}
	after, err := s.db.queued(ctx, g.tenants)
	return float64(before-after) / time.Since(began).Seconds(), int64(after), err
}

// busyTenant measures what others see of a tenant whose endpoints answer after a second and could fill every slot
// many times over.
func busyTenant(ctx context.Context, o *options, rep *report) error {
	return besidePlain(ctx, o, "fairness", func(s *system, g *group, plain side) (err error) {
		if s.slow, err = s.startReceiver(ctx, s.slowAddr, "-hold", "1s"); err != nil {
			return err
		}
		if err := s.db.allowEndpoints(ctx, o.busyEndpoints); err != nil {
			return err
		}
		busy, err := s.setUp(ctx, shape{
			name:      "busy",
			tenants:   1,
			endpoints: o.busyEndpoints,
			address:   s.slowAddr,
			fields:    unthrottled,
		})
		if err != nil {
			return err
		}
		o.say("fairness: building the backlog")
		emitted, err := s.emit(ctx, busy, "http://"+s.api+"/api/v1/events", load{events: max(o.backlog/busy.fan, 1), connections: 4})
		if err != nil {
			return err
		}
		if emitted.Bad > 0 {
			return fmt.Errorf("fairness: %d emissions refused: %s", emitted.Bad, emitted.FirstBad)
		}
		sides := []side{plain, {s, g, ", beside a busy tenant"}}
		if err := repeat(ctx, rep, light, load{events: o.lightEvents, rate: 50, connections: o.connections}, sides...); err != nil {
			return err
		}
		left, err := s.db.queued(ctx, busy.tenants)
		if err == nil && left == 0 {
			err = errors.New("fairness: the backlog was done before the measurement was; give a longer one with -backlog")
		}
		o.say("fairness: %d deliveries of the busy tenant wait still", left)
		return err
	})
}

// longHistory measures emission over a long history beside a system without one, then the pages and lists over it.
func longHistory(ctx context.Context, o *options, rep *report) error {
	return besidePlain(ctx, o, "history", func(s *system, g *group, plain side) error {
		shop, err := s.writeHistory(ctx, g)
		if err != nil {
			return err
		}
		partitions, deliveries, err := s.db.history(ctx)
		if err != nil {
			return err
		}
		o.say("history: %d partitions, about %d deliveries", partitions, deliveries)
		err = both(ctx, rep, plain, side{s, g, fmt.Sprintf(", %d partitions, %.1f million", partitions, float64(deliveries)/1e6)})
		if err != nil {
			return err
		}
		return s.readPages(ctx, rep, shop)
	})
}

func heldSnapshot(ctx context.Context, o *options, rep *report) error {
	return besidePlain(ctx, o, "snapshot", func(s *system, g *group, plain side) error {
		release, err := s.db.holdSnapshot(ctx)
		if err != nil {
			return err
		}
		defer release()
		events := int64(o.snapshotRate) * int64(o.snapshot.Seconds())
		o.say("snapshot: held for %s under %d events/s", o.snapshot, o.snapshotRate)
		r, err := s.measure(ctx, g, load{events: events, rate: o.snapshotRate, connections: o.connections})
		if err != nil {
			return err
		}
		rep.add(s.stem, fmt.Sprintf("%d/s for %s, snapshot held", o.snapshotRate, o.snapshot), r)
		return both(ctx, rep, plain, side{s, g, ", snapshot held for " + o.snapshot.String()})
	})
}

// besidePlain runs a scenario on a system with a burden, beside a second one without. Each is frozen while the other
// is measured.
func besidePlain(ctx context.Context, o *options, stem string, run func(s *system, g *group, plain side) error) error {
	return with(ctx, o, stem, func(plain *system) error {
		plainGroup, err := plain.healthy(ctx)
		if err != nil {
			return err
		}
		return with(ctx, o, stem, func(s *system) error {
			g, err := s.healthy(ctx)
			if err != nil {
				return err
			}
			return run(s, g, side{plain, plainGroup, without})
		})
	})
}

// healthy is the group of nearly every scenario.
func (s *system) healthy(ctx context.Context) (*group, error) {
	return s.setUp(ctx, shape{name: "healthy", tenants: 50, endpoints: 1, address: s.receiverAddr, fields: unthrottled})
}

// with runs a scenario on a fresh system and takes it down again.
func with(ctx context.Context, o *options, stem string, run func(*system) error) error {
	s, err := boot(ctx, o, stem)
	if err != nil {
		return fmt.Errorf("%s: %w", stem, err)
	}
	defer s.close()
	if err := run(s); err != nil {
		return fmt.Errorf("%w\nposthorn's log ends with:\n%s", err, tail(s.server.log))
	}
	return nil
}

func resetReceiver(address string) error {
	request, err := http.NewRequest(http.MethodPut, "http://"+address+"/reset", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
