package mcp

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

// Root is the path of the server. A tenant's own is below it.
const Root = "/mcp"

// ResourceRoot is the part of MetadataPath before the tenant.
const ResourceRoot = "/.well-known/oauth-protected-resource" + Root + "/"

// MetadataPath is where clients find who issues tokens for a tenant's server (RFC 9728, section 3.1).
func MetadataPath(tenant string) string { return ResourceRoot + tenant }

// Access is how people of a tenant's product reach its server themselves, and what the hosts of their clients expect.
type Access struct {
	Issuer   string // of the product's access tokens; empty: API keys alone
	Audience string // that tokens have; empty: the address of the tenant's server
	Claim    string // that tokens have with the value Value; empty: none
	Value    string
	// MessageIDHosts are the hosts of callback URLs whose requests have the id of the message as webhook-id. Others
	// get the id of the event.
	MessageIDHosts []string
}

// Bounds of Access.
const (
	maxAccessText = 500 // characters
	maxHosts      = 50
)

// Check validates the settings and returns them in their canonical form. The issuer is checked as a destination
// elsewhere.
func (a Access) Check() (Access, error) {
	var wrong []fault.Field
	refuse := func(field, detail string) {
		wrong = append(wrong, fault.Field{Name: field, Code: "mcp_access_invalid", Detail: detail})
	}
	for name, text := range map[string]*string{"issuer": &a.Issuer, "audience": &a.Audience, "claim": &a.Claim, "claim_value": &a.Value} {
		if *text = strings.TrimSpace(*text); len([]rune(*text)) > maxAccessText || *text != "" && !characters.Line(*text) {
			refuse(name, fmt.Sprintf("It has at most %d visible characters.", maxAccessText))
		}
	}
	if (a.Claim == "") != (a.Value == "") {
		refuse("claim_value", "A claim needs a value, and a value needs a claim.")
	}
	hosts := []string{}
	for _, host := range a.MessageIDHosts {
		host = strings.ToLower(strings.TrimSpace(host))
		if u, err := url.Parse("https://" + host); err != nil || host == "" || u.Host != host || u.Port() != "" || len(host) > 253 {
			refuse("message_id_hosts", fmt.Sprintf("%.100q is no host. Give hosts such as agent.example.com, without https:// and without a port.", host))
			break
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if slices.Sort(hosts); len(hosts) > maxHosts {
		refuse("message_id_hosts", fmt.Sprintf("There are at most %d hosts.", maxHosts))
	}
	a.MessageIDHosts = hosts
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(x, y fault.Field) int { return strings.Compare(x.Name, y.Name) })
		return a, fault.InvalidFields(wrong)
	}
	return a, nil
}

// MessageID reports whether requests to a callback URL have the message's own id as webhook-id.
func (a Access) MessageID(callback string) bool {
	u, err := url.Parse(callback)
	if err != nil {
		return false
	}
	host := u.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(a.MessageIDHosts, strings.ToLower(host))
}

// Admits reports whether the claims of a token are those of somebody whom the tenant lets in. The token's issuer,
// audience, and times are checked elsewhere.
func (a Access) Admits(claims map[string]any) bool {
	if a.Claim == "" {
		return true
	}
	switch value := claims[a.Claim].(type) {
	case string:
		return value == a.Value
	case []any:
		return slices.Contains(value, any(a.Value))
	}
	return false
}
