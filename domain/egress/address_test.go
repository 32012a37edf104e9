package egress

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"code.dny.dev/ssrf"
)

func addrPort(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	addr, err := netip.ParseAddr(s)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(addr, 443)
}

func mustBlock(t *testing.T, addresses ...string) {
	t.Helper()
	for _, s := range addresses {
		if err := (Policy{}).CheckAddr(addrPort(t, s)); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: got %v, want a blocked address", s, err)
		}
	}
}

func TestPublicAddressesAreOpen(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
		"168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2000::", "2001:200::", "2001:db7::",
		"2003::1", "2606:4700:4700::1111", "2620:4f:7fff::1", "3ffe:ffff::1", "2a00:1450:4001:81b::200e",
	} {
		if err := (Policy{}).CheckAddr(addrPort(t, s)); err != nil {
			t.Errorf("%s: %v: %s", s, err, reason(err))
		}
	}
}

func TestEveryEdgeOfEverySpecialRangeIsBlocked(t *testing.T) {
	t.Parallel()
	for _, n := range append(append([]network{}, specialV4...), specialV6...) {
		first, last := n.prefix.Masked().Addr(), lastOf(n.prefix)
		mustBlock(t, first.String(), last.String())
		if first.Is4() {
			mustBlock(t, "::ffff:"+first.String(), "::ffff:"+last.String())
		}
	}
	mustBlock(t, "::", "::1", "1fff:ffff::", "4000::", "64:ff9b::8.8.8.8", "100::1", "100:0:0:1::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254",
		"fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "::8.8.8.8", "::ffff:0:8.8.8.8", "2001::1%x", "::ffff:127.0.0.1%eth0")
}

func TestInvalidAddressesAndPortsAreBlocked(t *testing.T) {
	t.Parallel()
	public := netip.MustParseAddr("1.1.1.1")
	for _, port := range []uint16{0, 1, 22, 25, 53, 79, 81, 110, 442, 444, 587, 1023} {
		if err := (Policy{}).CheckAddr(netip.AddrPortFrom(public, port)); !errors.Is(err, ErrBlocked) {
			t.Errorf("port %d: got %v", port, err)
		}
	}
	for _, port := range []uint16{80, 443, 1024, 8443, 65535} {
		if err := (Policy{}).CheckAddr(netip.AddrPortFrom(public, port)); err != nil {
			t.Errorf("port %d: got %v", port, err)
		}
	}
	open := mustAllow(t, "0.0.0.0/0 ::/0")
	for _, p := range []Policy{{}, open} {
		if err := p.CheckAddr(netip.AddrPort{}); !errors.Is(err, ErrBlocked) {
			t.Errorf("no address: got %v", err)
		}
	}
}

func TestRefusalsNameTheAddressToOperatorsOnly(t *testing.T) {
	t.Parallel()
	err := Policy{}.CheckAddr(netip.MustParseAddrPort("169.254.169.254:80"))
	if err == nil || err.Error() != "blocked address" {
		t.Errorf("the error says %v", err)
	}
	if why := reason(err); !strings.Contains(why, "169.254.169.254") || !strings.Contains(why, "link-local") {
		t.Errorf("the reason is %q", why)
	}
	if reason(errors.New("else")) != "" {
		t.Error("another error has a reason")
	}
}

func TestOneBadAddressRefusesTheAnswer(t *testing.T) {
	t.Parallel()
	good, bad := netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("127.0.0.1")
	for name, c := range map[string]struct {
		answer []netip.Addr
		ok     bool
	}{
		"good":      {[]netip.Addr{good, good}, true},
		"bad first": {[]netip.Addr{bad, good}, false},
		"bad last":  {[]netip.Addr{good, bad}, false},
		"mapped":    {[]netip.Addr{good, netip.MustParseAddr("::ffff:127.0.0.1")}, false},
		"invalid":   {[]netip.Addr{good, {}}, false},
		"empty":     {nil, false},
	} {
		err := Policy{}.CheckAnswer(c.answer, 443)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllowancesOpenWhatTheyNameAndNoMore(t *testing.T) {
	t.Parallel()
	p := mustAllow(t, "10.1.0.0/16,127.0.0.1:9000,fd00::/8,::ffff:172.16.0.9")
	for s, want := range map[string]bool{
		"10.1.2.3:443":          true,
		"10.1.2.3:8080":         true,
		"10.1.2.3:22":           false,
		"10.2.0.1:443":          false,
		"127.0.0.1:9000":        true,
		"127.0.0.1:9001":        false,
		"[::ffff:10.1.2.3]:443": true,
		"[fd00::5]:443":         true,
		"[fd00::5%eth0]:443":    true,
		"[fe80::1]:443":         false,
		"172.16.0.9:80":         true,
	} {
		ap := netip.MustParseAddrPort(s)
		if err := p.CheckAddr(ap); want != (err == nil) {
			t.Errorf("%s: %v", s, err)
		}
		if got := p.PlainHTTP(ap); got != want {
			t.Errorf("%s: plain http is %v", s, got)
		}
	}
	if p.PlainHTTP(netip.MustParseAddrPort("1.1.1.1:80")) {
		t.Error("plain http to a public address")
	}
}

func TestAllowListErrorsNameTheItem(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		"10.0.0/8":            "10.1.0.0/16",
		"10.1.2.3/8":          "10.0.0.0/8",
		"localhost":           "host names",
		"127.0.0.1:0":         "port 0",
		"127.0.0.1:99999":     "neither",
		"::ffff:10.0.0.0/104": "IPv4",
		"fe80::1%eth0":        "zone",
		"10.0.0.0/33":         "network",
		"receiver:9000":       "host names",
		"010.0.0.1":           "neither",
	} {
		_, err := ParseAllow("10.0.0.0/8, " + item)
		if err == nil || !strings.Contains(err.Error(), `"`+item+`"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", item, err, want)
		}
	}
	if _, err := ParseAllow(" ,\n"); err != nil {
		t.Errorf("an empty list: %v", err)
	}
}

// lastOf is the highest address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr
}

// TestASecondOpinionAgrees compares with an independent classifier over half a million addresses: random ones, ones
// inside each special range and ones beside its edges. The one difference is known.
func TestASecondOpinionAgrees(t *testing.T) {
	t.Parallel()
	second := ssrf.New(ssrf.WithAnyPort())
	rng := rand.New(rand.NewPCG(20261121, 9))
	known := netip.MustParseAddr("168.63.129.16")
	seen := map[bool]int{}
	check := func(addr netip.Addr) {
		addr = addr.WithZone("").Unmap() // which the other leaves to its caller
		ours := Policy{}.CheckAddr(netip.AddrPortFrom(addr, 443)) == nil
		theirs := second.SafeAddr(addr) == nil
		seen[ours]++
		if ours != theirs && addr != known {
			t.Errorf("%s: public here %v, there %v", addr, ours, theirs)
		}
	}
	for range 100_000 {
		var v4 [4]byte
		var v6 [16]byte
		fill(rng, v4[:])
		fill(rng, v6[:])
		check(netip.AddrFrom4(v4))
		check(netip.AddrFrom16(v6))
		v6[0] = 0x20 | v6[0]&0x1f // global unicast, where most decisions are
		check(netip.AddrFrom16(v6))
	}
	ranges := append([]network{{globalV6, ""}, {netip.MustParsePrefix("64:ff9b::/96"), ""}, {netip.MustParsePrefix("::ffff:0:0/96"), ""}}, specialV4...)
	ranges = append(ranges, specialV6...)
	for _, n := range ranges {
		first, last := n.prefix.Masked().Addr(), lastOf(n.prefix)
		for _, addr := range []netip.Addr{first, last, first.Prev(), last.Next()} {
			if addr.IsValid() {
				check(addr)
			}
		}
		for range 10_000 {
			raw := first.AsSlice()
			inside := make([]byte, len(raw))
			fill(rng, inside)
			for bit := n.prefix.Bits(); bit < len(raw)*8; bit++ {
				raw[bit/8] |= inside[bit/8] & (0x80 >> (bit % 8))
			}
			addr, _ := netip.AddrFromSlice(raw)
			check(addr)
		}
	}
	if seen[true] < 100_000 || seen[false] < 100_000 {
		t.Errorf("the sample is lopsided: %v", seen)
	}
	if second.SafeAddr(known) != nil || (Policy{}).CheckAddr(netip.AddrPortFrom(known, 443)) == nil {
		t.Error("the known difference is gone: drop it from this test")
	}
}

func fill(rng *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
}

// reason is why the policy blocks an address; empty for any other error.
func reason(err error) string {
	var b *blockedError
	if errors.As(err, &b) {
		return b.reason
	}
	return ""
}
