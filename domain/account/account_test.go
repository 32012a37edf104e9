package account

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/fault"
)

func TestAddressesAreReadOneWay(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"ada@example.com":             "ada@example.com",
		" Ada@Example.COM ":           "ada@example.com",
		"a+b@x.example":               "a+b@x.example",
		"":                            "",
		"ada":                         "",
		"ada@localhost":               "",
		"Ada <ada@example.com>":       "",
		"a@b@c.d":                     "",
		"ada@example.com\nBcc: x@y.z": "",
		"ada@bücher.example":          "ada@xn--bcher-kva.example",
		"Ada@BÜCHER.example":          "ada@xn--bcher-kva.example",
		"ada@XN--Bcher-KVA.example":   "ada@xn--bcher-kva.example",
		"ada@bu\u0308cher.example":    "ada@xn--bcher-kva.example",
		"ada@xn--0.example":           "",
		"ada@faß.de":                  "ada@xn--fa-hia.de",
		"ada@例え。テスト":                  "ada@xn--r8jz45g.xn--zckzah",
		"ada@a--b.example":            "ada@a--b.example",
		"ada@bücher":                  "",
		"Jörg@example.com":            "jörg@example.com",
		"JÖRG@example.com":            "jÖrg@example.com",
		"İ@example.com":               "İ@example.com",
		"\u212A@example.com":          "\u212A@example.com",
		"a@1.2.co":                    "a@1.2.co",
		"a@127.0.0.1":                 "",
		"a@[127.0.0.1]":               "",
		"a@[IPv6:::1]":                "",
		"a@1.2":                       "",
		"a@example.c":                 "",
		"a@-x.com":                    "",
		"a@x..com":                    "",
		"a@x_y.com":                   "",
		"a@.com":                      "",
		"a@x.com.":                    "",
		"ada@exa\u200bmple.com":       "",
		"ada@exam\u202eple.com":       "",
		strings.Repeat("a", 250) + "@example.com": "",
		"\"a b\"@example.com ,x@y.z":              "",
	} {
		got, err := Email(given)
		if got != want || (err == nil) != (want != "") || err != nil && !fault.Is(err, "email_invalid") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

func TestMailsGoToAddressesThatServersTake(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Ada@Bücher.example": "ada@xn--bcher-kva.example",
		"ada@example.com":    "ada@example.com",
		"jörg@example.com":   "",
		"İ@example.com":      "",
		"\u212A@example.com": "",
		"ada":                "",
	} {
		got, err := Mailbox(given)
		if got != want || (err == nil) != (want != "") || err != nil && !fault.Is(err, "email_invalid") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for email, want := range map[string]string{
		"ada@xn--bcher-kva.example": "ada@bücher.example",
		"ada@example.com":           "ada@example.com",
		"xn--bcher-kva.example":     "bücher.example",
		"xn--bcher-kva@example.com": "xn--bcher-kva@example.com",
		"ada@xn--0.example":         "ada@xn--0.example",
		"":                          "",
	} {
		if got := Shown(email); got != want {
			t.Errorf("%q is shown as %q", email, got)
		}
		if again, err := Email(Shown(email)); want != "" && strings.Contains(email, "@") && err == nil && again != email {
			t.Errorf("%q is read as %q", Shown(email), again)
		}
	}
}

func TestNamesAreOneLine(t *testing.T) {
	t.Parallel()
	for given, ok := range map[string]bool{
		"Ada":                             true,
		" Ada Lovelace ":                  true,
		"<b>":                             true,
		"名前":                              true,
		strings.Repeat("é", 100):          true,
		"":                                false,
		"  ":                              false,
		"a\nb":                            false,
		"a\x00":                           false,
		"a\u2028b":                        false,
		"\u202ea":                         false,
		"A\u200bB":                        false,
		"Acme https://evil.example/login": false,
		strings.Repeat("a", 101):          false,
		"\xff":                            false,
	} {
		if _, err := Name("name", given); (err == nil) != ok {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestPasswordsThatManyTryAreRefused(t *testing.T) {
	t.Parallel()
	for _, password := range []string{
		"password", "Password1!", "P@ssw0rd", "p@$$w0rd123", "passw0rd", "12345678", "123456789", "1234567890", "87654321", "qwertyuiop", "qwerty123", "1q2w3e4r",
		"1qaz2wsx", "zaq12wsx", "asdfghjkl", "aaaaaaaa", "abcdefgh", "11112222", "letmein123", "iloveyou1", "welcome2026", "Summer2026!", "sunshine", "monkey123",
		"dragon99", "football1", "trustno1", "changeme!", "superman", "princess1", "qwer1234", "asdf1234", "!!baseball!!", "Posthorn1", "webhooks123",
		"Lovelace1815", "ada.lovelace@example.com", "acmeinc1", "Acme Inc 2026",
	} {
		if err := CheckPassword("password", password, "ada.lovelace@example.com", "Ada Lovelace", "Acme Inc"); !fault.Is(err, "password_common") {
			t.Errorf("%q: %v", password, err)
		}
	}
	for _, password := range []string{
		"correct horse battery staple", "kettle-sunshine-4-wharf", "xK9#mQ2$vL", "tr0ub4dor&3", "blaue Elefanten tanzen", "j2h8d0s7", "83471love29384", "dragonfly under ice", "密码不是这个呀哈", strings.Repeat("ab3 ", 32),
	} {
		if err := CheckPassword("password", password, "ada.lovelace@example.com", "Ada Lovelace", "Acme Inc"); err != nil {
			t.Errorf("%q: %v", password, err)
		}
	}
	for password, code := range map[string]string{"": "password_short", "short7!": "password_short", strings.Repeat("ab3 ", 32) + "x": "password_long"} {
		if err := CheckPassword("password", password); !fault.Is(err, code) {
			t.Errorf("%q: %v", password, err)
		}
	}
	if len(common()) < 19_000 {
		t.Errorf("%d common passwords: was the list read?", len(common()))
	}
}

func TestSessionsLiveAsLongAsPromised(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		kind       Kind
		idle, life time.Duration
	}{{Person, 8 * time.Hour, 14 * 24 * time.Hour}, {Operator, 30 * time.Minute, 12 * time.Hour}} {
		if c.kind.Idle() != c.idle || c.kind.Life() != c.life {
			t.Errorf("%s: %s idle, %s at most", c.kind, c.kind.Idle(), c.kind.Life())
		}
		ends := began.Add(c.life)
		for at, alive := range map[time.Time]bool{
			began:                 true,
			began.Add(c.idle - 1): true,
			began.Add(c.idle):     false,
		} {
			if got := c.kind.Alive(at, began, ends); got != alive {
				t.Errorf("%s unused for %s: %t", c.kind, at.Sub(began), got)
			}
		}
		if !c.kind.Alive(ends.Add(-1), ends.Add(-1), ends) || c.kind.Alive(ends, ends.Add(-1), ends) {
			t.Errorf("%s at its end", c.kind)
		}
	}
	if !IsFresh(began.Add(Fresh-1), began) || IsFresh(began.Add(Fresh), began) {
		t.Error("fresh for ten minutes")
	}
	if MaskEmail("ada@example.com") != "a…@example.com" || MaskEmail("") != "…" {
		t.Error("masked addresses")
	}
}
