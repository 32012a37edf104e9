package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// store is a lookup whose faults a test chooses. handlers/api tests the real one.
type store struct {
	mu        sync.Mutex
	revision  int64
	rows      map[[32]byte]accounts.Credential
	states    map[id.UUID]account.TenantState
	externals map[string]id.UUID
	lookups   int
	touched   []id.UUID
	down      error
	within    func() // runs inside the next lookup, after it has read
}

var errDown = &fault.Error{Kind: fault.Unavailable, Code: "database_unavailable", Detail: "down", Cause: errors.New("refused")}

func (s *store) FindKey(_ context.Context, hash [32]byte) (accounts.Credential, error) {
	s.mu.Lock()
	row, ok := s.rows[hash]
	s.lookups++
	down, within := s.down, s.within
	s.within = nil
	s.mu.Unlock()
	if within != nil {
		within()
	}
	switch {
	case down != nil:
		return accounts.Credential{}, down
	case !ok:
		return accounts.Credential{}, fault.ErrNotFound
	}
	return row, nil
}

func (s *store) FindTenant(_ context.Context, external string) (id.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	uuid, ok := s.externals[external]
	if !ok {
		return id.UUID{}, fault.ErrNotFound
	}
	return uuid, s.down
}

func (s *store) FindEndpoint(context.Context, id.UUID, string) (id.UUID, error) {
	return id.UUID{}, fault.ErrNotFound
}

func (s *store) TenantState(_ context.Context, tenant id.UUID) (account.TenantState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	state, ok := s.states[tenant]
	if !ok {
		return "", fault.ErrNotFound
	}
	return state, s.down
}

func (s *store) KeysRevision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, s.down
}

func (s *store) TouchKeys(_ context.Context, keys []id.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = append(s.touched, keys...)
	return s.down
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

const testKey = "phk_0123456789"

func newStore() (*store, *clock, *Authenticator) {
	s := &store{rows: map[[32]byte]accounts.Credential{}, states: map[id.UUID]account.TenantState{}}
	s.rows[sha256.Sum256([]byte(testKey))] = accounts.Credential{
		Key:       id.UUID{1},
		Tenant:    id.UUID{2},
		Scopes:    []string{"events:write"},
		State:     account.TenantActive,
		ExpiresAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return s, c, NewAuthenticator(s, slog.New(slog.DiscardHandler), c.now)
}

func (s *store) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := sha256.Sum256([]byte(testKey))
	row := s.rows[hash]
	row.Revoked = true
	s.rows[hash] = row
	s.revision++
}

func try(a *Authenticator) string {
	_, err := a.authenticate(context.Background(), testKey)
	if err == nil {
		return "ok"
	}
	return fault.As(err).Code
}

// The home that a tenant leaves must not respond for it any longer: with a cached state, its events would find a home
// without the tenant.
func TestATenantThatMovesIsLookedUpEachTime(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	a.poll(t.Context())
	hash := sha256.Sum256([]byte(testKey))
	row := s.rows[hash]
	row.State = account.TenantMoving
	s.rows[hash] = row
	s.states[id.UUID{2}] = account.TenantMoving
	s.externals = map[string]id.UUID{"acme": {2}}
	for range 2 {
		if got := try(a); got != "ok" {
			t.Errorf("the key: %s", got)
		}
		if got, err := a.findTenant(t.Context(), "acme"); err != nil || got != (id.UUID{2}) {
			t.Errorf("the tenant: %v, %v", got, err)
		}
	}
	delete(s.rows, hash)
	delete(s.states, id.UUID{2})
	if got := try(a); got != KeyUnknown {
		t.Errorf("after the move, the key: %s", got)
	}
	if state, err := a.tenantState(t.Context(), id.UUID{2}); err == nil {
		t.Errorf("after the move, the tenant: %v", state)
	}
}

func TestResultsAreCachedUntilTheRevisionChanges(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	if try(a); s.lookups != 1 {
		t.Fatalf("%d look-ups", s.lookups)
	}
	if try(a); s.lookups != 2 {
		t.Fatal("kept without a poll")
	}
	a.poll(t.Context())
	try(a)
	if try(a); s.lookups != 3 {
		t.Fatalf("%d look-ups: nothing was kept", s.lookups)
	}
	s.revoke()
	if got := try(a); got != "ok" {
		t.Fatalf("before the poll: %s", got)
	}
	a.poll(t.Context())
	if got := try(a); got != "key_revoked" {
		t.Fatalf("after the poll: %s", got)
	}
}

func TestAFailedPollInvalidatesTheCache(t *testing.T) {
	t.Parallel()
	s, c, a := newStore()
	a.poll(t.Context())
	try(a)
	s.down = errDown
	c.pass(900 * time.Millisecond)
	a.poll(t.Context())
	if got := try(a); got != "ok" {
		t.Fatalf("within the second: %s", got)
	}
	c.pass(101 * time.Millisecond)
	if got := try(a); got != "database_unavailable" {
		t.Fatalf("after the second: %s", got)
	}
	s.down = nil
	s.revoke()
	if got := try(a); got != "key_revoked" {
		t.Fatalf("asked one by one: %s", got)
	}
}

func TestALookupOvertakenByARevocationIsNotCached(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	a.poll(t.Context())
	s.within = func() {
		s.revoke()
		a.poll(context.Background())
	}
	if got := try(a); got != "ok" { // it read before the revocation
		t.Fatal(got)
	}
	if got := try(a); got != "key_revoked" {
		t.Fatalf("the overtaken answer was kept: %s", got)
	}
}

func TestRequestsThatArriveTogetherLookAKeyUpOnce(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	a.poll(t.Context())
	const requests = 500
	var started, ended sync.WaitGroup
	started.Add(requests)
	ended.Add(requests)
	for range requests {
		go func() {
			defer ended.Done()
			started.Done()
			if got := try(a); got != "ok" {
				t.Error(got)
			}
		}()
	}
	s.mu.Lock()
	s.within = started.Wait
	s.mu.Unlock()
	ended.Wait()
	if s.lookups != 1 {
		t.Errorf("%d look-ups of one key", s.lookups)
	}
}

func TestARequestThatEndsLeavesTheLookUpToTheOthers(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	a.poll(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	s.within = func() { cancel(); <-release }
	if _, err := a.authenticate(ctx, testKey); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(release)
	if got := try(a); got != "ok" || s.lookups != 1 {
		t.Errorf("%s after %d look-ups", got, s.lookups)
	}
}

func TestACachedKeyExpires(t *testing.T) {
	t.Parallel()
	_, c, a := newStore()
	a.poll(t.Context())
	try(a)
	c.pass(5 * 365 * 24 * time.Hour)
	a.poll(t.Context())
	if got := try(a); got != "key_expired" {
		t.Fatal(got)
	}
}

func TestUsesAreWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	s, c, a := newStore()
	uses := func() {
		a.poll(t.Context())
		for range 10 {
			try(a)
		}
		a.flush(t.Context())
	}
	uses()
	c.pass(30 * time.Second)
	uses()
	if len(s.touched) != 1 {
		t.Fatalf("touched %d times within a minute", len(s.touched))
	}
	c.pass(31 * time.Second)
	uses()
	if len(s.touched) != 2 {
		t.Fatalf("touched %d times", len(s.touched))
	}
}

func TestTenantsNamedByPlatformKeysAreCachedToo(t *testing.T) {
	t.Parallel()
	s, _, a := newStore()
	s.states[id.UUID{9}] = "active"
	a.poll(t.Context())
	for range 3 {
		if got, err := a.tenantState(t.Context(), id.UUID{9}); got != "active" || err != nil {
			t.Fatal(got, err)
		}
		if _, err := a.tenantState(t.Context(), id.UUID{8}); !fault.Is(err, "not_found") {
			t.Fatal(err)
		}
	}
	if s.lookups != 4 { // the unknown one is looked up each time: it can be created at any moment
		t.Errorf("%d look-ups", s.lookups)
	}
}

func TestOnlyWhatLooksLikeAKeyIsLookedUp(t *testing.T) {
	t.Parallel()
	good := "phk_" + strings.Repeat("aZ9", 16) + "0"
	for text, want := range map[string]bool{
		good:                           true,
		"php_" + good[4:]:              true,
		"phx_" + good[4:]:              false,
		good + "a":                     false,
		good[:40]:                      false,
		"":                             false,
		good[:10] + "-" + good[11:]:    false,
		good[:10] + "\x00" + good[11:]: false,
	} {
		if accounts.LooksLikeKey(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
