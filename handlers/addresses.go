package handlers

import (
	"net/netip"
	"sync"
	"time"

	"posthorn/domain/fault"
)

// Addresses limits how often one network address, and all of them together, can try what needs no account: signing in,
// signing up, and requesting mails. It counts in one process's memory. The limits for each account are in the database.
type Addresses struct {
	buckets *Buckets[netip.Prefix]
	all     *Buckets[struct{}]
}

// Buckets limits how often each of many things can be used, in one process's memory. It holds at most maxBuckets;
// when they are full, it drops all of them.
type Buckets[K comparable] struct {
	rate    Rate
	now     func() time.Time
	start   time.Time
	mu      sync.Mutex
	buckets map[K]*bucket
}

const maxBuckets = 50_000

// NewBuckets creates Buckets that are all full.
func NewBuckets[K comparable](rate Rate, now func() time.Time) *Buckets[K] {
	return &Buckets[K]{rate: rate, now: now, start: now(), buckets: map[K]*bucket{}}
}

// Take uses one token of a thing. It is false if none is left.
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

// Many people can share an address, behind a company's gateway or a proxy.
var addressRate = Rate{PerSecond: 1, Burst: 60}

// A try can leave a row in the database for as long as a link is valid. This bounds the rows of strangers with many
// addresses: 31,000 of passkeys, whose rows are valid for five minutes.
var allAddressesRate = Rate{PerSecond: 100, Burst: 1000}

// NewAddresses creates an empty Addresses.
func NewAddresses(now func() time.Time) *Addresses {
	return &Addresses{
		buckets: NewBuckets[netip.Prefix](addressRate, now),
		all:     NewBuckets[struct{}](allAddressesRate, now),
	}
}

// ErrTooManyTries rejects an address or an account with too many tries.
var ErrTooManyTries = &fault.Error{Kind: fault.Limited, Code: "too_many_tries", Detail: "Too many attempts. Wait a few minutes, then try again.", RetryAfter: 60}

// Take counts a try from an address. IPv6 addresses count by their /64 network, which belongs to one customer (RFC
// 6177).
func (a *Addresses) Take(address string) error {
	if !a.buckets.Take(network(address)) {
		return ErrTooManyTries
	}
	if !a.all.Take(struct{}{}) {
		return ErrBusy
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
