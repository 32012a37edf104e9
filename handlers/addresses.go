package handlers

import (
	"net/netip"
	"sync"
	"time"

	"posthorn/domain/fault"
)

// Addresses bounds how often one network address may try what strangers may: to sign in, to sign up, to have mails sent.
// It lives in one process's memory; what bounds the tries at one account is in the database.
type Addresses struct {
	now     func() time.Time
	start   time.Time
	mu      sync.Mutex
	buckets map[netip.Prefix]*bucket
}

// Many people may share an address, behind a company's gateway or a proxy.
var addressRate = Rate{PerSecond: 1, Burst: 60}

// More addresses than this are not kept at once: the oldest are forgotten together.
const maxAddresses = 50_000

// NewAddresses makes one.
func NewAddresses(now func() time.Time) *Addresses {
	return &Addresses{now: now, start: now(), buckets: map[netip.Prefix]*bucket{}}
}

// ErrTooManyTries is the refusal of an address, or of an account, at which too much was tried.
var ErrTooManyTries = &fault.Error{Kind: fault.Limited, Code: "too_many_tries", Detail: "Too many tries. Wait a few minutes, then try again.", RetryAfter: 60}

// Take counts a try from an address. IPv6 counts by the network of 64 bits, which belongs to one customer (RFC 6177).
func (a *Addresses) Take(address string) error {
	prefix := network(address)
	a.mu.Lock()
	b := a.buckets[prefix]
	if b == nil {
		if len(a.buckets) >= maxAddresses {
			clear(a.buckets)
		}
		b = &bucket{}
		a.buckets[prefix] = b
	}
	a.mu.Unlock()
	if ok, _, _ := b.take(a.now().Sub(a.start), addressRate); !ok {
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
