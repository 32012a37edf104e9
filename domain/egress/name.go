package egress

import "strings"

// specialNames are domains that never lead to a public host, each with all that is below it. Sources: RFC 6761
// (localhost, test, invalid, example), RFC 6762 with its appendix G (local and the private names in use), RFC 7686
// (onion), RFC 9476 (alt), RFC 8375 and its neighbours (everything under arpa is infrastructure), ICANN's
// reservations (internal; corp, home and mail are never to be delegated), and the names that container and service
// platforms resolve for themselves.
//
// The names example.com, .net and .org are ordinary public hosts and are accepted; the top-level domain example is
// not.
var specialNames = map[string]bool{
	"alt":          true,
	"arpa":         true,
	"consul":       true,
	"corp":         true,
	"docker":       true,
	"domain":       true,
	"example":      true,
	"home":         true,
	"internal":     true,
	"intra":        true,
	"intranet":     true,
	"invalid":      true,
	"lan":          true,
	"local":        true,
	"localdomain":  true,
	"localdomain6": true,
	"localhost":    true,
	"localhost6":   true,
	"mail":         true,
	"onion":        true,
	"private":      true,
	"svc":          true,
	"test":         true,
	"workgroup":    true,
}

const notPublic = "The URL's host name is reserved for local or private use. Use your server's public host name."

// checkName says why a host can't be the name of a public server, or nothing. It takes ASCII names of letters, digits
// and hyphens (RFC 1123), in two labels at least, and underscores before the last two: hosts below a registered
// domain have them, and wildcard certificates cover them. A single label is a machine of the local network, and a
// last label that is a number makes the C resolver read the name as an address (0x7f.1, 127.1, 2130706433).
func checkName(host string) string {
	if host == "" {
		return "The URL has no host. Use the form https://hooks.example.com/path."
	}
	if strings.HasSuffix(host, ".") {
		return "The URL's host ends with a dot. Remove the dot."
	}
	if len(host) > 253 {
		return "The URL's host name is longer than 253 characters, the maximum in DNS."
	}
	labels := strings.Split(strings.ToLower(host), ".")
	for i, label := range labels {
		if i < len(labels)-2 {
			label = strings.ReplaceAll(label, "_", "0")
		}
		if !hostLabel(label) {
			return "The URL's host name can contain only letters, digits, and hyphens, in labels of 1 to 63 characters between dots, and underscores before the last two. A label can't start or end with a hyphen."
		}
	}
	top := labels[len(labels)-1]
	if specialNames[top] {
		return notPublic
	}
	if len(labels) == 1 {
		return "The URL's host name has only one label, like a name in a local network. Use the full public host name, such as hooks.example.com."
	}
	if !topLabel(top) {
		return "The URL's host is a number, or doesn't end with a top-level domain. Use a host name such as hooks.example.com, or a public IP address in its usual form."
	}
	return ""
}

// hostLabel reports whether a lower-case label is letters, digits and inner hyphens, 1 to 63 of them.
func hostLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// topLabel reports whether a label could be a top-level domain: two letters or more (RFC 3696 section 2) or an IDN in
// its xn-- form. That excludes every spelling of a number, hexadecimal ones too.
func topLabel(label string) bool {
	if strings.HasPrefix(label, "xn--") {
		return true
	}
	for i := range len(label) {
		if label[i] < 'a' || label[i] > 'z' {
			return false
		}
	}
	return len(label) > 1
}
