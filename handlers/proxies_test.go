package handlers

import (
	"net/http"
	"strings"
	"testing"
)

func TestTheClientsAddressIsTheLastThatNoTrustedProxyBears(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trusted, remote, forwarded, want string
	}{
		"no proxy":                         {"", "203.0.113.7:4000", "", "203.0.113.7"},
		"a header that nobody asked for":   {"", "203.0.113.7:4000", "198.51.100.1", "203.0.113.7"},
		"a stranger's header":              {"10.0.0.0/8", "203.0.113.7:4000", "198.51.100.1", "203.0.113.7"},
		"behind a proxy":                   {"10.0.0.0/8", "10.0.0.1:4000", "203.0.113.7", "203.0.113.7"},
		"behind two proxies":               {"10.0.0.0/8", "10.0.0.1:4000", "203.0.113.7, 10.0.0.2", "203.0.113.7"},
		"the client writes the header too": {"10.0.0.0/8", "10.0.0.1:4000", "127.0.0.1, 10.9.9.9, 203.0.113.7", "203.0.113.7"},
		"the header in two lines":          {"10.0.0.1", "10.0.0.1:4000", "198.51.100.1\n203.0.113.7", "203.0.113.7"},
		"none but proxies":                 {"10.0.0.0/8", "10.0.0.1:4000", "10.0.0.3,10.0.0.2", "10.0.0.3"},
		"no header":                        {"10.0.0.0/8", "10.0.0.1:4000", "", "10.0.0.1"},
		"junk":                             {"10.0.0.0/8", "10.0.0.1:4000", "203.0.113.7, unknown", "10.0.0.1"},
		"junk before":                      {"10.0.0.0/8", "10.0.0.1:4000", "<script>, 203.0.113.7", "203.0.113.7"},
		"with a port":                      {"10.0.0.0/8", "10.0.0.1:4000", "203.0.113.7:55", "203.0.113.7"},
		"IPv6":                             {"fd00::/8", "[fd00::1%eth0]:4000", "2001:db8::7", "2001:db8::7"},
		"IPv6 with a port":                 {"fd00::/8", "[fd00::1]:4000", "[2001:db8::7]:55", "2001:db8::7"},
		"IPv4 in IPv6":                     {"10.0.0.0/8", "[::ffff:10.0.0.1]:4000", "::ffff:203.0.113.7", "203.0.113.7"},
	} {
		proxies, err := ParseProxies(tt.trusted)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{}}
		if tt.forwarded != "" {
			r.Header["X-Forwarded-For"] = strings.Split(tt.forwarded, "\n")
		}
		if got := proxies.client(r); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestTrustedProxiesAreNetworksOrAddressesAndNeverEverybody(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"":                                     "",
		"127.0.0.1, ::1 10.0.0.0/8,\nfd00::/8": "",
		"0.0.0.0/0":                            "everybody",
		"::/0":                                 "everybody",
		"proxy.internal":                       "neither",
		"10.0.0.1/8":                           "10.0.0.0/8",
		"10.0.0.1:80":                          "neither",
		"fe80::1%eth0":                         "neither",
	} {
		_, err := ParseProxies(list)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}
