package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// nat64Of is the address of a translator, by RFC 6052 section 2.2.
func nat64Of(t *testing.T, prefix, inside string) netip.Addr {
	t.Helper()
	p, v4 := netip.MustParsePrefix(prefix), netip.MustParseAddr(inside).As4()
	raw := p.Addr().As16()
	at := p.Bits() / 8
	for _, b := range v4 {
		if at == 8 {
			at++
		}
		raw[at] = b
		at++
	}
	return netip.AddrFrom16(raw)
}

func TestATranslatorsAddressOfANameIsJudgedByTheIPv4AddressInside(t *testing.T) {
	t.Parallel()
	own, err := mustAllow(t, "64:ff9b::/96 64:ff9b:1::/48 fd00::/8").WithNAT64("fd00:64::/96, fd00:32::/32 fd00:40::/40,fd00:48::/48 fd00:56::/56 fd00:64:64::/64 64:ff9b:1:7::/96")
	if err != nil {
		t.Fatal(err)
	}
	allowed := mustAllow(t, "64:ff9b::/96")
	prefixes := map[string]Policy{
		"64:ff9b::/96":     {},
		"fd00:64::/96":     own,
		"fd00:32::/32":     own,
		"fd00:40::/40":     own,
		"fd00:48::/48":     own,
		"fd00:56::/56":     own,
		"fd00:64:64::/64":  own,
		"64:ff9b:1:7::/96": own,
	}
	for inside, open := range map[string]bool{
		"93.184.216.34":   true,
		"1.1.1.1":         true,
		"169.254.169.254": false,
		"169.254.0.1":     false,
		"10.0.0.1":        false,
		"10.255.255.255":  false,
		"127.0.0.1":       false,
		"192.168.1.1":     false,
		"172.16.0.1":      false,
		"100.64.0.1":      false,
		"0.0.0.0":         false,
		"168.63.129.16":   false,
		"255.255.255.255": false,
	} {
		for prefix, policy := range prefixes {
			addr := nat64Of(t, prefix, inside)
			ap := netip.AddrPortFrom(addr, 443)
			if err := policy.CheckResolved(ap); open != (err == nil) {
				t.Errorf("%s in %s (%s): %v", inside, prefix, addr, err)
			}
			if err := policy.CheckAnswer([]netip.Addr{netip.MustParseAddr("93.184.216.34"), addr}, 443); open != (err == nil) {
				t.Errorf("%s in %s beside a public address: %v", inside, prefix, err)
			}
			// A literal stays refused, whatever is inside.
			if err := policy.CheckAddr(ap); !errors.Is(err, ErrBlocked) {
				t.Errorf("the literal %s: %v", addr, err)
			}
			for _, scheme := range []string{"https://", "http://"} {
				if _, err := policy.CheckURL(scheme + "[" + addr.String() + "]/hook"); err == nil {
					t.Errorf("the URL of the literal %s is accepted", addr)
				}
			}
			if _, err := policy.CheckServer("server", "["+addr.String()+"]:9092", true); err == nil {
				t.Errorf("the server with the literal %s is accepted", addr)
			}
			if policy.PlainHTTP(ap) {
				t.Errorf("plain http to %s", addr)
			}
		}
		// An allowance for the translator opens nothing behind it.
		if err := allowed.CheckResolved(netip.AddrPortFrom(nat64Of(t, "64:ff9b::/96", inside), 443)); open != (err == nil) {
			t.Errorf("%s with the translator allowed: %v", inside, err)
		}
		if err := allowed.CheckAddr(netip.AddrPortFrom(nat64Of(t, "64:ff9b::/96", inside), 443)); err == nil {
			t.Errorf("the literal of %s with the translator allowed", inside)
		}
	}
}

func TestAnAllowedIPv4AddressIsAllowedBehindATranslator(t *testing.T) {
	t.Parallel()
	p := mustAllow(t, "10.1.0.0/16")
	for inside, open := range map[string]bool{"10.1.2.3": true, "10.2.0.1": false} {
		ap := netip.AddrPortFrom(nat64Of(t, "64:ff9b::/96", inside), 443)
		if err := p.CheckResolved(ap); open != (err == nil) || p.PlainHTTP(ap) != open {
			t.Errorf("%s: %v, plain %v", inside, err, p.PlainHTTP(ap))
		}
	}
}

func TestWhatOnlyLooksLikeATranslatorsAddressStaysRefused(t *testing.T) {
	t.Parallel()
	own, err := Policy{}.WithNAT64("fd00:40::/40")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"64:ff9b:1::5db8:d822", "64:ff9b:0:1::5db8:d822", "2002:5db8:d822::1", "::ffff:0:5db8:d822", "::5db8:d822", "2001::5db8:d822",
		"fd00:41:5db8:d822::", // beside the operator's prefix
		"fd00:40:5d:b8d8:122::",
	} {
		if err := own.CheckResolved(netip.AddrPortFrom(netip.MustParseAddr(s), 443)); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestErrorsAboutPrefixesOfTranslatorsNameTheItem(t *testing.T) {
	t.Parallel()
	for item, want := range map[string]string{
		"10.0.0.0/8":    "IPv6 prefix",
		"64:ff9b::":     "IPv6 prefix",
		"::ffff:0:0/96": "IPv6 prefix",
		"fd00:64::1/96": "fd00:64::/96",
		"fd00::/8":      "length",
		"fd00:64::/97":  "length",
		"2002::/32":     "6to4",
		"2001::/32":     "Teredo",
		"fe80::/64":     "translator",
		"ff00::/96":     "translator",
		"::/96":         "translator",
	} {
		_, err := Policy{}.WithNAT64("fd00:64::/96, " + item)
		if err == nil || !strings.Contains(err.Error(), `"`+item+`"`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", item, err, want)
		}
	}
}
