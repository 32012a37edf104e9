// Package egress decides where Posthorn can send: which URLs an endpoint can have, which addresses a dialer can connect
// to, and which headers a tenant can add. It is pure: no DNS, no dialing. The sender's dialer asks it again for every
// address on every attempt, since what a name resolved to a minute ago says nothing about now.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrBlocked says that Posthorn must not connect to an address. Tenants see only its text: naming the address would
// turn the dashboard into a map of the operator's network. Reason has the rest, for logs.
var ErrBlocked = errors.New("blocked address")

// Policy is the address and URL policy plus the operator's allowances. The zero value allows no exception. It is
// read-only after ParseAllow and WithNAT64, and safe for concurrent use.
type Policy struct {
	allow   []allowance
	nat64   []netip.Prefix // of the operator's translators, beside wellKnownNAT64
	proxies []allowance    // where egress proxies can be, which no endpoint reaches by this
}

// allowance is one exception: a network, on every port or on one.
type allowance struct {
	prefix netip.Prefix
	port   uint16 // 0: every port that the port rule permits
}

// ParseAllow reads POSTHORN_EGRESS_ALLOW: networks (10.1.0.0/16), addresses (10.1.2.3, fd00::1) or addresses with a
// port (127.0.0.1:9000, [::1]:9000), between commas or white space. An empty list allows nothing. The error names the
// item that can't be read and how to write it; no part of a wrong list is taken.
//
// A tenant's host name can resolve to what is listed here: every tenant can reach it.
func ParseAllow(list string) (Policy, error) {
	var p Policy
	for _, item := range strings.FieldsFunc(list, isSeparator) {
		a, err := parseAllowance(item)
		if err != nil {
			return Policy{}, fmt.Errorf("egress allow list: %q %w", item, err)
		}
		p.allow = append(p.allow, a)
	}
	return p, nil
}

func parseAllowance(item string) (allowance, error) {
	if strings.Contains(item, "/") {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			return allowance{}, errors.New("is not a network: write it as 10.1.0.0/16 or fd00::/8")
		}
		if prefix.Addr().Is4In6() {
			return allowance{}, errors.New("is an IPv4-mapped network, which would never match: write it as IPv4")
		}
		// 10.1.2.3/8 can mean one host or sixteen million. A list that opens holes must not guess.
		if masked := prefix.Masked(); masked != prefix {
			return allowance{}, fmt.Errorf("has bits set beyond its length: write %s or a single address", masked)
		}
		return allowance{prefix: prefix}, nil
	}
	if addr, err := netip.ParseAddr(item); err == nil {
		return singleAllowance(addr, 0)
	}
	if ap, err := netip.ParseAddrPort(item); err == nil {
		if ap.Port() == 0 {
			return allowance{}, errors.New("names port 0: write a port from 1 to 65535, or the address alone")
		}
		return singleAllowance(ap.Addr(), ap.Port())
	}
	return allowance{}, errors.New("is neither a network (10.1.0.0/16), an address (10.1.2.3) nor an address and port (10.1.2.3:9000, [::1]:9000); host names can't be allowed")
}

func singleAllowance(addr netip.Addr, port uint16) (allowance, error) {
	if addr.Zone() != "" {
		return allowance{}, errors.New("has a zone, which is dropped before addresses are compared: write the address without it")
	}
	addr = addr.Unmap()
	return allowance{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port}, nil
}

// allows reports whether the operator opened an address and port. An allowance that names its port opens that port
// whatever it is; one that does not is held to the same ports as the public internet. A translator's address is opened
// by what opens the IPv4 address inside it.
func (p Policy) allows(ap netip.AddrPort) bool {
	addr := plain(ap.Addr())
	if inside, is := p.translated(addr); is {
		addr = inside
	}
	for _, a := range p.allow {
		if a.port != 0 && a.port != ap.Port() || a.port == 0 && !portOpen(ap.Port()) {
			continue
		}
		if a.prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// PlainHTTP reports whether an address can be reached by http without TLS: only what the operator listed, for
// development, tests and the operator's own networks.
func (p Policy) PlainHTTP(ap netip.AddrPort) bool {
	return p.allows(ap)
}

// CheckAddr decides whether a connection to an address and port is allowed: the address must be public and the port
// 443, 80 or from 1024, or the operator must have listed it. It belongs in net.Dialer.ControlContext, on what the
// system is about to dial. A refusal is an ErrBlocked; an invalid address is refused, and so is a translator's (NAT64)
// address: somebody who means an IPv4 address can write it.
func (p Policy) CheckAddr(ap netip.AddrPort) error {
	if p.isTranslated(ap.Addr()) {
		return blocked(ap.String() + " is an address of a NAT64 translator")
	}
	return p.check(ap)
}

// CheckResolved is CheckAddr for an address that a host name resolved to. In a network with NAT64 these are addresses
// of the translator, and the IPv4 address inside decides.
func (p Policy) CheckResolved(ap netip.AddrPort) error {
	inside, is := p.translated(plain(ap.Addr()))
	if !is {
		return p.check(ap)
	}
	if err := p.check(netip.AddrPortFrom(inside, ap.Port())); err != nil {
		return blocked(ap.String() + " is a NAT64 translator's, and leads to " + inside.String())
	}
	return nil
}

func (p Policy) check(ap netip.AddrPort) error {
	if !ap.Addr().IsValid() {
		return blocked("no valid address")
	}
	if p.allows(ap) {
		return nil
	}
	if why := special(plain(ap.Addr())); why != "" {
		return blocked(ap.String() + " is " + why)
	}
	if !portOpen(ap.Port()) {
		return blocked(fmt.Sprintf("port %d of %s is neither 443, 80 nor from 1024", ap.Port(), ap.Addr()))
	}
	return nil
}

// CheckAnswer decides about everything that a name resolved to. One address that CheckResolved refuses refuses the
// whole DNS response, since a name that mixes public and private addresses is an attack or a mistake. An empty response
// is refused too.
func (p Policy) CheckAnswer(addrs []netip.Addr, port uint16) error {
	if len(addrs) == 0 {
		return blocked("the name has no address")
	}
	for _, addr := range addrs {
		if err := p.CheckResolved(netip.AddrPortFrom(addr, port)); err != nil {
			return err
		}
	}
	return nil
}

// portOpen is the rule for ports: 443, 80, or from 1024. The low ports are those of other protocols, and some of these
// (mail, FTP) can be made to act on what an HTTP request says.
func portOpen(port uint16) bool {
	return port == 443 || port == 80 || port >= 1024
}

// blockedError is an ErrBlocked that remembers why without saying so, so that rendering any error is safe.
type blockedError struct{ reason string }

func blocked(reason string) error { return &blockedError{reason: reason} }

func (*blockedError) Error() string { return ErrBlocked.Error() }
func (*blockedError) Unwrap() error { return ErrBlocked }
