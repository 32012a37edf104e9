package send

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
)

// Limits of the phases before a request can be written.
const (
	dnsTimeout     = 5 * time.Second
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
)

// dialError says in which phase a connection failed. Text is for tenants and never names an address.
type dialError struct {
	failure delivery.Failure
	text    string
	cause   error
}

func (e *dialError) Error() string { return e.text }
func (e *dialError) Unwrap() error { return e.cause }

// phases holds when each phase of an attempt ended, in microseconds since its start; 0: it did not happen. A dial can
// continue after its request has found another connection, so the fields are atomics.
type phases struct {
	began                             time.Time
	plain                             bool // the URL is http
	dns, connected, tlsBegun, tlsDone atomic.Int64
	got, wrote, firstByte             atomic.Int64
	resolving                         atomic.Bool
	reused                            atomic.Bool  // the connection was kept from an earlier request
	certificate                       atomic.Int32 // delivery.ClientCertificate
	proxied                           atomic.Bool  // the connection goes through a proxy
	reached                           atomic.Int64 // when the proxy was connected, and with SOCKS5 had authenticated us
}

func (p *phases) clientCertificate() delivery.ClientCertificate {
	return delivery.ClientCertificate(p.certificate.Load())
}

func (p *phases) mark(at *atomic.Int64) { at.Store(max(time.Since(p.began).Microseconds(), 1)) }

type phasesKey struct{}

// guard dials for outbound requests: it resolves the name once, lets the policy check the whole DNS response, and dials
// the checked addresses (race.go). The control hook checks again what the kernel is asked to connect to, and fails
// closed.
type guard struct {
	policy   egress.Policy
	resolver *net.Resolver
	fallback time.Duration // how long an address is tried before the next one is too
	worked   rememberedAddresses
	proxies  *guard // of connections to egress proxies; nil in that one
}

func newGuard(policy egress.Policy) *guard {
	resolver := &net.Resolver{PreferGo: true}
	return &guard{
		policy:   policy,
		resolver: resolver,
		fallback: fallbackDelay,
		proxies:  &guard{policy: policy.ForProxies(), resolver: resolver, fallback: fallbackDelay},
	}
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p, _ := ctx.Value(phasesKey{}).(*phases)
	host, port, err := splitTarget(address)
	if err != nil {
		return nil, err
	}
	d := attempts{guard: g, network: network, port: port}
	addrs, check, err := g.resolved(ctx, p, host, port, d.literal[:1])
	if err != nil {
		return nil, err
	}
	d.check = check
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	d.dialer = net.Dialer{ControlContext: d.control(p), KeepAlive: 30 * time.Second}
	conn, err := d.connect(ctx, addrs, address)
	switch {
	case errors.Is(err, egress.ErrBlocked):
		return nil, &dialError{delivery.FailBlocked, "blocked address", err}
	case err != nil:
		return nil, &dialError{delivery.FailConnect, connectText(err), err}
	}
	if p != nil {
		p.mark(&p.connected)
	}
	return conn, nil
}

// resolved are the addresses of a host, and what judges each of them once more when it is dialed. literal has room for
// one.
func (g *guard) resolved(ctx context.Context, p *phases, host string, port uint16, literal []netip.Addr) (
	addrs []netip.Addr,
	check func(netip.AddrPort) error,
	err error,
) {
	addrs, check = literal, g.policy.CheckResolved
	if addrs[0], err = netip.ParseAddr(host); err == nil {
		check = g.policy.CheckAddr
	} else if addrs, err = g.resolve(ctx, p, host); err != nil {
		return nil, nil, err
	} else if err = g.policy.CheckAnswer(addrs, port); err != nil {
		return nil, nil, errBlocked(err)
	}
	if p != nil && p.plain && !g.allPlain(addrs, port) {
		return nil, nil, errBlocked(egress.ErrBlocked)
	}
	return addrs, check, nil
}

// allPlain reports whether each of the addresses can be reached without TLS: which one wins must not decide it.
func (g *guard) allPlain(addrs []netip.Addr, port uint16) bool {
	for _, a := range addrs {
		if !g.policy.PlainHTTP(netip.AddrPortFrom(a, port)) {
			return false
		}
	}
	return true
}

func connectText(err error) string {
	var network net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "no connection in time"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "host unreachable"
	}
	return "could not connect"
}

func (g *guard) resolve(ctx context.Context, p *phases, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	if p != nil {
		p.resolving.Store(true)
	}
	// The final dot keeps the resolver from using its search list.
	addrs, err := g.resolver.LookupNetIP(ctx, "ip", host+".")
	if p != nil {
		p.mark(&p.dns)
	}
	if err != nil {
		return nil, &dialError{delivery.FailDNS, dnsText(err), err}
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

func dnsText(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &dns) && dns.IsTimeout:
		return "the name server did not respond in time"
	}
	return "the host name could not be resolved"
}

// control runs between socket and connect, with the address that the kernel will use.
func (d *attempts) control(p *phases) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return egress.ErrBlocked
		}
		if err := d.check(ap); err != nil {
			return err
		}
		if p != nil && p.plain && !d.guard.policy.PlainHTTP(ap) {
			return egress.ErrBlocked
		}
		return nil
	}
}
