package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/domain/fault"
)

const (
	// maxClockSkew is how far a node's clock may be off the database's: ids carry the creation time and name the
	// day's partition, so a node that is further off must not accept events.
	maxClockSkew = 5 * time.Second
	probeTime    = 3 * time.Second // for all probes together
	probeEvery   = time.Second     // the shortest time between two checks
	probeAlone   = 5 * time.Second // without requests
	schemaEvery  = 30 * time.Second
)

// readiness says whether this process can do its work, and why not. Responses are cached for a moment, since anybody
// can ask.
type readiness struct {
	database *db.DB
	url      string
	home     string       // of the process; empty: the installation has no homes
	worker   func() error // nil: no worker here
	server   func() error // of the private PostgreSQL; nil: there is none
	log      *slog.Logger // nil: none

	mu       sync.Mutex
	proof    *db.Proof
	at       time.Time
	last     report
	schemaAt time.Time
	schema   probe
	stopping bool
}

// report is the JSON of /readyz.
type report struct {
	Status  string           `json:"status"` // ready, not_ready, stopping
	Version string           `json:"version"`
	Home    string           `json:"home,omitempty"`
	Checks  map[string]probe `json:"checks,omitempty"`
}

// probe is the outcome of one check. Detail is the problem, without secrets or addresses.
type probe struct {
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// stop makes every further response "stopping", so that a load balancer picks another process while requests finish.
func (r *readiness) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	if r.proof != nil {
		r.proof.Close()
	}
}

// watch checks until the context ends, so that the log has a line when the process stops being ready even if nobody
// asks.
func (r *readiness) watch(ctx context.Context) error {
	tick := time.NewTicker(probeAlone)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.check(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// check runs the probes, or returns their cached results.
func (r *readiness) check(ctx context.Context) report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return report{Status: "stopping"}
	}
	if time.Since(r.at) < probeEvery {
		return r.last
	}
	// The response is shared, so it does not depend on the first caller's context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	checks := map[string]probe{}
	if r.server != nil {
		checks["postgres"] = probeOf(r.server())
	}
	if r.proof == nil {
		r.proof = r.database.Proof()
	}
	before := time.Now()
	server, err := r.proof.Check(ctx)
	duration := time.Since(before)
	checks["database"] = probeOf(err)
	if err == nil {
		checks["clock"] = clockProbe(server, before, duration)
	}
	if !db.IsPassing(err) {
		checks["migrations"] = r.migrations(ctx)
	}
	if r.worker != nil {
		checks["worker"] = probeOf(r.worker())
	}
	was := r.last.Status
	r.last, r.at = report{Status: "ready", Checks: checks}, time.Now()
	for _, c := range checks {
		if !c.OK {
			r.last.Status = "not_ready"
		}
	}
	r.say(was, err)
	return r.last
}

// say logs a change of the state. cause is what the check of the database found, with the driver's words.
func (r *readiness) say(was string, cause error) {
	switch {
	case r.log == nil, was == r.last.Status:
	case r.last.Status == "ready":
		if was != "" {
			r.log.Info("the process is ready again")
		}
	case cause != nil && !db.IsPassing(cause):
		r.log.Error(r.last.sentence(), "error", cause)
	default:
		r.log.Warn(r.last.sentence(), "error", cause)
	}
}

// probeOf is the outcome of a check that returned an error, or nil.
func probeOf(err error) probe {
	if err != nil {
		return failed(err)
	}
	return probe{OK: true}
}

// clockProbe compares the database's clock with ours as it was half-way through the question; the question's own
// length is the doubt.
func clockProbe(server, sent time.Time, duration time.Duration) probe {
	skew := server.Sub(sent.Add(duration / 2))
	if skew.Abs() <= maxClockSkew+duration/2 {
		return probe{OK: true}
	}
	ahead := "behind"
	if skew < 0 {
		skew, ahead = -skew, "ahead of"
	}
	return probe{Detail: fmt.Sprintf("This host's clock is %s %s the database's; at most %s are allowed. Set it by NTP.", skew.Round(time.Second/10), ahead, maxClockSkew)}
}

// migrations looks seldom: the schema was brought up to date at the start.
func (r *readiness) migrations(ctx context.Context) probe {
	if r.schema.OK && time.Since(r.schemaAt) < schemaEvery {
		return r.schema
	}
	states, err := db.MigrateStatus(ctx, r.url)
	missing := 0
	for _, s := range states {
		if !s.Applied {
			missing++
		}
	}
	r.schemaAt = time.Now()
	switch {
	case err != nil:
		r.schema = failed(err)
	case missing > 0:
		r.schema = probe{Detail: fmt.Sprintf("The database lacks %d migrations. Run `posthorn migrate up`.", missing)}
	default:
		r.schema = probe{OK: true}
	}
	return r.schema
}

// failed is a check that failed with an error, in the words meant for people.
func failed(err error) probe {
	if e := fault.As(err); e != nil {
		return probe{Detail: e.Detail}
	}
	return probe{Detail: scrub(err.Error())}
}

// serveReady is GET /readyz: 200 when this process should get work, else 503.
func (r *readiness) serveReady(w http.ResponseWriter, req *http.Request) {
	body := r.check(req.Context())
	body.Version, body.Home = buildVersion(), r.home
	status := http.StatusOK
	if body.Status != "ready" {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, body)
}

// serveHealth is GET /healthz: 200 as long as the process serves at all. It asks no database, since restarting a
// process heals no database.
func (r *readiness) serveHealth(w http.ResponseWriter, _ *http.Request) {
	body := map[string]string{"status": "ok", "version": buildVersion()}
	if r.home != "" {
		body["home"] = r.home
	}
	writeJSON(w, http.StatusOK, body)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
