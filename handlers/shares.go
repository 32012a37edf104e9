package handlers

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"posthorn/domain/id"
)

// Share is how much of something can be in use, and the error beyond that.
type Share struct {
	Limit int64
	Err   error
}

// scarceShare is which part of its share one user can have once half of everything is in use. So that the other half
// serves many users, a few of them can't fill it.
const scarceShare = 16

// Shares bounds how much of something is in use in one process: by all users together, and by each.
type Shares struct {
	Scarce int64 // a share is divided by it once half of everything is in use; 0: by nothing

	all, each Share
	used      atomic.Int64

	mu sync.Mutex
	by map[id.UUID]int64 // a user of nothing has no entry
}

// NewShares creates Shares of which nothing is in use.
func NewShares(all, each Share) *Shares {
	return &Shares{all: all, each: each, by: map[id.UUID]int64{}}
}

// Hold counts n more for a user, or returns the error of the share that they would exceed.
func (s *Shares) Hold(who id.UUID, n int64) error {
	used := s.used.Add(n)
	if used > s.all.Limit {
		s.used.Add(-n)
		return s.all.Err
	}
	limit := s.each.Limit
	if s.Scarce > 0 && used > s.all.Limit/2 {
		limit /= s.Scarce
	}
	s.mu.Lock()
	held := s.by[who] + n
	if held <= limit {
		s.by[who] = held
	}
	s.mu.Unlock()
	if held > limit {
		s.used.Add(-n)
		return s.each.Err
	}
	return nil
}

// Release subtracts n of a user.
func (s *Shares) Release(who id.UUID, n int64) {
	s.used.Add(-n)
	s.mu.Lock()
	if left := s.by[who] - n; left > 0 {
		s.by[who] = left
	} else {
		delete(s.by, who)
	}
	s.mu.Unlock()
}

// Network is the network of an address, as a user of Shares: an IPv4 address, or the /48 of an IPv6 address, which is
// what one site can have (RFC 6177). What is no address counts as one network.
func Network(address string) (of id.UUID) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return id.Last
	}
	bits := 48
	if ip = ip.Unmap(); ip.Is4() {
		bits = 32
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return id.Last
	}
	return prefix.Addr().As16()
}
