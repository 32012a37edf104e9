package egress

import "net/netip"

// network is one range of the table of special addresses.
type network struct {
	prefix netip.Prefix
	why    string
}

// specialV4 is the IANA IPv4 special-purpose registry (RFC 6890 and its updates) with the ranges around it, plus what
// clouds put on public-looking addresses. Everything else in IPv4 is public.
var specialV4 = []network{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network (RFC 791)"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private (RFC 1918)"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT (RFC 6598)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback (RFC 1122)"},
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's host agent, which hands out credentials"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds serve metadata (RFC 3927)"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private (RFC 1918)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "IETF protocol assignments (RFC 6890)"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112 (RFC 7535)"},
	{netip.MustParsePrefix("192.52.193.0/24"), "AMT (RFC 7450)"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay (RFC 7526)"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private (RFC 1918)"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112 (RFC 7534)"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking (RFC 2544)"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast (RFC 1112)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved or broadcast (RFC 1112)"},
}

// globalV6 is all that IANA has assigned as global unicast. NAT64 (64:ff9b::/96, 64:ff9b:1::/48), IPv4-compatible and
// SIIT addresses, unique local (fd00:ec2::254 among them), link-local, site-local, SRv6 and multicast lie outside it,
// so a future range is rejected until it is added here.
var globalV6 = netip.MustParsePrefix("2000::/3")

// specialV6 are the IANA IPv6 special-purpose ranges inside globalV6.
var specialV6 = []network{
	{netip.MustParsePrefix("2001::/23"), "IETF protocol assignments, Teredo and ORCHID among them (RFC 2928)"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation (RFC 3849)"},
	{netip.MustParsePrefix("2002::/16"), "6to4, which carries an IPv4 address (RFC 3056)"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112 (RFC 7534)"},
	{netip.MustParsePrefix("3fff::/20"), "documentation (RFC 9637)"},
}

// plain is an address without the two disguises under which netip.Prefix.Contains never matches: the IPv4-mapped form,
// in which Go's own resolver hands out IPv4 addresses, and the zone.
func plain(addr netip.Addr) netip.Addr {
	return addr.WithZone("").Unmap()
}

// special says what makes an address one that is not public, or nothing for a public one. The address is plain.
func special(addr netip.Addr) string {
	table := specialV4
	if !addr.Is4() {
		if !globalV6.Contains(addr) {
			return "outside global unicast IPv6 (2000::/3)"
		}
		table = specialV6
	}
	for _, n := range table {
		if n.prefix.Contains(addr) {
			return n.why
		}
	}
	return ""
}
