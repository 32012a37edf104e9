package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// wellKnownNAT64 is the prefix of RFC 6052 under which a resolver with DNS64 puts IPv4 addresses, so that a network
// that has IPv6 alone reaches servers that have IPv4 alone.
var wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")

// localNAT64 is set aside for translators of a local network (RFC 8215). It says not where the IPv4 address is, so
// operators name the part that they use.
var (
	localNAT64  = netip.MustParsePrefix("64:ff9b:1::/48")
	uniqueLocal = netip.MustParsePrefix("fc00::/7")
)

// WithNAT64 reads POSTHORN_EGRESS_NAT64: prefixes of translators beside 64:ff9b::/96, between commas or white space.
// The error names the item that can't be read and how to write it.
//
// An address of a host name that lies in such a prefix is judged by the IPv4 address inside it, and no allowance opens
// it: the translator connects to the IPv4 address.
func (p Policy) WithNAT64(list string) (Policy, error) {
	for _, item := range strings.FieldsFunc(list, isSeparator) {
		prefix, err := parseNAT64(item)
		if err != nil {
			return Policy{}, fmt.Errorf("%q %w", item, err)
		}
		p.nat64 = append(p.nat64, prefix)
	}
	return p, nil
}

func isSeparator(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }

func parseNAT64(item string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(item)
	if err != nil || !prefix.Addr().Is6() || prefix.Addr().Is4In6() {
		return prefix, errors.New("is not an IPv6 prefix: write it as fd00:64::/96")
	}
	if prefix != prefix.Masked() {
		return prefix, fmt.Errorf("has bits set beyond its length: write %s", prefix.Masked())
	}
	switch prefix.Bits() {
	case 32, 40, 48, 56, 64, 96:
	default:
		return prefix, errors.New("has a length that no translator uses: RFC 6052 has 32, 40, 48, 56, 64 and 96")
	}
	if !globalV6.Overlaps(prefix) && !localNAT64.Overlaps(prefix) && !uniqueLocal.Overlaps(prefix) &&
		prefix != wellKnownNAT64 {
		return prefix, errors.New("is not a prefix that a translator can have")
	}
	for _, n := range specialV6 {
		if n.prefix.Overlaps(prefix) {
			return prefix, fmt.Errorf("is %s, and not a prefix of a translator", n.why)
		}
	}
	return prefix, nil
}

// translated returns the IPv4 address inside an address of a translator; is reports whether it is one. The address is
// plain. The IPv4 address is invalid if the bits between its parts are not those of RFC 6052.
func (p Policy) translated(addr netip.Addr) (inside netip.Addr, is bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	if wellKnownNAT64.Contains(addr) {
		return embedded(addr, 96), true
	}
	for _, prefix := range p.nat64 {
		if prefix.Contains(addr) {
			return embedded(addr, prefix.Bits()), true
		}
	}
	return netip.Addr{}, false
}

// embedded takes the IPv4 address out of an address by RFC 6052 section 2.2: it follows the prefix, and leaves out the
// byte from bit 64 on, which is zero.
func embedded(addr netip.Addr, bits int) netip.Addr {
	raw := addr.As16()
	if bits < 96 && raw[8] != 0 {
		return netip.Addr{}
	}
	var v4 [4]byte
	at := bits / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = raw[at]
		at++
	}
	return netip.AddrFrom4(v4)
}

// isTranslated reports whether an address is one of a translator.
func (p Policy) isTranslated(addr netip.Addr) bool {
	_, is := p.translated(plain(addr))
	return is
}
