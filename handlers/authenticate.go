package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
)

// Keys looks up API keys; *db.DB is one.
type Keys interface {
	// FindKey finds a key by its hash, or returns fault.ErrNotFound.
	FindKey(ctx context.Context, hash [sha256.Size]byte) (accounts.Credential, error)
	// TenantState finds a tenant's state, or returns fault.ErrNotFound.
	TenantState(ctx context.Context, tenant id.UUID) (account.TenantState, error)
	// FindTenant finds a tenant by its external id, or returns fault.ErrNotFound.
	FindTenant(ctx context.Context, external string) (id.UUID, error)
	// FindEndpoint finds an endpoint of a tenant by its external id, or returns fault.ErrNotFound.
	FindEndpoint(ctx context.Context, tenant id.UUID, external string) (id.UUID, error)
	// KeysRevision is a number that changes whenever a result of FindKey, TenantState, or FindTenant can change.
	KeysRevision(ctx context.Context) (int64, error)
	// TouchKeys stores that keys were used.
	TouchKeys(ctx context.Context, keys []id.UUID) error
}

// Tokens identifies people of a tenant's product by the access tokens that the product's authorization server gave
// them.
type Tokens interface {
	// Identify returns who a token was given to. Errors are 401s, or 503 if that can't be found out now.
	Identify(ctx context.Context, tenant id.UUID, token string) (Identified, error)
}

// Identified is a person of a tenant's product.
type Identified struct {
	Principal string // the product's own id of the person
	Expires   time.Time
}

const (
	// A revocation takes effect within a second. Cached results hold while the revision, polled this often, stays the
	// same ...
	pollEvery = 400 * time.Millisecond
	// ... and only if the last poll is this recent. Otherwise every request queries the database.
	pollValid = time.Second
	// How long one lookup or poll can take.
	lookupTimeout = 3 * time.Second
	pollTimeout   = 900 * time.Millisecond
	// The use of keys is stored at most this often, many keys in one statement.
	touchEvery = time.Minute
	flushEvery = 5 * time.Second
	// At most this many results are cached.
	maxAnswers = 100_000
)

// Authenticator identifies the holder of a key. It caches results in memory as long as the database's revision of
// keys stays the same.
type Authenticator struct {
	keys Keys
	// Tokens is for routes with Access.Tokens; nil: nobody has a token.
	Tokens Tokens

	log   *slog.Logger
	now   func() time.Time
	start time.Time

	current  atomic.Pointer[answers]
	polledAt atomic.Int64 // when the last successful poll started, on this clock since start; -1: never

	mu   sync.Mutex
	used map[id.UUID]struct{}
}

// answers are the results under one revision. A lookup that started under it and ends after the next revision was seen
// still writes here, where no request reads any more.
type answers struct {
	revision int64
	size     atomic.Int64
	keys     sync.Map // [32]byte -> *holder
	tenants  sync.Map // id.UUID -> state
	external sync.Map // string -> id.UUID, of tenants

	mu      sync.Mutex
	lookups map[[sha256.Size]byte]*lookup // running lookups
}

// lookup is a lookup of a key for which several requests wait: a thousand requests with a key that is not cached are
// one query.
type lookup struct {
	done chan struct{}
	who  *holder
	err  error
}

// holder is a key that exists.
type holder struct {
	key, tenant id.UUID // tenant is zero for a platform key
	scopes      access.Scopes
	feed        id.UUID // of the token of a consumer: the only feed that it reads; else zero
	consumer    string
	principal   string // of a token: the person of the tenant's product. Then key is zero
	expires     time.Time
	revoked     bool
	state       account.TenantState
	touched     atomic.Int64
}

// NewAuthenticator creates an Authenticator that queries the database each time until Run polls.
func NewAuthenticator(keys Keys, log *slog.Logger, now func() time.Time) *Authenticator {
	a := &Authenticator{keys: keys, log: log, now: now, start: now(), used: map[id.UUID]struct{}{}}
	a.current.Store(&answers{revision: -1})
	a.polledAt.Store(-1)
	return a
}

// Run polls the revision and stores which keys were used, until the context ends.
func (a *Authenticator) Run(ctx context.Context) error {
	poll, flush := time.NewTicker(pollEvery), time.NewTicker(flushEvery)
	defer poll.Stop()
	defer flush.Stop()
	a.poll(ctx)
	for {
		select {
		case <-poll.C:
			a.poll(ctx)
		case <-flush.C:
			a.flush(ctx)
		case <-ctx.Done():
			a.flush(context.WithoutCancel(ctx))
			return nil
		}
	}
}

func (a *Authenticator) elapsed() time.Duration { return a.now().Sub(a.start) }

func (a *Authenticator) poll(ctx context.Context) {
	began := a.elapsed()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	revision, err := a.keys.KeysRevision(ctx)
	if err != nil {
		a.log.Debug("revision of keys not read; keys are looked up one by one", "error", err)
		return
	}
	if revision != a.current.Load().revision {
		a.current.Store(&answers{revision: revision})
	}
	a.polledAt.Store(int64(began))
}

// fresh returns the valid cached results, or nil.
func (a *Authenticator) fresh() *answers {
	polled := a.polledAt.Load()
	if polled < 0 || a.elapsed()-time.Duration(polled) > pollValid {
		return nil
	}
	return a.current.Load()
}

// Errors of a request without a valid key.
var (
	errKeyMissing    = fault.New(fault.Unauthenticated, "key_missing", "Send your API key as `Authorization: Bearer <key>`.")
	errKeyUnknown    = fault.New(fault.Unauthenticated, "key_unknown", "Invalid API key. Check that you copied all of it, or create a new one under API keys.")
	errKeyRevoked    = fault.New(fault.Unauthenticated, "key_revoked", "This API key was revoked. Use another key.")
	errConsumerToken = fault.New(fault.Forbidden, "consumer_token_only", "This is the token of a feed's consumer. It reads and acknowledges that feed, and nothing else. Use an API key.")
	ErrTokenRejected = fault.New(fault.Unauthenticated, "token_rejected", "This access token is not accepted here. Sign in again, and ask for a token for this address.")
	errKeyExpired    = fault.New(fault.Unauthenticated, "key_expired", "This API key has expired. Use another key.")
)

// credential returns what an Authorization header has as a bearer token; empty: nothing.
func credential(h http.Header) string {
	if scheme, text, _ := strings.Cut(h.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(text)
	}
	return ""
}

// bearer returns the key in an Authorization header.
func bearer(h http.Header) (string, error) {
	key := credential(h)
	if key == "" {
		return "", errKeyMissing
	}
	if !accounts.LooksLikeKey(key) {
		return "", errKeyUnknown
	}
	return key, nil
}

// authenticate finds the holder of a key. Errors are 401s, or 503 if the database is unavailable and no cached result
// is valid.
func (a *Authenticator) authenticate(ctx context.Context, text string) (*holder, error) {
	hash := sha256.Sum256([]byte(text))
	kept := a.fresh()
	var who *holder
	if kept != nil {
		if found, ok := kept.keys.Load(hash); ok {
			who = found.(*holder)
		}
	}
	if who == nil {
		var err error
		if who, err = a.findOnce(ctx, hash, kept); err != nil {
			return nil, err
		}
	}
	now := a.now()
	switch {
	case who.revoked:
		return nil, errKeyRevoked
	case !now.Before(who.expires):
		return nil, errKeyExpired
	}
	a.touch(who)
	return who, nil
}

var errKeySlow = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "database_unavailable",
	RetryAfter: 2,
	Detail:     "The database isn't responding right now. Send the same request again in a few seconds.",
}

// findOnce joins the running lookup of this key, or starts one. Its result is valid as long as a cached result of the
// same revision would be. Without a cache every request queries for itself.
func (a *Authenticator) findOnce(ctx context.Context, hash [sha256.Size]byte, kept *answers) (*holder, error) {
	if kept == nil {
		return a.find(ctx, hash, nil)
	}
	l := a.join(context.WithoutCancel(ctx), hash, kept)
	select {
	case <-l.done:
		return l.who, l.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, errKeySlow
		}
		return nil, ctx.Err()
	}
}

// join returns the lookup of a key. It runs in a goroutine of its own: the request that started it can end, and
// waiting requests do not hold the stack that a query needs.
func (a *Authenticator) join(ctx context.Context, hash [sha256.Size]byte, kept *answers) *lookup {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if l, ok := kept.lookups[hash]; ok {
		return l
	}
	l := &lookup{done: make(chan struct{})}
	if found, ok := kept.keys.Load(hash); ok { // cached since the request checked
		l.who = found.(*holder)
		close(l.done)
		return l
	}
	if kept.lookups == nil {
		kept.lookups = map[[sha256.Size]byte]*lookup{}
	}
	kept.lookups[hash] = l
	go func() {
		l.who, l.err = a.find(ctx, hash, kept)
		kept.mu.Lock()
		delete(kept.lookups, hash)
		kept.mu.Unlock()
		close(l.done)
	}()
	return l
}

func (a *Authenticator) find(ctx context.Context, hash [sha256.Size]byte, kept *answers) (*holder, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := a.keys.FindKey(ctx, hash)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return nil, errKeyUnknown
	}
	if err != nil {
		return nil, err
	}
	scopes, special := access.ParseScopes(found.Scopes, access.PlatformScopes())
	who := &holder{
		key:     found.Key,
		tenant:  found.Tenant,
		scopes:  withFeeds(scopes),
		expires: found.ExpiresAt,
		revoked: found.Revoked,
		state:   found.State,
	}
	for _, name := range special {
		if one, consumer, ok := feed.ParseScope(name); ok {
			who.feed, who.consumer, who.scopes = one, consumer, access.Scopes{access.FeedsRead}
		}
	}
	who.touched.Store(-int64(touchEvery))
	if kept != nil && who.state != account.TenantMoving && a.room(kept) {
		kept.keys.Store(hash, who)
	}
	return who, nil
}

// withFeeds adds what events:read includes.
func withFeeds(s access.Scopes) access.Scopes {
	if s.Has(access.EventsRead) && !s.Has(access.FeedsRead) {
		return append(slices.Clone(s), access.FeedsRead)
	}
	return s
}

// room counts a result, and empties the cache when it is full.
func (a *Authenticator) room(kept *answers) bool {
	if kept.size.Add(1) <= maxAnswers {
		return true
	}
	a.current.CompareAndSwap(kept, &answers{revision: kept.revision})
	return false
}

// tenantState returns the state of a tenant that a platform key names.
func (a *Authenticator) tenantState(ctx context.Context, tenant id.UUID) (account.TenantState, error) {
	kept := a.fresh()
	if kept != nil {
		if state, ok := kept.tenants.Load(tenant); ok {
			return state.(account.TenantState), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	state, err := a.keys.TenantState(ctx, tenant)
	if err == nil && kept != nil && state != account.TenantMoving && a.room(kept) {
		kept.tenants.Store(tenant, state)
	}
	return state, err
}

// findTenant finds the tenant that a path names by its external id. A missing tenant is not cached: it can be created
// at any moment.
func (a *Authenticator) findTenant(ctx context.Context, external string) (id.UUID, error) {
	kept := a.fresh()
	if kept != nil {
		if u, ok := kept.external.Load(external); ok {
			return u.(id.UUID), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	tenantID, err := a.keys.FindTenant(ctx, external)
	if err == nil && kept != nil && a.room(kept) {
		kept.external.Store(external, tenantID)
	}
	return tenantID, err
}

// findEndpoint finds the endpoint of a tenant that a path or a parameter names by its external id.
func (a *Authenticator) findEndpoint(ctx context.Context, tenant id.UUID, external string) (id.UUID, error) {
	if !id.ValidExternal(id.Endpoint, external) {
		return id.UUID{}, fault.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return a.keys.FindEndpoint(ctx, tenant, external)
}

// touch records that a key was used, unless it did so within the last minute.
func (a *Authenticator) touch(who *holder) {
	now, last := int64(a.elapsed()), who.touched.Load()
	if now-last < int64(touchEvery) || !who.touched.CompareAndSwap(last, now) {
		return
	}
	a.mu.Lock()
	a.used[who.key] = struct{}{}
	a.mu.Unlock()
}

func (a *Authenticator) flush(ctx context.Context) {
	a.mu.Lock()
	used := a.used
	a.used = map[id.UUID]struct{}{}
	a.mu.Unlock()
	if len(used) == 0 {
		return
	}
	keys := make([]id.UUID, 0, len(used))
	for k := range used {
		keys = append(keys, k)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	if err := a.keys.TouchKeys(ctx, keys); err != nil {
		a.log.Warn("last use of keys not written", "error", err, "keys", len(keys))
	}
}

// KeyUnknown is the code of the error about a key that this database does not have.
const KeyUnknown = "key_unknown"

// IsPlatformKey reports whether a text is a platform key of this database that is admitted.
func (a *Authenticator) IsPlatformKey(ctx context.Context, text string) bool {
	who, err := a.authenticate(ctx, text)
	return err == nil && who.tenant.IsZero()
}

// caller finds the holder of a request's key.
func (a *Authenticator) caller(c *Call) (*holder, error) {
	if token := credential(c.Request.Header); c.access.Tokens && a.Tokens != nil && token != "" && !accounts.LooksLikeKey(token) {
		return a.person(c, token)
	}
	text, err := bearer(c.Request.Header)
	if err != nil {
		return nil, err
	}
	return a.authenticate(c.Ctx(), text)
}

// person finds who a token was given to, in the tenant that the path names.
func (a *Authenticator) person(c *Call, token string) (*holder, error) {
	tenant, err := id.Tenant.Parse(c.Param(TenantParam))
	if err != nil {
		tenant, err = a.findTenant(c.Ctx(), c.Param(TenantParam))
	}
	if fault.Is(err, fault.ErrNotFound.Code) {
		return nil, ErrTokenRejected
	} else if err != nil {
		return nil, err
	}
	who, err := a.Tokens.Identify(c.Ctx(), tenant, token)
	if err != nil {
		return nil, err
	}
	state, err := a.tenantState(c.Ctx(), tenant)
	if err != nil {
		return nil, err
	}
	c.setParam(TenantParam, id.Tenant.Format(tenant))
	return &holder{tenant: tenant, principal: who.Principal, expires: who.Expires, state: state}, nil
}
