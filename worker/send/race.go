package send

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"posthorn/domain/egress"
)

// fallbackDelay is the Connection Attempt Delay of RFC 8305: a dead address costs this much, and not the time for a
// whole connection.
const fallbackDelay = 250 * time.Millisecond

// attempts are the connections that are tried for one dial. The first that is made wins.
type attempts struct {
	guard   *guard
	network string
	port    uint16
	check   func(netip.AddrPort) error // what the policy says of each address
	dialer  net.Dialer
	literal [1]netip.Addr
}

// connect opens a connection to one of the addresses, all of which the policy has checked. A single address is dialed
// in this goroutine. address is the host and port, under which the address that worked is remembered.
func (d *attempts) connect(ctx context.Context, addrs []netip.Addr, address string) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.one(ctx, addrs[0])
	}
	order := alternate(addrs)
	preferred, known := d.guard.worked.get(address, time.Now())
	if at := slices.Index(order, preferred); known && at > 0 {
		order = slices.Insert(slices.Delete(order, at, at+1), 0, preferred)
	}
	won, conn, err := d.race(ctx, order)
	if err != nil {
		return nil, err
	}
	// The usual first address needs no memory, which is for those whose first address is dead.
	if won != order[0] {
		d.guard.worked.set(address, won, time.Now())
	}
	return conn, nil
}

func (d *attempts) one(ctx context.Context, a netip.Addr) (net.Conn, error) {
	return d.dialer.DialContext(ctx, d.network, netip.AddrPortFrom(a, d.port).String())
}

// alternate orders addresses by family in turn, as RFC 8305 section 4 says, beginning with the family of the first:
// if one family has no route, only every second attempt is lost.
func alternate(addrs []netip.Addr) []netip.Addr {
	first, second := make([]netip.Addr, 0, len(addrs)), make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	order := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(first), len(second)) {
		if i < len(first) {
			order = append(order, first[i])
		}
		if i < len(second) {
			order = append(order, second[i])
		}
	}
	return order
}

type dialed struct {
	address netip.Addr
	conn    net.Conn
	err     error
}

// race dials one address after the other, the next one when the last failed or after the fallback delay, until one
// connects. The others are canceled, and closed if they connect all the same. An address that the control hook blocks
// ends the race: it is not the one that the policy has checked.
func (d *attempts) race(ctx context.Context, order []netip.Addr) (netip.Addr, net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialed, len(order))
	next := time.NewTimer(0)
	defer next.Stop()
	started, ended := 0, 0
	defer func() {
		if started > ended {
			go closeLosers(results, started-ended)
		}
	}()
	var failed error
	for ended < len(order) {
		select {
		case <-next.C:
			if started < len(order) {
				a := order[started]
				started++
				go func() {
					conn, err := d.one(ctx, a)
					results <- dialed{a, conn, err}
				}()
				next.Reset(d.guard.fallback)
			}
		case r := <-results:
			ended++
			if r.err == nil {
				return r.address, r.conn, nil
			}
			if errors.Is(r.err, egress.ErrBlocked) || ctx.Err() != nil {
				return netip.Addr{}, nil, r.err
			}
			failed = moreTelling(failed, r.err)
			next.Reset(0)
		}
	}
	return netip.Addr{}, nil, failed
}

// closeLosers waits for the attempts that were canceled.
func closeLosers(results <-chan dialed, running int) {
	for range running {
		if r := <-results; r.conn != nil {
			_ = r.conn.Close()
		}
	}
}

// moreTelling is the newer of two errors, except that a family without a route says little about the server.
func moreTelling(old, recent error) error {
	if old != nil && (errors.Is(recent, syscall.ENETUNREACH) || errors.Is(recent, syscall.EHOSTUNREACH) ||
		errors.Is(recent, syscall.EADDRNOTAVAIL)) {
		return old
	}
	return recent
}

// The bounds of what is remembered. RFC 8305 section 4 lets the past count for about ten minutes.
const (
	maxRemembered = 4096
	rememberedFor = 10 * time.Minute
)

// rememberedAddresses has, by host and port, the address that connected when the first one did not.
type rememberedAddresses struct {
	mu sync.Mutex
	by map[string]remembered
}

type remembered struct {
	address netip.Addr
	until   time.Time
}

func (r *rememberedAddresses) get(address string, now time.Time) (netip.Addr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.by[address]
	if ok && !now.Before(found.until) {
		delete(r.by, address)
		ok = false
	}
	return found.address, ok
}

func (r *rememberedAddresses) set(address string, worked netip.Addr, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]remembered{}
	}
	if len(r.by) >= maxRemembered {
		for other := range r.by { // any one: it costs its owner a fallback delay
			delete(r.by, other)
			break
		}
	}
	r.by[address] = remembered{worked, now.Add(rememberedFor)}
}
