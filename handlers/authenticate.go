package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Keys is where API keys are looked up; *db.DB is one.
type Keys interface {
	// FindKey finds a key by its hash; fault.ErrNotFound where there is none.
	FindKey(ctx context.Context, hash [sha256.Size]byte) (sql.FindKeyRow, error)
	// TenantState finds a tenant's state; fault.ErrNotFound where there is none.
	TenantState(ctx context.Context, tenant id.UUID) (string, error)
	// KeysRevision is a number that changes whenever an answer of the two above may have.
	KeysRevision(ctx context.Context) (int64, error)
	// TouchKeys remembers that keys were used.
	TouchKeys(ctx context.Context, keys []id.UUID) error
}

const (
	// A revocation holds within a second: answers are kept while the revision, asked for this often, stands ...
	pollEvery = 400 * time.Millisecond
	// ... and only if it was last asked for this recently. Otherwise every request asks the database.
	pollValid = time.Second
	// How long one look-up or poll may take.
	lookupTimeout = 3 * time.Second
	pollTimeout   = 900 * time.Millisecond
	// Uses of a key are written at most this often, many keys at a time.
	touchEvery = time.Minute
	flushEvery = 5 * time.Second
	// More answers than this are not kept at once.
	maxAnswers = 100_000
)

// Authenticator tells who holds a key. Its answers are kept in memory for as long as the database's revision of keys
// stands.
type Authenticator struct {
	keys  Keys
	log   *slog.Logger
	now   func() time.Time
	start time.Time

	current  atomic.Pointer[answers]
	polledAt atomic.Int64 // when the last poll that succeeded began, on this clock since start; -1: never

	mu   sync.Mutex
	used map[id.UUID]struct{}
}

// answers are what was found under one revision. A look-up that began under it and ends after the next revision was seen
// still writes here, where nobody looks any more.
type answers struct {
	revision int64
	size     atomic.Int64
	keys     sync.Map // [32]byte -> *holder
	tenants  sync.Map // id.UUID -> state

	mu      sync.Mutex
	lookups map[[sha256.Size]byte]*lookup // under way
}

// lookup is a key's look-up that several requests wait for: a thousand requests that arrive with a key that is not kept
// yet are one question to the database.
type lookup struct {
	done chan struct{}
	who  *holder
	err  error
}

// holder is a key that exists.
type holder struct {
	key, tenant id.UUID // tenant is zero for a platform key
	scopes      access.Scopes
	expires     time.Time
	revoked     bool
	state       string // the tenant's
	touched     atomic.Int64
}

// NewAuthenticator makes one that asks the database each time until Run polls.
func NewAuthenticator(keys Keys, log *slog.Logger, now func() time.Time) *Authenticator {
	a := &Authenticator{keys: keys, log: log, now: now, start: now(), used: map[id.UUID]struct{}{}}
	a.current.Store(&answers{revision: -1})
	a.polledAt.Store(-1)
	return a
}

// Run polls the revision and writes down which keys were used, until the context ends.
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

// fresh is the set of answers that still hold, or nil.
func (a *Authenticator) fresh() *answers {
	polled := a.polledAt.Load()
	if polled < 0 || a.elapsed()-time.Duration(polled) > pollValid {
		return nil
	}
	return a.current.Load()
}

// The refusals of a request without a good key.
var (
	errKeyMissing = fault.New(fault.Unauthenticated, "key_missing", "Send your API key as `Authorization: Bearer <key>`.")
	errKeyUnknown = fault.New(fault.Unauthenticated, "key_unknown", "There is no such API key. Check that it was copied whole; a new one can be made under API keys.")
	errKeyRevoked = fault.New(fault.Unauthenticated, "key_revoked", "This API key was revoked. Use another one.")
	errKeyExpired = fault.New(fault.Unauthenticated, "key_expired", "This API key has expired. Use another one.")
)

// bearer is the key in an Authorization header.
func bearer(h http.Header) (string, error) {
	scheme, key, ok := strings.Cut(h.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !ok || key == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", errKeyMissing
	}
	if !accounts.LooksLikeKey(key) {
		return "", errKeyUnknown
	}
	return key, nil
}

// authenticate finds the holder of a key's text. Errors are 401s, or 503 where the database can't be asked and no kept
// answer holds.
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
	Kind: fault.Unavailable, Code: "database_unavailable", RetryAfter: 2,
	Detail: "The database does not answer at the moment. Send the same request again in a few seconds.",
}

// findOnce joins the look-up of this key that is under way, or starts one. What a look-up finds holds as long as a kept
// answer of the same revision would. Where no answers are kept, every request asks for itself.
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

// join returns the look-up of a key. It runs in a goroutine of its own: the request that started it can end, and the
// stack that a query needs is not kept by every request that waits for it.
func (a *Authenticator) join(ctx context.Context, hash [sha256.Size]byte, kept *answers) *lookup {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if l, ok := kept.lookups[hash]; ok {
		return l
	}
	l := &lookup{done: make(chan struct{})}
	if found, ok := kept.keys.Load(hash); ok { // kept since the request looked
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
	row, err := a.keys.FindKey(ctx, hash)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return nil, errKeyUnknown
	}
	if err != nil {
		return nil, err
	}
	scopes, _ := access.ParseScopes(row.Scopes, access.PlatformScopes())
	who := &holder{
		key: row.ID, tenant: row.TenantID, scopes: scopes, expires: row.ExpiresAt, revoked: row.Revoked, state: row.TenantState,
	}
	who.touched.Store(-int64(touchEvery))
	if kept != nil && a.room(kept) {
		kept.keys.Store(hash, who)
	}
	return who, nil
}

// room counts an answer, and starts over where there are too many.
func (a *Authenticator) room(kept *answers) bool {
	if kept.size.Add(1) <= maxAnswers {
		return true
	}
	a.current.CompareAndSwap(kept, &answers{revision: kept.revision})
	return false
}

// tenantState is the state of a tenant that a platform key names.
func (a *Authenticator) tenantState(ctx context.Context, tenant id.UUID) (string, error) {
	kept := a.fresh()
	if kept != nil {
		if state, ok := kept.tenants.Load(tenant); ok {
			return state.(string), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	state, err := a.keys.TenantState(ctx, tenant)
	if err == nil && kept != nil && a.room(kept) {
		kept.tenants.Store(tenant, state)
	}
	return state, err
}

// touch remembers that a key was used, unless it did so within the last minute.
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
