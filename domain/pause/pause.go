// Package pause holds the rules of operators' pauses: of everything, or of one tenant, host or endpoint.
package pause

import (
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Scope is how much a pause concerns. It is stored: the words never change.
type Scope string

// The scopes, the widest first.
const (
	Platform Scope = "platform"
	Tenant   Scope = "tenant"
	Host     Scope = "host"
	Endpoint Scope = "endpoint"
)

// Suspended is why a delivery waits whose tenant is suspended. There is no pause of it.
const Suspended Scope = "suspended"

// Pause is one pause. Of Tenant, Host and Endpoint the one that its scope names is set; of an endpoint its tenant too.
type Pause struct {
	Scope    Scope
	Tenant   id.UUID
	Host     string // as HostOf says it; without a port it concerns every port
	Endpoint id.UUID
}

// Set is all pauses that are on. The zero value and nil concern nothing.
type Set struct {
	all  bool
	ids  map[id.UUID]struct{} // of tenants and endpoints
	host map[string]struct{}
}

// NewSet gathers pauses.
func NewSet(pauses []Pause) *Set {
	s := &Set{ids: map[id.UUID]struct{}{}, host: map[string]struct{}{}}
	for _, p := range pauses {
		switch p.Scope {
		case Platform:
			s.all = true
		case Tenant:
			s.ids[p.Tenant] = struct{}{}
		case Endpoint:
			s.ids[p.Endpoint] = struct{}{}
		case Host:
			s.host[p.Host] = struct{}{}
		}
	}
	return s
}

// Covers reports whether nothing is to be sent to an endpoint of a tenant at a host (see HostOf).
func (s *Set) Covers(tenant, endpoint id.UUID, host string) bool {
	if s == nil {
		return false
	}
	if s.all {
		return true
	}
	if _, paused := s.ids[tenant]; paused {
		return true
	}
	if _, paused := s.ids[endpoint]; paused {
		return true
	}
	if len(s.host) == 0 {
		return false
	}
	if _, paused := s.host[host]; paused {
		return true
	}
	_, paused := s.host[withoutPort(host)]
	return paused
}

// HostOf is the host of an endpoint's URL in lower case, with its port where the URL has one. The database says it in
// the same way (posthorn.url_host).
func HostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ToLower(rest)
}

func withoutPort(host string) string {
	at := strings.LastIndexByte(host, ':')
	if at < 0 || strings.Trim(host[at+1:], "0123456789") != "" || at == len(host)-1 {
		return host
	}
	return host[:at]
}

// maxHost is the length of a DNS name, and a port.
const maxHost = 253 + 6

// ReadHost reads a host, or the host of a URL. The error is a *fault.Error.
func ReadHost(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	host := HostOf(text)
	if host == "" || len(host) > maxHost || strings.ContainsAny(host, " @\\\"'<>%") {
		return "", fault.InvalidField(field, "host_malformed", "Enter the host as in its endpoints' URLs, such as hooks.example.com or hooks.example.com:8443.")
	}
	return host, nil
}

// Known reports whether there is such a scope.
func (s Scope) Known() bool { return s == Platform || s == Tenant || s == Host || s == Endpoint }

// Sentence says to a tenant what a pause means for a delivery that it concerns.
func (s Scope) Sentence() string {
	switch s {
	case Suspended:
		return "The operator of this platform suspended this tenant. Nothing is sent, and nothing is lost."
	case Platform:
		return "The operator of this platform paused all deliveries."
	case Tenant:
		return "The operator of this platform paused this tenant's deliveries."
	case Host:
		return "The operator of this platform paused deliveries to this host."
	case Endpoint:
		return "The operator of this platform paused deliveries to this endpoint."
	}
	return ""
}
