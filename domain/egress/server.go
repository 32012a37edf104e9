package egress

import (
	"net/netip"
	"strings"

	"posthorn/domain/fault"
)

// CheckServer decides, without asking DNS, whether Posthorn can connect to a server that does not speak HTTP: host:port
// under the rules of CheckURL, and without TLS only what the operator listed. The result has its host in lower case. A
// refusal is a *fault.Error with code server_refused and the given field.
func (p Policy) CheckServer(field, server string, tls bool) (string, error) {
	host, port, why := splitServer(server)
	if why == "" {
		why = p.checkServer(host, port, tls)
	}
	if why != "" {
		// The rules for hosts are told of URLs.
		return "", fault.InvalidField(field, "server_refused", strings.ReplaceAll(why, "The URL's", "The server's"))
	}
	return strings.ToLower(server), nil
}

func splitServer(server string) (host string, port uint16, why string) {
	const form = "Write a server as host:port, such as broker.example.com:9092."
	if len(server) > 300 || strings.ContainsFunc(server, func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
		strings.ContainsAny(server, "/@\\?#,") {
		return "", 0, form + " It can't contain anything else."
	}
	host, port, why = splitAuthority(server, "")
	if why == "" && (host == "" || port == 0) {
		why = form
	}
	return host, port, why
}

func (p Policy) checkServer(host string, port uint16, tls bool) string {
	if addr, literal, _ := parseLiteral(host); literal && !p.isTranslated(addr) &&
		p.allows(netip.AddrPortFrom(addr, port)) {
		return ""
	}
	if why := p.checkHost(host, port, "https"); why != "" {
		return why
	}
	if !tls {
		return "The connection must use TLS. Events are never sent unencrypted."
	}
	return ""
}
