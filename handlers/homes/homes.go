// Package homes runs before the routes of a web process that is one of several homes (docs/adr/0021-homes.md). It finds
// the home of each request's tenant, passes on requests that belong to another home, and answers the questions of other
// homes.
package homes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/sso"
	"posthorn/handlers"
)

// Config holds the dependencies of a Router.
type Config struct {
	Self    string      // this home
	Others  []home.Home // the others
	Secret  string      // shared by all homes
	DB      *db.DB
	Keys    *handlers.Authenticator
	Ring    *seal.Ring
	Proxies handlers.Proxies
	Secure  bool // people use https
	Log     *slog.Logger
	Now     func() time.Time
	Release string       // of this program
	Here    http.Handler // the routes of this home
	Refuse  func(w http.ResponseWriter, r *http.Request, err error)
	// Arrive reads the whole body of a request, counted for a sender; the zero id is a stranger.
	Arrive func(w http.ResponseWriter, r *http.Request, who id.UUID, most int64) (release func(), err error)
}

// Router is the handler of a web process that is one of several homes.
type Router struct {
	Config
	others map[string]*peer
	names  []string // of others, in the order of the configuration
	known  *directory
	asks   chan struct{}    // a slot for each concurrent question
	askers *handlers.Shares // of slots and of waiting for one, by network
	used   *passages
	doubts bool
	sights *sights
}

// The header with which a home signs the requests that it passes on, and the header in which each response names the
// home that made it.
const (
	passageHeader = "Posthorn-Passage"
	homeHeader    = "Posthorn-Home"
)

// maxAsks bounds the concurrent questions to other homes, so that a client with invented keys and ids does not keep all
// homes busy. Others wait for a short time, as many of one network as maxAsking.
const (
	maxAsks    = 64
	maxWaiting = 512
	maxAsking  = 128
)

// New creates a Router.
func New(c Config) *Router {
	r := &Router{
		Config: c,
		others: map[string]*peer{},
		known:  newDirectory(c.Now),
		asks:   make(chan struct{}, maxAsks),
		askers: handlers.NewShares(handlers.Share{Limit: maxWaiting, Err: errAsking}, handlers.Share{Limit: maxAsking, Err: errAsking}),
		used:   newPassages(c.Now),
		sights: &sights{all: map[string]home.Seen{}},
	}
	for _, h := range c.Others {
		r.others[h.Name] = newPeer(h)
		r.names = append(r.names, h.Name)
	}
	return r
}

// Reasons why a request is not passed on.
var (
	errForged = fault.New(fault.Forbidden, "home_forged", "This request claims to come from another home of this server, and its signature is wrong. Don't send the header Posthorn-Passage.")
	errLoop   = fault.New(fault.Unavailable, "home_loop", "The homes of this server disagree about where this tenant is. Send the request again in a few seconds.")
	errUsed   = fault.New(fault.Unavailable, "home_passed_twice", "Another home of this server passed this request on twice. Check whether it took effect, or send it again with the same Idempotency-Key.")
	errDown   = &fault.Error{
		Kind:       fault.Unavailable,
		Code:       "home_unavailable",
		RetryAfter: 2,
		Detail:     "The home of this tenant isn't responding right now. Send the same request again in a few seconds, with the same Idempotency-Key.",
	}
)

// ServeHTTP serves a request here, or passes it on.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var p home.Passage
	if header := req.Header.Get(passageHeader); header != "" {
		var err error
		p, err = home.ReadPassage(header, r.Secret, r.Self, req.Method, req.URL.RequestURI(), r.Now())
		if err != nil || !matches(p, req) {
			r.Refuse(w, req, errForged)
			return
		}
		if changes(req) && !r.used.first(p) {
			r.Refuse(w, req, errUsed)
			return
		}
		req = r.arrived(req, p)
		if strings.HasPrefix(req.URL.Path, internalRoot) {
			r.answer(w, req)
			return
		}
	}
	w.Header().Set(homeHeader, r.Self)
	from := classify(req)
	if from.kind == ofEmail || from.kind == ofDomain || from.kind == ofFormToken { // the form says which home it is for
		release, err := r.Arrive(w, req, id.UUID{}, maxPeek)
		if err != nil {
			r.Refuse(w, req, err)
			return
		}
		defer release()
	}
	to, err := r.home(req, from, p.Hops > 0)
	switch {
	case err != nil:
		r.Refuse(w, req, err)
	case to.home == "" || to.home == r.Self:
		r.keep(w, req, to.cookie, r.Self)
		if to.here {
			req = req.WithContext(handlers.WithHere(req.Context()))
		}
		r.Here.ServeHTTP(w, req)
	case p.Hops >= home.MaxHops:
		r.Refuse(w, req, errLoop)
	default:
		r.pass(w, req, to, p)
	}
}

// arrived returns a request that another home passed on, with the client that it names instead of that home.
func (r *Router) arrived(req *http.Request, p home.Passage) *http.Request {
	ctx := req.Context()
	if p.Key != "" {
		if keyID, err := id.Key.Parse(p.Key); err == nil {
			scopes, _ := access.ParseScopes(strings.Fields(p.Scopes), access.PlatformScopes())
			ctx = handlers.WithVouched(ctx, handlers.Vouched{Key: keyID, Scopes: scopes})
		}
	}
	out := req.WithContext(ctx)
	out.Header = req.Header.Clone()
	out.Header.Del(passageHeader)
	out.Header.Del("X-Forwarded-For")
	if ip, err := netip.ParseAddr(p.Client); err == nil {
		out.RemoteAddr = netip.AddrPortFrom(ip, 0).String()
	}
	if p.Body != "" {
		out.Body = &signedBody{ReadCloser: req.Body, digest: sha256.New(), want: p.Body}
	}
	return out
}

func changes(req *http.Request) bool {
	return req.Method != http.MethodGet && req.Method != http.MethodHead
}

// destination is the home of a request. An empty home is this one.
type destination struct {
	home string
	of   string // the key in the directory; empty: none
	key  *handlers.Vouched
	here bool // this home has it
	// sender is the key of the request, which a home has; the zero id is a stranger.
	sender id.UUID
	// cookie is the cookie in which the browser stores the home; empty: none.
	cookie string
}

// home finds the home of a request. A request that another home passed on is looked up here first: this process's cache
// can be older than the other home's answer.
func (r *Router) home(req *http.Request, s subject, passed bool) (destination, error) {
	r = r.doubting(passed)
	switch s.kind {
	case ofKey:
		return r.homeOfKey(req, s.text)
	case ofTenant:
		if s.key != "" && handlers.VouchedOf(req.Context()) == nil {
			return r.homeOfPlatformCall(req, s)
		}
		to, err := r.homeOf(req, question{Tenant: s.text})
		to.cookie = s.cookie
		if v := handlers.VouchedOf(req.Context()); v != nil {
			to.key, to.sender = v, v.Key
		}
		return to, err
	case ofToken:
		to, err := r.homeOf(req, question{Token: s.text})
		to.cookie = s.cookie
		return to, err
	case ofEmail:
		return r.homeOfEmail(req)
	case ofDomain, ofFormToken:
		return r.homeOfForm(req, s.kind)
	case ofBrowser:
		to := r.homeOfBrowser(req, s.text)
		if state := r.sights.of(to.home).State(); s.any && to.home != "" &&
			(state == home.Down || state == home.NoDatabase) {
			return destination{}, nil
		}
		return to, nil
	}
	return destination{}, nil
}

// homeOfKey finds the home of a tenant's key, or of a platform key that names no tenant. The home that a key names must
// have it before anything else is done for the request: anybody can invent a key.
func (r *Router) homeOfKey(req *http.Request, key string) (destination, error) {
	if key == "" || !accounts.LooksLikeKey(key) {
		return destination{}, nil // rejected here
	}
	hash := hashOf(key)
	q := question{Key: hash}
	known, ok := r.known.get(q.name())
	if named := home.OfKey(key); !ok && named != r.Self && r.others[named] != nil {
		ok = r.doubts // then the home that passed the request on has asked
		if !ok {
			var err error
			if ok, err = r.askOne(req, named, q); err != nil {
				return destination{}, err
			}
		}
		if ok {
			known = named
		}
	}
	to, err := r.find(req, q, known, ok)
	_, _ = hex.Decode(to.sender[:], []byte(hash[:2*len(to.sender)]))
	return to, err
}

// homeOfPlatformCall finds the home of the tenant that a platform key names. The key's own home checks the key and then
// vouches for it.
func (r *Router) homeOfPlatformCall(req *http.Request, s subject) (destination, error) {
	if !accounts.IsPlatformKey(s.key) {
		return r.homeOfKey(req, s.key) // which rejects it
	}
	vouched, err := r.Keys.PlatformKey(req.Context(), s.key)
	if fault.Is(err, handlers.KeyUnknown) {
		to, err := r.homeOfKey(req, s.key)
		to.of = "" // the response is made by the home of the tenant, not of the key
		return to, err
	}
	if err != nil {
		return destination{}, nil //nolint:nilerr // rejected here, with its limits
	}
	to, err := r.homeOf(req, question{Tenant: s.text})
	to.key, to.sender = &vouched, vouched.Key
	return to, err
}

// homeOf finds the home for a question. It checks this home first.
func (r *Router) homeOf(req *http.Request, q question) (destination, error) {
	known, ok := r.known.get(q.name())
	return r.find(req, q, known, ok)
}

// find uses the cache if it names another home; otherwise it checks here, then asks.
func (r *Router) find(req *http.Request, q question, known string, ok bool) (destination, error) {
	if ok && known != r.Self && !r.doubts {
		return r.reachable(req, destination{home: known, of: q.name()}, q)
	}
	here, err := r.has(req.Context(), q)
	if err != nil || here {
		return destination{here: here}, err
	}
	if ok && known != "" && known != r.Self {
		return r.reachable(req, destination{home: known, of: q.name()}, q)
	}
	return r.ask(req.Context(), r.client(req), q)
}

// doubting returns a router that checks this home first.
func (r *Router) doubting(passed bool) *Router {
	if !passed {
		return r
	}
	out := *r
	out.doubts = true
	return &out
}

// reachable asks again if the known home does not respond: its tenant has possibly moved.
func (r *Router) reachable(req *http.Request, to destination, q question) (destination, error) {
	if to.home == "" || to.home == r.Self || !r.others[to.home].isDown(r.Now()) {
		return to, nil
	}
	if again, err := r.ask(req.Context(), r.client(req), q); err == nil && again.home != "" {
		return again, nil
	}
	if here, err := r.has(req.Context(), q); err == nil && here {
		return destination{}, nil
	}
	return to, nil // which reports that it is down, or is tried again
}

// homeOfEmail finds the home of an account. It prefers a home in which the account is a member of a tenant, since
// tenants can have moved, and otherwise takes any home with the account. Of several, it takes the one that the browser
// used last, then this one.
func (r *Router) homeOfEmail(req *http.Request) (destination, error) {
	email, err := peekEmail(req)
	if err != nil || email == "" {
		//nolint:nilerr // the form is read again, and rejected
		return destination{home: r.remembered(req, homeCookie)}, nil
	}
	to, found, err := r.homeOfAccount(req, question{Email: email, Member: true})
	if err == nil && !found || errors.Is(err, errAsking) {
		to, _, err = r.homeOfAccount(req, question{Email: email})
	}
	return to, err
}

func (r *Router) homeOfAccount(req *http.Request, q question) (to destination, found bool, err error) {
	last := r.remembered(req, homeCookie)
	if last != "" && last != r.Self {
		if found, err := r.others[last].ask(req.Context(), r, q); err == nil && found {
			return destination{home: last, cookie: homeCookie}, true, nil
		}
	}
	here, err := r.has(req.Context(), q)
	if err != nil || here {
		return destination{cookie: homeCookie}, here, err
	}
	to, err = r.ask(req.Context(), r.client(req), q)
	found = to.home != ""
	to.of, to.cookie = "", homeCookie // accounts come and go
	return to, found, err
}

// homeOfForm finds the home of the token, or of the address's domain, in a form.
func (r *Router) homeOfForm(req *http.Request, kind kind) (destination, error) {
	var q question
	if kind == ofDomain {
		email, _ := peekEmail(req) // the handler rejects an invalid one
		q.Domain = sso.DomainOf(email)
	} else {
		q.Token, _ = peek(req, "token")
	}
	if q == (question{}) {
		return destination{home: r.remembered(req, homeCookie)}, nil
	}
	to, err := r.homeOf(req, q)
	to.cookie = homeCookie
	return to, err
}

// SignedElsewhere reports whether another home has signed an unsubscribe link, for a tenant that has left it since:
// links in mails still work after a move.
//
// The result is the address of the person whom the link names; empty: it names none. Such a person can have another id
// here.
func (r *Router) SignedElsewhere(ctx context.Context, token string) (email string, signed bool, err error) {
	to, err := r.ask(ctx, "", question{Signed: token})
	if err != nil || to.home == "" {
		return "", false, err
	}
	return email, true, r.others[to.home].call(ctx, r, "recipient", question{Signed: token}, &email)
}

// LinkElsewhere reports whether another home has signed a link to an event, for a tenant that has left it since.
func (r *Router) LinkElsewhere(ctx context.Context, token string) (signed bool, err error) {
	to, err := r.ask(ctx, "", question{Signed: token})
	return to.home != "", err
}

// recipient is the address of the person whom a link of this home names; empty: it names none.
func (r *Router) recipient(ctx context.Context, token string) (email string, err error) {
	payload, ok := r.Ring.OpenToken(accounts.UnsubscribePurpose, token)
	if !ok {
		return "", fault.ErrNotFound
	}
	s, _ := notice.ParseSubscription(payload)
	person, ok := notice.RecipientPerson(s.Recipient)
	if !ok {
		return "", nil
	}
	a, err := db.Read(ctx, r.DB.Account, func(q *db.Tx) (account.Account, error) {
		return accounts.Get(ctx, q, account.Person, person)
	})
	if db.IsMissing(err) {
		err = nil
	}
	return a.Email, err
}

// signed reports whether this home has signed a link to unsubscribe or to an event, for a tenant that has left it.
func (r *Router) signed(ctx context.Context, token string) (left bool, err error) {
	if text, ok := r.Ring.OpenToken(delivery.LinkPurpose, token); ok {
		l, _ := delivery.ParseLink(text)
		return accounts.HasLeft(ctx, r.DB, l.Tenant)
	}
	payload, ok := r.Ring.OpenToken(accounts.UnsubscribePurpose, token)
	if !ok {
		return false, nil
	}
	s, ok := notice.ParseSubscription(payload)
	if !ok {
		return false, nil
	}
	return accounts.HasLeft(ctx, r.DB, s.Tenant)
}

// has reports whether this home has something.
func (r *Router) has(ctx context.Context, q question) (found bool, err error) {
	switch {
	case q.Tenant != "":
		return r.Keys.HasTenant(ctx, q.Tenant)
	case q.Key != "":
		return r.Keys.HasKeyHash(ctx, q.Key)
	case q.Token != "":
		return accounts.HasToken(ctx, r.DB, q.Token)
	case q.Domain != "":
		_, err = accounts.TenantOfDomain(ctx, r.DB, q.Domain)
		if found = err == nil; fault.Is(err, fault.ErrNotFound.Code) {
			err = nil
		}
	case q.Signed != "":
		return r.signed(ctx, q.Signed)
	case q.Member:
		return accounts.HasMember(ctx, r.DB, q.Email)
	case q.Email != "":
		return accounts.HasPerson(ctx, r.DB, q.Email)
	}
	return found, err
}

// internalRoot is the path of the questions between homes.
const internalRoot = "/internal/homes/"

// client is the address of a request's client.
func (r *Router) client(req *http.Request) string {
	address := r.Proxies.Client(req)
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
