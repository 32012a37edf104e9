package egress

import (
	"net/url"
	"strings"
	"testing"

	"posthorn/domain/fault"
)

func mustAllow(t *testing.T, list string) Policy {
	t.Helper()
	p, err := ParseAllow(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRefusalsSayHowToMendTheURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                                              "missing",
		"http://example.com/":                           "https://",
		"ftp://example.com/":                            "https://",
		"https://u:p@example.com/":                      "custom header",
		"https://example.com/#x":                        "fragment",
		"https://exämple.com/":                          "xn--",
		"https://example.com./":                         "ends with a dot",
		"https://example.com:25/":                       "443, 80",
		"https://example.com:0443/":                     "port",
		"https://example.com:/":                         "port",
		"https://redis/":                                "full public host name",
		"https://a_b.com/":                              "letters, digits, and hyphens",
		"https://-a.example.com/":                       "start or end with a hyphen",
		"https://hooks.test/":                           "reserved",
		"https://hooks.example/":                        "reserved",
		"https://1.in-addr.arpa/":                       "reserved",
		"http://localhost:3000/hook":                    "`posthorn listen --forward http://localhost:3000` there",
		"https://[::1]/":                                "your own machine",
		"http://127.0.0.1:8000/":                        "your own machine",
		"https://10.0.0.1/":                             "isn't public",
		"https://[2606:4700:4700:0::1111]/":             "[2606:4700:4700::1111]",
		"https://[::ffff:8.8.8.8]/":                     "Write it as IPv4",
		"https://[example.com]/":                        "isn't an IPv6 address",
		"https://[2606:4700::1%25eth0]/":                "percent-encoded",
		"https://example.com/%zz":                       "percent-encoding",
		"https://example.com/a b":                       "%20",
		`https://example.com/a\b`:                       "%5C",
		"https://" + strings.Repeat("a", 2041):          "2048",
		"https://" + strings.Repeat("a.", 127) + "com/": "253",
		"https://" + strings.Repeat("a", 64) + ".com/":  "1 to 63",
	} {
		_, err := Policy{}.CheckURL(raw)
		if f := fault.As(err); f == nil || !strings.Contains(f.Detail, want) {
			t.Errorf("%.60q: got %v, want a sentence with %q", raw, err, want)
		}
	}
}

func TestLengthIsBoundedAtTheByte(t *testing.T) {
	t.Parallel()
	base := "https://example.com/"
	if _, err := (Policy{}).CheckURL(base + strings.Repeat("a", 2048-len(base))); err != nil {
		t.Errorf("2,048 bytes: %v", err)
	}
	mustRefuse(t, Policy{}, base+strings.Repeat("a", 2049-len(base)))
}

func TestSchemeAndHostAreLowered(t *testing.T) {
	t.Parallel()
	u, err := Policy{}.CheckURL("HTTPS://Hooks.EXAMPLE.com:8443/A%2Fb?C=D")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := u.String(), "https://hooks.example.com:8443/A%2Fb?C=D"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAllowListOpensLiteralsAndPlainHTTP(t *testing.T) {
	t.Parallel()
	p := mustAllow(t, "10.1.0.0/16, 127.0.0.1:25 [::1]:9000\n192.168.7.7")
	for _, raw := range []string{
		"http://10.1.2.3/", "https://10.1.2.3/", "http://10.1.2.3:8080/x", "http://127.0.0.1:25/", "https://127.0.0.1:25/",
		"http://[::1]:9000/", "http://192.168.7.7:3000/hook",
	} {
		if _, err := p.CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{
		"http://10.2.0.1/", "http://10.1.2.3:22/", "http://127.0.0.1/", "https://127.0.0.1:26/", "http://[::1]/", "http://[0::1]:9000/",
		"http://192.168.7.8/", "http://example.com/", "http://8.8.8.8/", "http://localhost:25/", "http://u@10.1.2.3/", "http://10.1.2.3/#f",
		"ftp://10.1.2.3/", "http://0x0a010203/", "http://[::ffff:10.1.2.3]/",
	} {
		mustRefuse(t, p, raw)
	}
}

// FuzzCheckURL holds what every accepted URL promises: net/url reads the same host out of it, that host is in the one
// form that no resolver reads as something else, and what was accepted is accepted again as it is stored.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/hook?x=1", "https://example.com/6>", "https://1.1.1.1:8443/", "https://[2606:4700:4700::1111]/", "https://a.b:443", "https://127.1/",
		"https://example.com\\@127.0.0.1/", "https://xn--a-0ga.example.com?", "https://:443/", "https://127。0。0。1/", "http://10.1.2.3/",
	} {
		f.Add(seed)
	}
	p, err := ParseAllow("10.1.0.0/16")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := p.CheckURL(raw)
		if err != nil {
			if fault.As(err) == nil || u != nil {
				t.Fatalf("%q: refused with %#v and %v", raw, err, u)
			}
			return
		}
		again, err := url.Parse(raw)
		if err != nil || !strings.EqualFold(again.Host, u.Host) || again.User != nil || again.Fragment != "" ||
			len(raw) > 2048 {
			t.Fatalf("%q: accepted as %q, net/url says %v, %v", raw, u.Host, again, err)
		}
		host := u.Hostname()
		if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" || host == "" {
			t.Fatalf("%q: host %q is not plain", raw, host)
		}
		if u.Scheme != "https" && !strings.HasPrefix(host, "10.1.") {
			t.Fatalf("%q: %s is not for this host", raw, u.Scheme)
		}
		stored, err := p.CheckURL(u.String())
		if err != nil || *stored != *u {
			t.Fatalf("%q is stored as %q, which is refused or differs: %v, %v", raw, u, stored, err)
		}
		for i := range len(u.String()) {
			if c := u.String()[i]; c <= ' ' || c >= 0x7f {
				t.Fatalf("%q is stored as %q, with byte %#x", raw, u, c)
			}
		}
	})
}

func TestAnUnderscoreIsPartOfAHostBelowADomain(t *testing.T) {
	t.Parallel()
	for raw, fine := range map[string]bool{
		"https://my_app.example.com/h":     true,
		"https://_hooks.eu_1.example.com/": true,
		"https://my_app.com/":              false,
		"https://a.example.c_m/":           false,
		"https://a.b_c.com/":               false,
		"https://_.localhost/":             false,
	} {
		if _, err := (Policy{}).CheckURL(raw); (err == nil) != fine {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
