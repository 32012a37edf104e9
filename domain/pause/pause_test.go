package pause_test

import (
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/pause"
)

func TestAPauseConcernsWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	uuid := func(n byte) id.UUID { return id.New(time.Unix(int64(n), 0), [10]byte{n}) }
	acme, umbrella, first, second := uuid(1), uuid(2), uuid(3), uuid(4)
	for name, tt := range map[string]struct {
		pause pause.Pause
		want  [3]bool // acme's first at a.example, acme's second at A.example:8443, umbrella's at b.example
	}{
		"everything": {pause.Pause{Scope: pause.Platform}, [3]bool{true, true, true}},
		"a tenant":   {pause.Pause{Scope: pause.Tenant, Tenant: acme}, [3]bool{true, true, false}},
		"an endpoint of a tenant that goes on": {
			pause.Pause{Scope: pause.Endpoint, Tenant: acme, Endpoint: second}, [3]bool{false, true, false},
		},
		"a host, at every port":  {pause.Pause{Scope: pause.Host, Host: "a.example"}, [3]bool{true, true, false}},
		"a host at one port":     {pause.Pause{Scope: pause.Host, Host: "a.example:8443"}, [3]bool{false, true, false}},
		"a host that nobody has": {pause.Pause{Scope: pause.Host, Host: "c.example"}, [3]bool{}},
		"a scope of the future":  {pause.Pause{Scope: "moon", Tenant: acme}, [3]bool{}},
	} {
		s := pause.NewSet([]pause.Pause{tt.pause})
		got := [3]bool{
			s.Covers(acme, first, pause.HostOf("https://a.example/x")), s.Covers(acme, second, pause.HostOf("https://A.example:8443?x=1")),
			s.Covers(umbrella, uuid(5), pause.HostOf("http://b.example")),
		}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	var none *pause.Set
	if none.Covers(acme, first, "a.example") {
		t.Error("no set concerns something")
	}
}

func TestAHostIsReadAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Hooks.Example.com ":                "hooks.example.com",
		"https://hooks.example.com:8443/x?y": "hooks.example.com:8443",
		"[2001:db8::1]:8443":                 "[2001:db8::1]:8443",
		"":                                   "",
		"https://":                           "",
		"a b":                                "",
		"me@example.com":                     "",
	} {
		got, err := pause.ReadHost("host", text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
	for _, s := range []pause.Scope{pause.Platform, pause.Tenant, pause.Host, pause.Endpoint} {
		if s.Sentence() == "" || !s.Known() {
			t.Errorf("%s says nothing", s)
		}
	}
}
