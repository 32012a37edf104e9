package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"testing"
)

// Flaws that others published, by their numbers: what each let through is refused here.

// Gitea had the hook in the right place and asked Go's IsPrivate and its kin, which know nothing of most special
// ranges.
func TestGiteaCVE202658314RightHookWrongClassifier(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "240.0.0.1", "0.1.2.3", "192.88.99.1", "2002:7f00:1::", "2001::1", "64:ff9b::7f00:1",
	} {
		addr := netip.MustParseAddr(s)
		if addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() ||
			addr.IsMulticast() {
			t.Errorf("%s is one that Go's methods know; it proves nothing here", s)
		}
		mustBlock(t, s)
	}
}

func TestMattermostCVE20262455MappedAddresses(t *testing.T) {
	t.Parallel()
	mustBlock(t, "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:7f00:1")
	mustRefuse(t, Policy{}, "https://[::ffff:127.0.0.1]/")
	mustRefuse(t, Policy{}, "https://[::ffff:7f00:1]/")
}

func TestToolHiveGHSApph6vfjvvpjwLocalNAT64(t *testing.T) {
	t.Parallel()
	mustBlock(t, "64:ff9b:1::7f00:1", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:1:fffe::a9fe:a9fe")
	mustRefuse(t, Policy{}, "https://[64:ff9b:1::7f00:1]/")
}

func TestSmokescreenCVE202224825TrailingDot(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://localhost./", "https://foo.internal./", "https://127.0.0.1./", "https://example.com./", "https://example.com../"} {
		mustRefuse(t, Policy{}, raw)
	}
}

func TestSmokescreenCVE202229188Brackets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://[localhost]/", "https://[foo.internal]/", "https://[[::1]]/", "https://[::1/", "https://::1]/", "https://[]/"} {
		mustRefuse(t, Policy{}, raw)
	}
}

func TestDirectusCVE202446990AllOfLoopback(t *testing.T) {
	t.Parallel()
	mustBlock(t, "127.0.0.2", "127.127.127.127", "127.255.255.255")
	mustRefuse(t, Policy{}, "https://127.0.0.2/")
}

// Before Go 1.22.4 IsPrivate and its kin were false for mapped addresses; we unmap whatever Go does.
func TestGoCVE202424790MappedAddressesAndIsMethods(t *testing.T) {
	t.Parallel()
	mustBlock(t, "::ffff:192.168.0.1", "::ffff:224.0.0.1", "::ffff:0.0.0.0", "::ffff:169.254.0.1")
}

// Before Go 1.25.2 net/url took anything in brackets for a host.
func TestGoCVE202547912OnlyIPv6InBrackets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://[127.0.0.1]/", "https://[example.com]/", "https://[fe80::1%25eth0]/", "https://[2606:4700:4700::1111", "https://[2606:4700:4700::1111]x/"} {
		mustRefuse(t, Policy{}, raw)
	}
}

// Before Go 1.20.6 net/http sent a Host header as it was, line breaks and all.
func TestGoCVE202329406NothingStrangeInHost(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://example.com\r\nx: y/", "https://example.com%0d%0ax:y/", "https://exa mple.com/", "https://example.com:443\n/", "https://example.com;x/", "https://a\"b.example.com/",
	} {
		mustRefuse(t, Policy{}, raw)
	}
}

// What Go does, which is why the rules are as they are. When one of these fails, Go has changed: read the rule again.

// dialled is what an http.Transport dials for a URL.
func dialled(t *testing.T, raw string) string {
	t.Helper()
	var address string
	stop := errors.New("stop")
	transport := &http.Transport{DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		address = addr
		return nil, stop
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, stop) {
		t.Fatalf("%s: %v", raw, err)
	}
	return address
}

func TestNetHTTPMapsUnicodeDigitsAndDotsToAnAddress(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"http://127。0。0。1/", "http://①②⑦.⓪.⓪.①/"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			t.Errorf("%s: Hostname() is an address", raw)
		}
		if got := dialled(t, raw); got != "127.0.0.1:80" {
			t.Errorf("%s: net/http dials %s", raw, got)
		}
		mustRefuse(t, Policy{}, raw)
		mustRefuse(t, Policy{}, "https"+raw[len("http"):])
	}
}

func TestAnEmptyHostDialsLoopbackAndTheHookCannotTell(t *testing.T) {
	t.Parallel()
	if got := dialled(t, "https://:443/"); got != ":443" {
		t.Errorf("net/http dials %q", got)
	}
	var hooked string
	stop := errors.New("stop")
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		hooked = address
		return stop
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", ":443")
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, stop) || hooked != ":443" {
		t.Errorf("the hook saw %q, %v", hooked, err)
	}
	// What a dialer's hook does with it: unreadable, so the zero value, so blocked, even where everything is allowed.
	ap, err := netip.ParseAddrPort(hooked)
	if err == nil {
		t.Errorf("%q is an address and port", hooked)
	}
	if err := mustAllow(t, "0.0.0.0/0 ::/0").CheckAddr(ap); !errors.Is(err, ErrBlocked) {
		t.Errorf("got %v", err)
	}
	mustRefuse(t, Policy{}, "https://:443/")
	mustRefuse(t, mustAllow(t, "0.0.0.0/0 ::/0"), "https://:443/")
}

// The C library's resolver reads these as addresses, so they must never reach a resolver.
func TestNamesThatTheCResolverReadsAsLoopbackAreRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"0x7f.1", "2130706433", "127.1", "0177.0.0.1", "0x7f000001", "127.0.0.0x1", "a.0x1", "example.0x7f"} {
		mustRefuse(t, Policy{}, "https://"+host+"/")
		mustRefuse(t, mustAllow(t, "127.0.0.0/8"), "https://"+host+"/")
	}
}

func TestPrefixContainsIsBlindToMappedAndZonedAddresses(t *testing.T) {
	t.Parallel()
	for prefix, addr := range map[string]string{"127.0.0.0/8": "::ffff:127.0.0.1", "fe80::/10": "fe80::1%eth0"} {
		if netip.MustParsePrefix(prefix).Contains(netip.MustParseAddr(addr)) {
			t.Errorf("%s contains %s after all", prefix, addr)
		}
		mustBlock(t, addr)
	}
}
