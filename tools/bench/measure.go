package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// load is what the generator is told to emit.
type load struct {
	events, from int64
	rate         int // a second; 0: as fast as accepted
	connections  int
}

// result is one measurement, or the median of several.
type result struct {
	Ingest     float64 `json:"ingest_per_second"`
	EndToEnd   float64 `json:"deliveries_per_second"` // until received and recorded
	P50        float64 `json:"p50_ms"`                // emission to arrival
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
	AckP50     float64 `json:"ack_p50_ms"` // request to 202
	AckP99     float64 `json:"ack_p99_ms"`
	RSS        float64 `json:"rss_mib"`                  // Posthorn's highest during the run
	CPU        float64 `json:"posthorn_cpu_us"`          // a delivery
	PostgreSQL float64 `json:"postgresql_cpu_us"`        // a delivery
	Outside    float64 `json:"outside_cpu_us"`           // a delivery: what generator and receiver used beside it
	Ratio      float64 `json:"ratio"`                    // CPU of Posthorn and PostgreSQL to that outside
	WAL        float64 `json:"wal_bytes"`                // a delivery
	CPUPause   float64 `json:"cpu_pause_ms"`             // the machine's longest, as the generator saw it
	Disk       float64 `json:"disk_pause_ms"`            // its longest write
	Refused    int64   `json:"refused"`                  // emissions without a 2xx
	Duplicates int64   `json:"duplicates"`               // arrivals of a webhook-id that this endpoint had already
	Lost       int64   `json:"lost"`                     // acknowledged and not received, or not recorded as delivered
	Problem    string  `json:"problem,omitempty"`        // the first refusal, or why something is lost
	Repeats    int     `json:"repeats"`                  // measurements behind the medians
	Deliveries int64   `json:"deliveries_per_repeat"`    // expected in each
	Backlog    int64   `json:"backlog_behind,omitempty"` // queue rows of the stuck or recovering tenants at the end
	Page       bool    `json:"page,omitempty"`           // responses of a page or list; p99 is their 95th percentile
}

// stall is how long nothing arrives before missing deliveries count as lost.
const stall = time.Minute

// measure emits to a group, waits until everything has arrived and is recorded, and compares what was acknowledged with
// what came.
func (s *system) measure(ctx context.Context, g *group, l load) (r result, err error) {
	if err := s.resetReceiver(); err != nil {
		return r, err
	}
	if err := resetPeak(s.server.cmd.Process.Pid); err != nil {
		return r, err
	}
	before, err := s.meters(ctx)
	if err != nil {
		return r, err
	}
	address := "http://" + s.api
	if !g.byPath {
		address += "/api/v1/events"
	}
	emitted, err := s.emit(ctx, g, address, l)
	if err != nil {
		return r, err
	}
	began := time.Unix(0, emitted.BeganNs)
	r = emittedResult(emitted)
	r.Deliveries = emitted.Accepted * g.fan
	if err := s.awaitArrivals(ctx, r.Deliveries); err != nil {
		return r, err
	}
	recordedAt, err := s.awaitRecorded(ctx, g)
	if err != nil {
		return r, err
	}
	var arrived arrivalStats
	if err := get("http://"+s.receiverAddr+"/stats", &arrived); err != nil {
		return r, err
	}
	ended := time.Unix(0, max(arrived.LastNs, recordedAt.UnixNano()))
	r.addArrivals(arrived, ended.Sub(began))
	after, err := s.meters(ctx)
	if err != nil {
		return r, err
	}
	after.outside += emitted.CPU
	r.addCosts(before, after)
	rss, err := peakRSS(s.server.cmd.Process.Pid)
	if err != nil {
		return r, err
	}
	r.RSS = float64(rss) / (1 << 20)
	return r, s.check(ctx, g, &r, emitted, arrived, began)
}

// check counts what was acknowledged and did not arrive, was not recorded, or differs from what was sent.
func (s *system) check(ctx context.Context, g *group, r *result, emitted loadResult, arrived arrivalStats, began time.Time) error {
	recorded, err := s.db.recorded(ctx, g.tenants, began)
	if err != nil {
		return err
	}
	// A rejected emission was possibly committed (its response was lost), so more than acknowledged is no loss.
	received := arrived.N - arrived.Duplicates
	switch {
	case received < r.Deliveries:
		r.Lost, r.Problem = r.Deliveries-received, "acknowledged and not received"
	case recorded < r.Deliveries:
		r.Lost, r.Problem = r.Deliveries-recorded, "received and not recorded as delivered"
	case emitted.Bad == 0 && arrived.IDSum != emitted.IDSum*uint64(g.fan):
		r.Lost, r.Problem = 1, "the ids that arrived are not the ids that were acknowledged"
	}
	return nil
}

func emittedResult(e loadResult) result {
	seconds := time.Duration(e.EndedNs - e.BeganNs).Seconds()
	return result{
		Ingest:   float64(e.Accepted) / seconds,
		AckP50:   float64(e.P50) / 1000,
		AckP99:   float64(e.P99) / 1000,
		CPUPause: float64(e.CPUPause) / 1e6,
		Disk:     float64(e.Sync) / 1e6,
		Refused:  e.Bad,
		Problem:  e.FirstBad,
		Repeats:  1,
	}
}

func (r *result) addArrivals(a arrivalStats, took time.Duration) {
	r.EndToEnd = float64(a.N-a.Duplicates) / took.Seconds()
	r.P50, r.P99, r.Max = float64(a.P50)/1000, float64(a.P99)/1000, float64(a.Max)/1000
	r.Duplicates = a.Duplicates
}

// meters are what the processes of a run have used so far.
type meters struct {
	posthorn, postgres, outside time.Duration // outside: the receiver; the generator is added when it has ended
	wal                         float64       // bytes
}

func (s *system) meters(ctx context.Context) (m meters, err error) {
	m.posthorn, m.postgres = s.cpu()
	if s.deliverer != nil {
		m.posthorn += cpuTime(s.deliverer.cmd.Process.Pid, false)
	}
	m.outside = cpuTime(s.receiver.cmd.Process.Pid, false)
	m.wal, err = s.db.wal(ctx)
	return m, err
}

// addCosts divides the used resources by the deliveries.
func (r *result) addCosts(before, after meters) {
	n := float64(r.Deliveries)
	if n == 0 {
		return
	}
	r.CPU, r.PostgreSQL = micros(after.posthorn-before.posthorn)/n, micros(after.postgres-before.postgres)/n
	r.Outside, r.WAL = micros(after.outside-before.outside)/n, (after.wal-before.wal)/n
	if r.Outside > 0 {
		r.Ratio = (r.CPU + r.PostgreSQL) / r.Outside
	}
}

// emit runs the generator to its end.
func (s *system) emit(ctx context.Context, g *group, url string, l load) (e loadResult, err error) {
	cmd := exec.CommandContext(ctx, s.opts.self, "load", "-url", url, "-plan", g.plan,
		"-n", strconv.FormatInt(l.events, 10), "-from", strconv.FormatInt(l.from, 10),
		"-rate", strconv.Itoa(l.rate), "-c", strconv.Itoa(l.connections), "-disk", s.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return e, fmt.Errorf("the load generator: %w", err)
	}
	e.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return e, json.Unmarshal(out, &e)
}

// awaitArrivals waits until a number of deliveries has arrived, or none has arrived for too long.
func (s *system) awaitArrivals(ctx context.Context, want int64) error {
	var last int64
	since := time.Now()
	for {
		var n int64
		if err := get("http://"+s.receiverAddr+"/count", &n); err != nil {
			return err
		}
		if n >= want {
			return nil
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > stall {
			return nil // judge counts what is missing
		}
		if err := s.pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// awaitRecorded waits until the group has nothing in the queue, and says when that was.
func (s *system) awaitRecorded(ctx context.Context, g *group) (time.Time, error) {
	for since := time.Now(); time.Since(since) < stall; {
		waiting, err := s.db.waiting(ctx, g.tenants)
		if err != nil || !waiting {
			return time.Now(), err
		}
		if err := s.pause(ctx, 10*time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
	return time.Now(), nil // judge counts what is missing
}

// pause waits, and fails when Posthorn has died or the bench is being stopped.
func (s *system) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return s.server.running()
	}
}

func (s *system) resetReceiver() error {
	return resetReceiver(s.receiverAddr)
}

// cpu is what Posthorn and PostgreSQL have used so far.
func (s *system) cpu() (posthorn, postgres time.Duration) {
	posthorn = cpuTime(s.server.cmd.Process.Pid, false)
	if postmaster := s.db.postmaster(); postmaster > 0 {
		postgres = cpuTime(postmaster, true)
	}
	return posthorn, postgres
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// median merges repeats: the median of what was measured, the highest memory, the sum of what went wrong.
func median(repeats []result) result {
	if len(repeats) == 0 {
		return result{}
	}
	m := repeats[0]
	for _, field := range []func(*result) *float64{
		func(r *result) *float64 { return &r.Ingest }, func(r *result) *float64 { return &r.EndToEnd },
		func(r *result) *float64 { return &r.P50 }, func(r *result) *float64 { return &r.P99 },
		func(r *result) *float64 { return &r.Max },
		func(r *result) *float64 { return &r.AckP50 }, func(r *result) *float64 { return &r.AckP99 },
		func(r *result) *float64 { return &r.CPU }, func(r *result) *float64 { return &r.PostgreSQL },
		func(r *result) *float64 { return &r.Outside }, func(r *result) *float64 { return &r.Ratio },
		func(r *result) *float64 { return &r.WAL }, func(r *result) *float64 { return &r.CPUPause },
		func(r *result) *float64 { return &r.Disk },
	} {
		var values []float64
		for i := range repeats {
			values = append(values, *field(&repeats[i]))
		}
		*field(&m) = middle(values)
	}
	var problems []string
	m.Refused, m.Duplicates, m.Lost, m.Repeats = 0, 0, 0, len(repeats)
	for _, r := range repeats {
		m.RSS = max(m.RSS, r.RSS)
		m.Refused += r.Refused
		m.Duplicates += r.Duplicates
		m.Lost += r.Lost
		if r.Problem != "" {
			problems = append(problems, r.Problem)
		}
	}
	m.Problem = strings.Join(problems, "; ")
	return m
}
