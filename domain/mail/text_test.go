package mail_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"posthorn/domain/mail"
)

func TestATenantsTextInAMailIsShortAndLinksNowhere(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"Orders to the warehouse": "Orders to the warehouse",
		"order.paid":              "order.paid",
		"invoice.payment_failed":  "invoice.payment_failed",
		"Your account is locked, open https://evil.example/login": "Your account is locked, open [link]",
		"HTTP://evil.com":               "[link]",
		"see www.evil.com now":          "see [link] now",
		"evil.com login now":            "evil[.]com login now",
		"evil.example login now":        "evil[.]example login now",
		"evil。com":                      "evil[.]com",
		"пример.рф":                     "пример[.]рф",
		"10.0.0.1/login":                "10[.]0[.]0[.]1/login",
		"evil.unheardof/login":          "evil[.]unheardof/login",
		"write to me@evil.co.uk":        "write to me@evil[.]co[.]uk",
		"two\nlines\tand a \u202etrick": "two lines and a trick",
		"":                              "",
		strings.Repeat("é", 41):         strings.Repeat("é", 39) + "…",
		strings.Repeat("é", 40):         strings.Repeat("é", 40),
		"version 1.2 of e.g. this":      "version 1.2 of e.g. this",
	} {
		got := mail.TenantText(given)
		if got != want || utf8.RuneCountInString(got) > 40 {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
	for given, want := range map[string]string{
		"https://hooks.acme.example/posthorn?token=***": "hooks.acme.example",
		"https://ada:secret@evil.com:8443/a":            "evil.com:8443",
		"kafka://broker:9092/topic":                     "broker:9092",
		"":                                              "",
	} {
		if got := mail.TenantHost(given); got != want {
			t.Errorf("the host of %q is shown as %q, want %q", given, got, want)
		}
	}
}
