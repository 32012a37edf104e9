package egress

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// ProxyType is the protocol of a proxy.
type ProxyType string

// The types.
const (
	ProxyHTTP   ProxyType = "http"   // HTTP CONNECT
	ProxySOCKS5 ProxyType = "socks5" // RFC 1928
	ProxyDirect ProxyType = "direct" // of a tenant: no proxy, although the platform has one
)

// ProxyTypes lists the types.
func ProxyTypes() []ProxyType { return []ProxyType{ProxyHTTP, ProxySOCKS5, ProxyDirect} }

// Label is the type for people.
func (t ProxyType) Label() string {
	switch t {
	case ProxyHTTP:
		return "HTTP CONNECT"
	case ProxySOCKS5:
		return "SOCKS5"
	case ProxyDirect:
		return "No proxy"
	}
	return ""
}

// Proxy is a server through which requests to endpoints leave the network. It prints without its password in every
// form.
type Proxy struct {
	Owner        id.UUID // the tenant; zero: the platform
	Type         ProxyType
	Address      string // host and port
	Username     string
	Password     string
	ResolveNames bool     // the proxy gets host names and resolves them itself, so that nothing here checks the addresses
	Published    []string // the addresses from which it sends, for receivers' firewalls
}

// Format writes the proxy's address alone.
func (p Proxy) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(p.Address)) }

// Identity tells proxies apart whose connections can't be shared. It contains the password.
func (p *Proxy) Identity() string {
	if p == nil {
		return ""
	}
	return strings.Join([]string{string(p.Type), p.Address, p.Username, p.Password, strconv.FormatBool(p.ResolveNames)}, "\x00")
}

// ProxyOf is the proxy of a tenant's requests among its own and the platform's; nil: they go directly.
func ProxyOf(tenant id.UUID, all []Proxy) *Proxy {
	for _, owner := range []id.UUID{tenant, {}} {
		if i := slices.IndexFunc(all, func(p Proxy) bool { return p.Owner == owner }); i >= 0 {
			if all[i].Type == ProxyDirect {
				return nil
			}
			return &all[i]
		}
	}
	return nil
}

// The bounds of a proxy's fields. RFC 1929 has one byte for the length of each credential.
const (
	maxProxyCredential = 255
	maxPublished       = 50
)

// Check completes a new or changed proxy: was is the stored one, whose password is kept if the new one has none and
// the same server gets it. A refusal is a *fault.Error with a field each.
func (p Proxy) Check(policy Policy, was *Proxy) (Proxy, error) {
	var wrong []fault.Field
	refuse := func(field, code, detail string) {
		wrong = append(wrong, fault.Field{Name: field, Code: code, Detail: detail})
	}
	p.Address, p.Username = strings.ToLower(strings.TrimSpace(p.Address)), strings.TrimSpace(p.Username)
	switch {
	case !slices.Contains(ProxyTypes(), p.Type):
		refuse("type", "proxy_invalid", "type must be http, socks5, or direct.")
	case p.Type == ProxyDirect && p.Owner.IsZero():
		return p, fault.InvalidField("type", "proxy_invalid", "The platform's own proxy can't be direct. Remove it instead.")
	case p.Type == ProxyDirect:
		return Proxy{Owner: p.Owner, Type: p.Type}, nil
	}
	if why := policy.ForProxies().checkProxy(p.Address); why != "" {
		refuse("address", "proxy_invalid", why)
	}
	p.checkCredentials(was, refuse)
	published, why := checkPublished(p.Published)
	if why != "" {
		refuse("published_addresses", "proxy_invalid", why)
	}
	p.Published = published
	if len(wrong) > 0 {
		return p, fault.InvalidFields(wrong)
	}
	return p, nil
}

// checkCredentials checks the username and the password, which is the stored one if the same server gets it.
func (p *Proxy) checkCredentials(was *Proxy, refuse func(field, code, detail string)) {
	if p.Password == "" && was != nil && was.Password != "" && p.Username == was.Username {
		if p.Type != was.Type || p.Address != was.Address {
			refuse("password", "proxy_password_needed", "Enter the password again: the proxy is another one.")
			return
		}
		p.Password = was.Password
	}
	bad := func(text string) bool {
		return len(text) > maxProxyCredential || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
	}
	switch {
	case bad(p.Username) || p.Type == ProxyHTTP && strings.Contains(p.Username, ":"):
		refuse("username", "proxy_invalid", "username can have up to 255 bytes, no control characters, and for HTTP no colon.")
	case bad(p.Password):
		refuse("password", "proxy_invalid", "password can have up to 255 bytes and no control characters.")
	case p.Username == "" && p.Password != "":
		refuse("username", "proxy_invalid", "Enter the username to which the password belongs.")
	case p.Type == ProxySOCKS5 && p.Username != "" && p.Password == "":
		refuse("password", "proxy_password_needed", "SOCKS5 needs a password with a username.")
	}
}

// checkProxy says what is wrong with the address of a proxy, or nothing. A name can be one of the operators' own
// network: the addresses behind it are judged when it is dialed.
func (p Policy) checkProxy(address string) string {
	host, port, why := splitServer(address)
	if why != "" {
		return strings.ReplaceAll(why, "broker.example.com:9092", "proxy.example.com:3128")
	}
	addr, literal, why := parseLiteral(host)
	switch {
	case why != "":
		return strings.ReplaceAll(why, "The URL's", "The proxy's")
	case literal && p.CheckAddr(netip.AddrPortFrom(addr, port)) != nil:
		return "The proxy's address isn't public, or its port isn't 443, 80, or from 1024. For a proxy in your own network, list it in POSTHORN_EGRESS_PROXY_ALLOW."
	case literal:
		return ""
	}
	labels := strings.Split(strings.ToLower(host), ".")
	if len(host) > 253 || !topLabel(labels[len(labels)-1]) || slices.ContainsFunc(labels, func(l string) bool { return !hostLabel(l) }) {
		return "The proxy's host is neither a name such as proxy.example.com nor an IP address in its usual form."
	}
	return ""
}

// checkPublished reads addresses and networks.
func checkPublished(list []string) (out []string, why string) {
	out = []string{}
	for _, text := range list {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, notAddr := netip.ParseAddr(text)
			if notAddr != nil || addr.Zone() != "" {
				return nil, fmt.Sprintf("%q is neither an address such as 203.0.113.7 nor a network such as 203.0.113.0/28.", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		out = append(out, prefix.Masked().String())
	}
	if len(out) > maxPublished {
		return nil, fmt.Sprintf("A proxy can have up to %d published addresses.", maxPublished)
	}
	return out, ""
}

// WithProxies is the policy with the addresses at which operators allow proxies: ParseAllow of
// POSTHORN_EGRESS_PROXY_ALLOW. Endpoints can't reach them.
func (p Policy) WithProxies(list string) (Policy, error) {
	allowed, err := ParseAllow(list)
	p.proxies = allowed.allow
	return p, err
}

// ForProxies is the policy for the addresses of proxies.
func (p Policy) ForProxies() Policy { return Policy{allow: p.proxies, nat64: p.nat64} }

// CheckProxied decides about a host that a proxy resolves itself: by its name, or by its address if it is one.
func (p Policy) CheckProxied(host string, port uint16) error {
	if addr, literal, _ := parseLiteral(host); literal {
		return p.CheckAddr(netip.AddrPortFrom(addr, port))
	}
	if why := p.checkHost(host, port, "https"); why != "" {
		return blocked(net.JoinHostPort(host, strconv.Itoa(int(port))) + ": " + why)
	}
	return nil
}

// ProxyFailing is how long after its last failure a proxy is said to be failing. One that lasts is tried more often.
const ProxyFailing = 2 * time.Minute

// ProxyStatus is a proxy with what was last seen of it, for operators. It has no password.
type ProxyStatus struct {
	Proxy
	HasPassword bool
	Tenant      string    // its name; empty: the platform's
	FailedAt    time.Time // zero: never
	Failure     string    // what was wrong then
	ChangedAt   time.Time
}

// Failing reports whether the proxy failed a moment ago.
func (p ProxyStatus) Failing(now time.Time) bool {
	return !p.FailedAt.IsZero() && now.Sub(p.FailedAt) < ProxyFailing
}

// Name says whose proxy it is.
func (p ProxyStatus) Name() string { return cmp.Or(p.Tenant, "All tenants") }

// PlatformOwner is the word for the owner of the platform's proxy.
const PlatformOwner = "platform"

// ParseProxyOwner reads PlatformOwner or a tenant's id.
func ParseProxyOwner(field, text string) (id.UUID, error) {
	if text == PlatformOwner {
		return id.UUID{}, nil
	}
	tenant, err := id.Tenant.Parse(text)
	if err != nil || tenant.IsZero() {
		return id.UUID{}, fault.InvalidField(field, "id_malformed", "Use platform, or the id of a tenant, which begins with ten_.")
	}
	return tenant, nil
}
