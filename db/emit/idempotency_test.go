package emit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"posthorn/domain/id"
)

func TestFiftyParallelPostsUnderOneKeyMakeOneEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	h.endpoint(tenant, nil)
	h.endpoint(tenant, nil)
	second, _ := h.committer(open(t, h.url)) // another process
	results := make([]Result, 50)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			c := h.commit
			if i%2 == 1 {
				c = second
			}
			results[i] = one(c, tenant, posted(1, "key"))
		})
	}
	all.Wait()
	fresh := 0
	for i, r := range results {
		if r.Err != nil || r.ID != results[0].ID || r.Deliveries != 2 {
			t.Errorf("post %d: %+v, want the first answer", i, r)
		}
		if !r.Duplicate {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d posts were the first", fresh)
	}
	if n := h.count("SELECT count(*) FROM events"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	if r := one(h.commit, tenant, posted(2, "key")); code(r.Err) != "idempotency_conflict" {
		t.Errorf("another body: %+v", r)
	}
	if r := one(h.commit, other, posted(2, "key")); r.Err != nil || r.Duplicate {
		t.Errorf("another tenant's key: %+v", r)
	}
	if r := one(h.commit, tenant, posted(1, "Key")); r.Err != nil || r.Duplicate {
		t.Errorf("a key in another spelling: %+v", r)
	}
	h.balanced()
}

func TestTwoEventsOfOneBatchUnderOneKeyAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, nil)
	r := h.commit.Emit(t.Context(), tenant, []Item{
		posted(1, "a"), posted(1, "a"), posted(2, "a"), posted(3, ""), posted(3, ""),
		posted(4, "b"),
	})
	if r[0].Err != nil || r[0].Duplicate || r[1].ID != r[0].ID || !r[1].Duplicate {
		t.Errorf("the same twice: %+v, %+v", r[0], r[1])
	}
	if code(r[2].Err) != "idempotency_conflict" {
		t.Errorf("another body under the same key: %+v", r[2])
	}
	if r[3].Err != nil || r[4].Err != nil || r[3].ID == r[4].ID || r[5].Err != nil {
		t.Errorf("without a key, and under another: %+v", r[3:])
	}
	if n := h.count("SELECT count(*) FROM events"); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
	h.balanced()
}

// A key is valid for a day from its use, whatever day its event belongs to.
func TestAKeyHoldsAcrossMidnightAndForADay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	first := one(h.commit, tenant, posted(1, "key"))
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	if n := h.count("SELECT count(*) FROM idempotency_keys WHERE expires_at BETWEEN now() + interval '23 hours 55 minutes' AND now() + interval '24 hours'"); n != 1 {
		t.Error("the key is not kept for 24 hours")
	}
	if n := h.count(`SELECT count(*) FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid
		WHERE c.relname = 'idempotency_keys' AND p.partstrat = 'h'`); n != 1 {
		t.Error("keys are not partitioned by their own hash: a day could take them along")
	}
	// As if it had been used 23 h 59 min 50 s ago, yesterday, and its event's day were dropped already.
	h.exec("UPDATE idempotency_keys SET expires_at = now() + interval '10 seconds'")
	h.exec("DELETE FROM events")
	if r := one(h.commit, tenant, posted(1, "key")); r.Err != nil || !r.Duplicate || r.ID != first.ID {
		t.Errorf("within its day: %+v, want the first answer", r)
	}
	if r := one(h.commit, tenant, posted(2, "key")); code(r.Err) != "idempotency_conflict" {
		t.Errorf("another body within its day: %+v", r)
	}
	h.exec("UPDATE idempotency_keys SET expires_at = now() - interval '1 second'")
	again := one(h.commit, tenant, posted(2, "key"))
	if again.Err != nil || again.Duplicate || again.ID == first.ID {
		t.Errorf("after its day: %+v, want a new event", again)
	}
	if r := one(h.commit, tenant, posted(2, "key")); !r.Duplicate || r.ID != again.ID {
		t.Errorf("then: %+v, want the new event's answer", r)
	}
	if n := h.count("SELECT count(*) FROM idempotency_keys"); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestAnExpiredKeyIsTakenOverOnceByMany(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	second, _ := h.committer(open(t, h.url))
	for round := range 5 {
		h.exec("UPDATE idempotency_keys SET expires_at = now() - interval '1 second'")
		ids := map[id.UUID]bool{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				r := one([]*Committer{h.commit, second}[i%2], tenant, posted(round, "key"))
				if r.Err != nil {
					t.Error(r.Err)
				}
				mu.Lock()
				ids[r.ID] = true
				mu.Unlock()
			})
		}
		all.Wait()
		if len(ids) != 1 {
			t.Fatalf("round %d: %d events under one key", round, len(ids))
		}
	}
	if n := h.count("SELECT count(*) FROM events"); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
}

// Two processes whose batches have the same keys in different orders must not deadlock.
func TestKeysInAnyOrderMakeNoDeadlock(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	second, _ := h.committer(open(t, h.url))
	const keys = 100
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			items := make([]Item, keys)
			for k := range items {
				n := k
				if i%2 == 1 {
					n = keys - 1 - k
				}
				items[k] = posted(n, fmt.Sprintf("key %03d", n))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for _, r := range []*Committer{h.commit, second}[i%2].Emit(ctx, tenant, items) {
				if r.Err != nil {
					t.Error(r.Err)
				}
			}
		})
	}
	all.Wait()
	if n := h.count("SELECT count(*) FROM events"); n != keys {
		t.Errorf("%d events, want %d", n, keys)
	}
	if n := h.count("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}
