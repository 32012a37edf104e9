package account

import (
	"strings"
	"testing"

	"posthorn/domain/access"
)

func TestAPortalLinkGivesWhatItMay(t *testing.T) {
	t.Parallel()
	good := PortalLink{Role: access.Viewer, Accent: "#1f6Feb", ReturnURL: "https://app.example.com/x?y=1", SessionSeconds: 3600}
	for code, change := range map[string]func(*PortalLink){
		"":                      func(*PortalLink) {},
		"role_unknown":          func(l *PortalLink) { l.Role = access.Owner },
		"accent_invalid":        func(l *PortalLink) { l.Accent = "red" },
		"return_url_invalid":    func(l *PortalLink) { l.ReturnURL = "javascript:alert(1)" },
		"session_seconds_range": func(l *PortalLink) { l.SessionSeconds = 3599 },
	} {
		l := good
		change(&l)
		var codes []string
		for _, f := range l.Wrong() {
			codes = append(codes, f.Code)
		}
		if got := strings.Join(codes, " "); got != code {
			t.Errorf("%+v is refused with %q, want %q", l, got, code)
		}
	}
	for _, address := range []string{"/relative", "https://user:secret@example.com/", "ftp://example.com", "https://", "http://app.example.com/", "http://127.0.0.1/", "https://example.com/" + strings.Repeat("x", 2000)} {
		l := good
		l.ReturnURL = address
		if len(l.Wrong()) != 1 {
			t.Errorf("%.40s is taken", address)
		}
	}
	for address, fine := range map[string]bool{"http://localhost:3000/x": true, "http://127.0.0.1/": true, "http://[::1]:8/": true, "http://app.example.com/": false, "http://localhost.example.com/": false} {
		l := good
		l.ReturnURL, l.Development = address, true
		if (len(l.Wrong()) == 0) != fine {
			t.Errorf("in development, %s: want %t", address, fine)
		}
	}
	for address, is := range map[string]bool{"http://127.0.0.1:8080": true, "http://localhost": true, "https://localhost": false, "http://posthorn.example.com": false} {
		if OnLoopback(address) != is {
			t.Errorf("%s: want %t", address, is)
		}
	}
	if n := len(PortalLink{}.Wrong()); n != 2 {
		t.Errorf("nothing has %d faults", n)
	}
}
