package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"posthorn/domain/fault"
)

// maxURL bounds an endpoint's URL, in bytes.
const maxURL = 2048

// CheckURL decides, without asking DNS, whether an endpoint can have a URL. It is the one validator for create, update,
// test send, verify, replay, import and operator edits. It accepts https to a host name that can be public, or to a
// public address in canonical form, on port 443, 80 or from 1024; and what the operator listed, http included. The
// result has its scheme and host in lower case. A refusal is a *fault.Error with code endpoint_url_refused and field
// url.
//
// The authority is read here by hand and must come out the same from net/url. Two parsers that disagree about where a
// host ends are how most published bypasses began, so whatever is ambiguous is refused rather than understood.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	if why := checkCharacters(raw); why != "" {
		return nil, refuse(why)
	}
	scheme, rest, found := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "https" && scheme != "http" {
		return nil, refuse("The URL must start with https:// and have a host, such as https://hooks.example.com/path.")
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	if strings.Contains(authority, "@") {
		return nil, refuse("The URL contains a user name or password. Remove it, and put credentials in a custom header.")
	}
	host, port, why := splitAuthority(authority, scheme)
	if why == "" {
		why = p.checkHost(host, port, scheme)
	}
	if why != "" && ownMachine(host) {
		why = fmt.Sprintf("This URL is on your own machine, which Posthorn can't reach. Use a test inbox, or run `posthorn listen --forward %s://%s` there.", scheme, authority)
	}
	if why != "" {
		return nil, refuse(why)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse("The URL is invalid. Check its percent-encoding: write % as %25.")
	}
	if u.Host != authority || u.Scheme != scheme || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return nil, refuse("The URL is ambiguous. Use the form https://host/path.")
	}
	return normal(u)
}

// normal is a URL as it is stored and sent: host in lower case, and characters that are invalid in a path
// percent-encoded, which can make it longer.
func normal(u *url.URL) (*url.URL, error) {
	u.Host = strings.ToLower(u.Host)
	u, err := url.Parse(u.String())
	if err != nil {
		return nil, refuse("The URL is invalid. Percent-encode its path.")
	}
	if n := len(u.String()); n > maxURL {
		return nil, refuse(fmt.Sprintf("The URL has %d bytes after percent-encoding; the maximum is %d.", n, maxURL))
	}
	return u, nil
}

func refuse(detail string) error {
	return fault.InvalidField("url", "endpoint_url_refused", detail)
}

// checkCharacters says why a text can't be a URL at all. White space at the ends is refused and not trimmed: what is
// stored is what was checked.
func checkCharacters(raw string) string {
	if raw == "" {
		return "The URL is missing. Add one such as https://hooks.example.com/path."
	}
	if len(raw) > maxURL {
		return fmt.Sprintf("The URL has %d bytes; the maximum is %d.", len(raw), maxURL)
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= ' ' || c == 0x7f:
			return "The URL contains a space or a control character. Remove or percent-encode it (a space is %20)."
		case c > 0x7f:
			return "The URL contains a non-ASCII character. Write host names in their xn-- form, and percent-encode the rest."
		case c == '\\':
			return `The URL contains a backslash, which some programs read as a slash. Use / or %5C.`
		case c == '#':
			return "The URL has a fragment (#), which is never sent. Remove it, or write # as %23."
		}
	}
	return ""
}

// splitAuthority takes host and port apart; an IPv6 host keeps its brackets. It says why where it can't.
func splitAuthority(authority, scheme string) (host string, port uint16, why string) {
	if strings.Contains(authority, "%") {
		return "", 0, "The URL's host is percent-encoded. Write it without encoding."
	}
	host = authority
	end := strings.LastIndexByte(authority, ']') // the colons of an IPv6 address are not a port's
	colon := strings.LastIndexByte(authority, ':')
	if colon <= end {
		return host, map[string]uint16{"https": 443, "http": 80}[scheme], ""
	}
	host = authority[:colon]
	digits := authority[colon+1:]
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || number == 0 || digits[0] == '0' {
		return "", 0, "The URL's port is not a number from 1 to 65535. Leave it out for 443."
	}
	return host, uint16(number), ""
}

// checkHost applies the rules for addresses or for names. It says why, or nothing.
func (p Policy) checkHost(host string, port uint16, scheme string) string {
	addr, literal, why := parseLiteral(host)
	if why != "" {
		return why
	}
	ap := netip.AddrPortFrom(addr, port)
	translated := p.isTranslated(addr)
	if literal && !translated && p.allows(ap) {
		return ""
	}
	if !literal {
		if why := checkName(host); why != "" {
			return why
		}
	} else if translated || special(addr) != "" {
		return "The URL's address isn't public. Webhooks are delivered only to public addresses. Use a host name or address that is reachable from the internet, or have the operator allow this one (POSTHORN_EGRESS_ALLOW)."
	}
	if scheme != "https" {
		return "The URL must start with https://. Events are never sent unencrypted."
	}
	if !portOpen(port) {
		return fmt.Sprintf("Webhooks aren't delivered to port %d. Use 443, 80, or a port from 1024.", port)
	}
	return ""
}

// ownMachine reports whether a host is the machine of whoever uses it.
func ownMachine(host string) bool {
	host = strings.ToLower(host)
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// parseLiteral reads a host that is an address. A literal has exactly one spelling: other spellings of an address are
// how blocklists were walked around (CVE-2025-47912, CVE-2022-29188).
func parseLiteral(host string) (addr netip.Addr, literal bool, why string) {
	inner, bracketed := strings.CutPrefix(host, "[")
	if !bracketed {
		addr, err := netip.ParseAddr(host)
		return addr, err == nil && addr.Is4(), ""
	}
	inner, closed := strings.CutSuffix(inner, "]")
	addr, err := netip.ParseAddr(inner)
	if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
		return netip.Addr{}, false, "The URL's host is in brackets, but isn't an IPv6 address."
	}
	if addr.Is4In6() {
		return netip.Addr{}, false, "The URL's host is an IPv4 address in IPv6 form. Write it as IPv4."
	}
	if canonical := addr.String(); !strings.EqualFold(inner, canonical) {
		return netip.Addr{}, false, "The URL's IPv6 address is not in its shortest form. Write it as [" + canonical + "]."
	}
	return addr, true, ""
}
