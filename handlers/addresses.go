package handlers

import (
	"net/netip"
	"sync"
	"time"

	"posthorn/domain/fault"
)

// Addresses bounds how often one network address may try what strangers may: to sign in, to sign up, to have mails sent.
// It lives in one process's memory; what bounds the tries at one account is in the database.
type Addresses struct{ buckets *Buckets[netip.Prefix] }

// Buckets bounds how often each of many things may be used, in one process's memory. More than maxBuckets are not kept at
// once: the oldest are forgotten together.
type Buckets[K comparable] struct {
	rate    Rate
	now     func() time.Time
	start   time.Time
	mu      sync.Mutex
	buckets map[K]*bucket
}

const maxBuckets = 50_000

// NewBuckets makes them, all full.
func NewBuckets[K comparable](rate Rate, now func() time.Time) *Buckets[K] {
	return &Buckets[K]{rate: rate, now: now, start: now(), buckets: map[K]*bucket{}}
}

// Take uses one of a thing's tokens, and is false where it has none left.
func (b *Buckets[K]) Take(of K) bool {
	b.mu.Lock()
	one := b.buckets[of]
	if one == nil {
		if len(b.buckets) >= maxBuckets {
			clear(b.buckets)
		}
		one = &bucket{}
		b.buckets[of] = one
	}
	b.mu.Unlock()
	ok, _, _ := one.take(b.now().Sub(b.start), b.rate)
	return ok
}

// Many people may share an address, behind a company's gateway or a proxy.
var addressRate = Rate{PerSecond: 1, Burst: 60}

// NewAddresses makes one.
func NewAddresses(now func() time.Time) *Addresses {
	return &Addresses{buckets: NewBuckets[netip.Prefix](addressRate, now)}
}

// ErrTooManyTries is the refusal of an address, or of an account, at which too much was tried.
var ErrTooManyTries = &fault.Error{Kind: fault.Limited, Code: "too_many_tries", Detail: "Too many tries. Wait a few minutes, then try again.", RetryAfter: 60}

// Take counts a try from an address. IPv6 counts by the network of 64 bits, which belongs to one customer (RFC 6177).
func (a *Addresses) Take(address string) error {
	if !a.buckets.Take(network(address)) {
		return ErrTooManyTries
	}
	return nil
}

func network(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
