package egress

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

func TestATenantsProxyGoesBeforeThePlatforms(t *testing.T) {
	t.Parallel()
	own, direct, other := id.UUID{1}, id.UUID{2}, id.UUID{3}
	all := []Proxy{
		{Type: ProxyHTTP, Address: "all:1"},
		{Owner: own, Type: ProxySOCKS5, Address: "own:1"},
		{Owner: direct, Type: ProxyDirect},
	}
	if p := ProxyOf(own, all); p == nil || p.Address != "own:1" {
		t.Errorf("its own: %v", p)
	}
	if p := ProxyOf(other, all); p == nil || p.Address != "all:1" {
		t.Errorf("the platform's: %v", p)
	}
	if ProxyOf(direct, all) != nil || ProxyOf(own, nil) != nil {
		t.Error("none")
	}
}

func TestAProxyPrintsWithoutItsPassword(t *testing.T) {
	t.Parallel()
	p := Proxy{Type: ProxyHTTP, Address: "proxy.example.com:3128", Username: "ada", Password: "s3cret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, p) + fmt.Sprintf(verb, &p); strings.Contains(text, "s3cret") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

// A stored password goes to the server for which it was entered, and nowhere else.
func TestAStoredPasswordIsKeptForTheSameServer(t *testing.T) {
	t.Parallel()
	was := &Proxy{Type: ProxyHTTP, Address: "proxy.example.com:3128", Username: "ada", Password: "s3cret"}
	for name, change := range map[string]func(*Proxy){
		"nothing":     func(*Proxy) {},
		"a name":      func(p *Proxy) { p.ResolveNames = true },
		"the address": func(p *Proxy) { p.Address = "evil.example.com:3128" },
		"the type":    func(p *Proxy) { p.Type = ProxySOCKS5 },
		"the user":    func(p *Proxy) { p.Username = "eve" },
	} {
		p := *was
		p.Password = ""
		change(&p)
		got, err := p.Check(Policy{}, was)
		kept := name == "nothing" || name == "a name"
		if kept && (err != nil || got.Password != "s3cret") || !kept && got.Password != "" || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheAddressOfAProxyIsJudgedByItsOwnAllowance(t *testing.T) {
	t.Parallel()
	p, err := mustAllow(t, "10.0.0.0/8").WithProxies("192.168.7.7:80, fd00::5")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"1.1.1.1:3128":           true,
		"192.168.7.7:80":         true,
		"[fd00::5]:3128":         true,
		"proxy:3128":             true,
		"proxy.internal:3128":    true,
		"10.0.0.1:3128":          false, // of endpoints alone
		"192.168.7.7:81":         false,
		"127.0.0.1:3128":         false,
		"169.254.169.254:80":     false,
		"[::ffff:127.0.0.1]:80":  false,
		"0x7f.1:3128":            false,
		"proxy.example.com":      false,
		"proxy.example.com:22/x": false,
		"a b:3128":               false,
		"-x.example.com:3128":    false,
	} {
		_, err := Proxy{Type: ProxyHTTP, Address: address}.Check(p, nil)
		if want != (err == nil) || err != nil && fault.As(err).Fields[0].Name != "address" {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, name := range []string{"localhost", "printer", "metadata.google.internal", "127.1", "10.0.0.2"} {
		if p.CheckProxied(name, 443) == nil && name != "10.0.0.2" {
			t.Errorf("%s would be given to a proxy", name)
		}
	}
}
