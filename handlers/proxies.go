package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks of trusted proxies in front of the server, which report where a request comes from. Only
// named ones are trusted.
type Proxies []netip.Prefix

// ParseProxies reads POSTHORN_TRUSTED_PROXIES: networks (10.0.0.0/8) or addresses (127.0.0.1, ::1), separated by
// commas or white space. The error names the item that can't be read.
func ParseProxies(list string) (Proxies, error) {
	var all Proxies
	for _, item := range strings.FieldsFunc(list, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' ||
			r == '\n'
	}) {
		p, err := parseProxy(item)
		if err != nil {
			return nil, fmt.Errorf("%q %w", item, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func parseProxy(item string) (netip.Prefix, error) {
	if !strings.Contains(item, "/") {
		if ip, err := netip.ParseAddr(item); err == nil && ip.Zone() == "" {
			return netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()), nil
		}
	} else if p, err := netip.ParsePrefix(item); err == nil {
		if p.Bits() == 0 {
			return p, errors.New("trusts everybody: then anybody could write any address as theirs. Name the proxies")
		}
		if p != p.Masked() {
			return p, fmt.Errorf("has bits behind its mask: did you mean %s", p.Masked())
		}
		return p, nil
	}
	return netip.Prefix{}, errors.New("is neither a network nor an address. Write 10.0.0.0/8 or 127.0.0.1")
}

func (p Proxies) trust(ip netip.Addr) bool {
	for _, network := range p {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

// forwardedFor is the header to which each proxy appends the address of its caller.
const forwardedFor = "X-Forwarded-For"

// Client is where a request comes from, without a port.
func (p Proxies) Client(r *http.Request) string { return p.client(r) }

// client is where a request comes from, without a port. Behind trusted proxies it is the last address that is not one
// of theirs. The client controls everything before that.
func (p Proxies) client(r *http.Request) string {
	peer, ok := hostOf(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr // in tests and on sockets that have no addresses
	}
	if len(p) == 0 || !p.trust(peer) {
		return peer.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values(forwardedFor), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, ok := hostOf(strings.TrimSpace(hops[i]))
		if !ok {
			break // no trustworthy proxy writes this
		}
		if peer = hop; !p.trust(hop) {
			break
		}
	}
	return peer.String()
}

// hostOf reads an address with or without a port.
func hostOf(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().WithZone("").Unmap(), true
	}
	ip, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return ip.WithZone("").Unmap(), err == nil
}
