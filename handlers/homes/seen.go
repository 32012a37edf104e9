package homes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
)

const (
	// watchEvery is how often a process asks the other homes for their state.
	watchEvery = 5 * time.Second
	// againAfter is when it asks again if a home is in doubt.
	againAfter = time.Second
	// countsFor is how long the counts of a home are shown before new ones are requested.
	countsFor = 5 * time.Second
	// foundMost is how many tenants of each home a search returns.
	foundMost = 20
)

// sights is the known state of all homes.
type sights struct {
	mu  sync.Mutex
	all map[string]home.Seen
}

// note keeps a response of a home, and returns what was known of it before and after.
func (s *sights) note(name string, got *home.Report, asked, now time.Time) (before, after home.Seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.all[name]
	before.Name = name
	after = before.After(got, asked, now)
	s.all[name] = after
	return before, after
}

func (s *sights) of(name string) home.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.all[name]
	seen.Name = name
	return seen
}

// Watch asks the other homes for their state at intervals, so that pages need not wait.
func (r *Router) Watch(ctx context.Context) error {
	for {
		r.see(ctx, r.all(), false)
		next := watchEvery
		if slices.ContainsFunc(r.Known(), func(s home.Seen) bool { return !s.Doubted.IsZero() }) {
			next = againAfter
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
			return nil
		}
	}
}

// all are the names of all homes, this one first.
func (r *Router) all() []string { return append([]string{r.Self}, r.names...) }

// see asks homes for their state, concurrently and within askWithin.
func (r *Router) see(ctx context.Context, names []string, counts bool) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			asked := r.Now()
			if name == r.Self {
				got, err := r.report(ctx, counts)
				r.note(name, &got, err, asked)
				return
			}
			var got home.Report
			err := r.others[name].call(ctx, r, "state", map[string]bool{"counts": counts}, &got)
			switch {
			case err == nil:
				r.note(name, &got, nil, asked)
			case ctx.Err() == nil || errors.Is(context.Cause(ctx), context.DeadlineExceeded): // else the process ends
				r.note(name, nil, err, asked)
			}
		})
	}
	all.Wait()
}

// note keeps a response of a home, and logs what it changes. err is why there is none, or why this home's own database
// was not read.
func (r *Router) note(name string, got *home.Report, err error, asked time.Time) {
	before, after := r.sights.note(name, got, asked, r.Now())
	if before.State() == after.State() && (after.Doubted.IsZero() || !before.Doubted.IsZero()) {
		return
	}
	message, level := "state of a home changed", slog.LevelInfo
	if !after.Doubted.IsZero() {
		message = "state of a home in doubt"
	}
	if err != nil || after.State().Bad() {
		level = slog.LevelWarn
	}
	r.Log.Log(context.Background(), level, message, "home", name, "state", after.State(), "error", err)
}

// report is this home's own state. If the database does not respond in time, the report says so, and the error why.
func (r *Router) report(ctx context.Context, counts bool) (home.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin*3/4)
	defer cancel()
	out := home.Report{Release: r.Release}
	workers, all, err := accounts.ReadHome(ctx, r.DB, r.Now(), counts)
	out.Workers = workers
	switch {
	case err == nil:
		out.Database = true
		if counts {
			out.Counts = &all
		}
	case counts: // the counts can take long
		return r.report(context.WithoutCancel(ctx), false)
	}
	return out, err
}

// States returns the state of the homes as this process knows it, this one first. It requests new counts of those that
// responded last time, for two seconds at most; for the others it returns the last state.
func (r *Router) States(ctx context.Context) []home.Seen {
	var stale []string
	for _, name := range r.all() {
		seen := r.sights.of(name)
		responds := !seen.Asked || seen.Reached && seen.Doubted.IsZero()
		if responds && r.Now().Sub(seen.CountsAt) > countsFor {
			stale = append(stale, name)
		}
	}
	r.see(ctx, stale, true)
	return r.Known()
}

// Known returns the known state of the homes without asking.
func (r *Router) Known() []home.Seen {
	var out []home.Seen
	for _, name := range r.all() {
		seen := r.sights.of(name)
		seen.Here = name == r.Self
		out = append(out, seen)
	}
	return out
}

// Find finds tenants of all homes by id, external id, or a part of the name, and names the homes that did not respond
// within two seconds.
func (r *Router) Find(ctx context.Context, text string) (found []home.Found, silent []string) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, name := range r.names {
		all.Go(func() {
			var got []home.Found
			err := r.others[name].call(ctx, r, "search", map[string]string{"text": text}, &got)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, name)
				return
			}
			for _, f := range got {
				f.Home = name // whatever the answer contains
				if _, err := id.Tenant.Parse(f.ID); err == nil {
					found = append(found, f)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(silent)
	slices.SortFunc(found, func(a, b home.Found) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Home, b.Home), cmp.Compare(a.ID, b.ID))
	})
	return found, silent
}

// search finds tenants of this home for another.
func (r *Router) search(ctx context.Context, text string) ([]home.Found, error) {
	if text = strings.TrimSpace(text); text == "" {
		return []home.Found{}, nil
	}
	found, err := accounts.FindTenants(ctx, r.DB, text, foundMost)
	for i := range found {
		found[i].Home = r.Self
	}
	return found, err
}

// answer answers a question of another home.
func (r *Router) answer(w http.ResponseWriter, req *http.Request) {
	var asked struct {
		question
		Counts bool   `json:"counts"`
		Text   string `json:"text"`
	}
	if req.Method != http.MethodPost || json.NewDecoder(http.MaxBytesReader(w, req.Body, 4<<10)).Decode(&asked) != nil {
		r.Refuse(w, req, fault.ErrNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), askWithin)
	defer cancel()
	var out any
	var err error
	switch req.URL.Path {
	case internalRoot + "find":
		out, err = r.has(ctx, asked.question)
	case internalRoot + "state":
		out, _ = r.report(ctx, asked.Counts) // the report says it if the database does not respond
	case internalRoot + "recipient":
		out, err = r.recipient(ctx, asked.Signed)
	case internalRoot + "search":
		out, err = r.search(ctx, asked.Text)
	default:
		err = fault.ErrNotFound
	}
	if err != nil {
		r.Refuse(w, req, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
