package egress

import (
	"net/url"
	"strings"
)

const masked = "***"

// Mask makes a URL fit for logs, lists and e-mails: the values of its query are masked, and user name, password and
// fragment are removed. A query without "=" can be a token and is masked whole. A text that is no URL with a host
// becomes "***", since any part of it can be secret. The result is not for dialing.
func Mask(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return masked
	}
	out := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery == "" {
		return out
	}
	pairs := strings.Split(u.RawQuery, "&")
	for i, pair := range pairs {
		name, _, found := strings.Cut(pair, "=")
		switch {
		case found:
			// A semicolon once separated pairs too; a value must not show as a name because of it.
			name, _, _ = strings.Cut(name, ";")
			pairs[i] = name + "=" + masked
		case pair != "":
			pairs[i] = masked
		}
	}
	return out + "?" + strings.Join(pairs, "&")
}
