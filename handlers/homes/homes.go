// Package homes runs before the routes of a web process that is one of several homes
// (docs/adr/0034-moves-by-replication.md). Requests for tenants that have moved from this home to another lead there:
// people are redirected, programs' requests are forwarded as they are. The other home authenticates them.
package homes

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Config holds the dependencies of a Router.
type Config struct {
	Self    home.Home // this home
	Others  []home.Home
	DB      *db.DB
	Ring    *seal.Ring
	Keys    *handlers.Authenticator
	Proxies handlers.Proxies
	Log     *slog.Logger
	Now     func() time.Time
	Ready   func(ctx context.Context) (ready bool, release string) // of this process
	Here    http.Handler                                           // the routes of this home
	Refuse  func(w http.ResponseWriter, r *http.Request, err error)
	// Arrive reads the whole body of a request, counted for a sender; the zero id is a stranger.
	Arrive func(w http.ResponseWriter, r *http.Request, who id.UUID, most int64) (release func(), err error)
}

// Router is the handler of a web process that is one of several homes.
type Router struct {
	Config
	moved  atomic.Pointer[accounts.Moved]
	others map[string]*peer
	mu     sync.Mutex
	seen   []home.Seen // this home first
}

const (
	homeHeader = "Posthorn-Home" // names the home that made a response
	movedEvery = 250 * time.Millisecond
	askEvery   = 20 // times movedEvery
	askWithin  = 2 * time.Second
	// numbersEvery is how old the numbers of another home can be: each read counts its waiting deliveries.
	numbersEvery = time.Minute
	mostRead     = 64 << 10 // of a response of another home
)

// New creates a Router.
func New(c Config) *Router {
	r := &Router{Config: c, others: map[string]*peer{}}
	for i, h := range append([]home.Home{c.Self}, c.Others...) {
		r.others[h.Name] = newPeer(h)
		r.seen = append(r.seen, home.Seen{Home: h, Here: i == 0, State: home.Unknown})
	}
	return r
}

// Reasons why a request for a tenant of another home is not forwarded.
var (
	errLoop = fault.New(fault.Unavailable, "home_loop", "The homes of this server disagree about where this tenant is. Send the request again in a few seconds.")
	errDown = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "home_unavailable",
		RetryAfter: 2,
		Detail:     "The home of this tenant isn't responding right now. Send the same request again in a few seconds, with the same Idempotency-Key.",
	}
)

func errMoved(to home.Home) error {
	return fault.New(fault.Conflict, "tenant_moved", "This tenant has moved to the home "+to.Name+" at "+to.URL.String()+". Send requests for it there, with a platform key of that home.")
}

// ServeHTTP serves a request here, unless its tenant has moved.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set(homeHeader, r.Self.Name)
	moved := r.moved.Load()
	if moved.None() {
		r.Here.ServeHTTP(w, req)
		return
	}
	s := classify(req)
	if moved == nil && s != (subject{}) { // not read yet
		r.Refuse(w, req, errDown)
		return
	}
	name := moved.Home(s.tenant)
	if name == "" && s.token != "" {
		name = moved.HomeOf(sha256.Sum256([]byte(s.token)))
	}
	to := r.others[name]
	switch {
	case name == "" || name == r.Self.Name:
		r.Here.ServeHTTP(w, req)
	case to == nil:
		r.Log.Warn("a tenant has moved to a home that POSTHORN_HOMES does not name", "home", name)
		r.Refuse(w, req, errDown)
	case slices.ContainsFunc(req.Header.Values("Via"), func(via string) bool { return strings.Contains(via, r.via()) }):
		r.Refuse(w, req, errLoop)
	case s.platform && home.OfKey(s.key) != name:
		// A platform key goes to no other home. Who has none does not learn that the tenant has moved.
		if r.Keys.IsPlatformKey(req.Context(), s.key) {
			r.Refuse(w, req, errMoved(to.Home))
			return
		}
		r.Here.ServeHTTP(w, req)
	case s.people && (req.Method == http.MethodGet || req.Method == http.MethodHead):
		//nolint:gosec // G710: to a home that the operator names
		http.Redirect(w, req, to.URL.String()+req.URL.RequestURI(), http.StatusFound)
	case s.people: // a form of before the move: this browser is not signed in there
		http.Redirect(w, req, to.URL.String()+s.page, http.StatusSeeOther)
	default:
		r.forward(w, req, to, s)
	}
}

// via names this home in the header of requests that it forwards, which ends loops (RFC 9110, section 7.6.3).
func (r *Router) via() string { return "1.1 posthorn-" + r.Self.Name }

// Watch follows which tenants have moved, and asks the other homes for their state at intervals.
func (r *Router) Watch(ctx context.Context) error {
	for n := 0; ; n++ {
		moved, err := accounts.ReadMoved(ctx, r.DB, r.moved.Load())
		switch {
		case err == nil:
			r.moved.Store(moved)
		case ctx.Err() == nil:
			r.Log.Warn("moved tenants not read", "error", err)
		}
		if n%askEvery == 0 {
			go r.ask(ctx)
		}
		select {
		case <-time.After(movedEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// ask asks all homes for their state, by their public /readyz.
func (r *Router) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var all sync.WaitGroup
	for i, before := range r.Known() {
		all.Go(func() {
			state, release := r.state(ctx, before.Home, before.Here)
			before := r.numbers(ctx, before, state)
			r.mu.Lock()
			defer r.mu.Unlock()
			after := before.After(state, release, r.Now())
			if r.seen[i] = after; after.State != before.State {
				r.Log.Log(context.WithoutCancel(ctx), map[bool]slog.Level{true: slog.LevelWarn}[state.Bad()], "state of a home changed", "home", before.Name, "state", state)
			}
		})
	}
	all.Wait()
}

func (r *Router) state(ctx context.Context, h home.Home, here bool) (state home.State, release string) {
	if here {
		ready, release := r.Ready(ctx)
		return map[bool]home.State{true: home.Operational, false: home.NotReady}[ready], release
	}
	var said struct{ Status, Home, Version string }
	if _, err := r.read(ctx, h, "/readyz", &said); err != nil || said.Home != h.Name {
		return home.Down, "" // whatever responds there is not this home
	}
	if said.Status != "ready" {
		return home.NotReady, said.Version
	}
	return home.Operational, said.Version
}

// numbers reads what the API of another home tells operators of it, if it works and its platform key is known.
func (r *Router) numbers(ctx context.Context, s home.Seen, state home.State) home.Seen {
	if s.Here || s.Key == "" || state != home.Operational || r.Now().Sub(s.AskedAt) < numbersEvery {
		return s
	}
	s.AskedAt = r.Now()
	var read home.Numbers
	switch status, err := r.read(ctx, s.Home, "/api/v1/platform/overview", &read); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		s.Fault = "It rejects the key in POSTHORN_HOME_KEYS."
	case err != nil || status != http.StatusOK:
		s.Fault = "It did not respond with its numbers."
	default:
		s.Numbers, s.Known, s.Fault = read, true, ""
	}
	return s
}

// read reads a JSON response of another home.
func (r *Router) read(ctx context.Context, h home.Home, path string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL.String()+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	if path != "/readyz" {
		req.Header.Set("Authorization", "Bearer "+h.Key)
	}
	res, err := r.others[h.Name].transport.RoundTrip(req) // follows no redirect
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode, json.NewDecoder(io.LimitReader(res.Body, mostRead)).Decode(into)
}

// Known returns what this process knows of the homes, this one first.
func (r *Router) Known() []home.Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}
