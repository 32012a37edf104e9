package homes

import (
	"context"
	"net/http"
	"sync"
	"time"

	"posthorn/domain/fault"
	"posthorn/handlers"
)

// How long an answer is cached. An outdated one costs another hop: the former home passes the request on, and the
// response names the home that made it.
const (
	knownFor   = 10 * time.Minute
	unknownFor = 2 * time.Second
	maxKnown   = 100_000
)

// directory caches where tenants, keys and tokens are, for one process.
type directory struct {
	now func() time.Time
	mu  sync.RWMutex
	all map[string]entry
}

type entry struct {
	home  string // empty: no home has it
	until time.Time
}

func newDirectory(now func() time.Time) *directory {
	return &directory{now: now, all: map[string]entry{}}
}

func (d *directory) get(of string) (home string, ok bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e, ok := d.all[of]
	return e.home, ok && d.now().Before(e.until)
}

func (d *directory) put(of, home string) {
	life := knownFor
	if home == "" {
		life = unknownFor
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) >= maxKnown {
		clear(d.all)
	}
	d.all[of] = entry{home, d.now().Add(life)}
}

func (d *directory) forget(of string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, of)
}

// question asks a home whether it has something. One field is set, or Email and Member.
type question struct {
	Tenant string `json:"tenant,omitempty"` // an id or an external id
	Key    string `json:"key,omitempty"`    // SHA-256 in hexadecimal
	Token  string `json:"token,omitempty"`
	Email  string `json:"email,omitempty"`
	Member bool   `json:"member,omitempty"` // with Email: the address is that of a member of a tenant
	Domain string `json:"domain,omitempty"` // of addresses that sign in with a tenant's provider
	Signed string `json:"signed,omitempty"` // a link to unsubscribe or to an event, signed by the home for a tenant that has left it
}

// name is the key of the answer in the directory.
func (q question) name() string {
	switch {
	case q.Tenant != "":
		return "tenant " + q.Tenant
	case q.Key != "":
		return "key " + q.Key
	case q.Token != "":
		return "token " + hashOf(q.Token)
	case q.Domain != "":
		return "domain " + q.Domain
	case q.Signed != "":
		return "signed " + hashOf(q.Signed)
	}
	return "email " + q.Email
}

var errAsking = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "home_unknown",
	RetryAfter: 2,
	Detail:     "No home of this server that responds has this, and at least one doesn't respond right now. Send the same request again in a few seconds.",
}

// turn waits for a slot for a question, for as long as the context lasts. The returned function gives it back.
func (r *Router) turn(ctx context.Context, client string) (leave func(), err error) {
	who := handlers.Network(client)
	if err := r.askers.Hold(who, 1); err != nil {
		return nil, err
	}
	select {
	case r.asks <- struct{}{}:
		return func() { <-r.asks; r.askers.Release(who, 1) }, nil
	case <-ctx.Done():
		r.askers.Release(who, 1)
		return nil, errAsking
	}
}

// askOne asks the home that a key names whether it has the key.
func (r *Router) askOne(req *http.Request, name string, q question) (found bool, err error) {
	if r.others[name].isDown(r.Now()) {
		return false, errDown
	}
	ctx, cancel := context.WithTimeout(req.Context(), askWithin)
	defer cancel()
	leave, err := r.turn(ctx, r.client(req))
	if err != nil {
		return false, err
	}
	defer leave()
	if known, ok := r.known.get(q.name()); ok && known == name { // another request asked in between
		return true, nil
	}
	if found, err = r.others[name].ask(ctx, r, q); err != nil {
		return false, errDown
	}
	if found {
		r.known.put(q.name(), name)
	}
	return found, nil
}

// ask asks all other homes concurrently, for a request of a client. The first that has it is the answer, whether or not
// the others respond. If none has it and one did not respond, the result is unknown: errAsking.
func (r *Router) ask(ctx context.Context, client string, q question) (destination, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	leave, err := r.turn(ctx, client)
	if err != nil {
		return destination{}, err
	}
	defer leave()
	type reply struct {
		home  string
		found bool
		err   error
	}
	replies := make(chan reply, len(r.names))
	for _, name := range r.names {
		go func() {
			found, err := r.others[name].ask(ctx, r, q)
			replies <- reply{name, found, err}
		}()
	}
	silent := false
	for range r.names {
		got := <-replies
		if got.found {
			r.known.put(q.name(), got.home)
			return destination{home: got.home, of: q.name()}, nil
		}
		silent = silent || got.err != nil
	}
	if silent {
		return destination{}, errAsking
	}
	if q.Email == "" {
		r.known.put(q.name(), "")
	}
	return destination{}, nil
}

// homeOfBrowser is the home that a browser used last, by a cookie. ?home= selects the home of the console.
func (r *Router) homeOfBrowser(req *http.Request, cookie string) destination {
	if cookie == consoleHomeCookie && req.URL.RawQuery != "" {
		if name := req.URL.Query().Get("home"); name == r.Self || r.others[name] != nil {
			return destination{home: name, cookie: cookie}
		}
	}
	return destination{home: r.remembered(req, cookie)}
}

// remembered is the home in a browser's cookie; empty: this one.
func (r *Router) remembered(req *http.Request, cookie string) string {
	c, err := req.Cookie(cookie)
	if err != nil || r.others[c.Value] == nil {
		return ""
	}
	return c.Value
}

// keep stores a home in a browser's cookie.
func (r *Router) keep(w http.ResponseWriter, req *http.Request, cookie, home string) {
	if cookie == "" {
		return
	}
	if c, err := req.Cookie(cookie); err == nil && c.Value == home || err != nil && home == r.Self {
		return
	}
	//nolint:gosec // G124: it holds no secret, and plain http is for this machine alone
	http.SetCookie(w, &http.Cookie{
		Name:     cookie,
		Value:    home,
		Path:     "/",
		MaxAge:   365 * 24 * 3600,
		HttpOnly: true,
		Secure:   r.Secure,
		SameSite: http.SameSiteLaxMode,
	})
}
