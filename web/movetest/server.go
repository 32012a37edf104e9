// Package movetest is a stand-in for the servers of other senders, for tests of imports: Svix, Outpost and Convoy. Each
// has the responses of its published API description, in pages, with a limit on requests, and is unavailable at times.
// It has as many tenants as a test wants.
package movetest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Token is the token that every server asks for.
const Token = "the-other-token"

// Tenants counts what a server holds: tenants with 2.5 endpoints each.
type Tenants int

// PerTenant is how many endpoints a tenant has.
func PerTenant(tenant int) int { return 2 + tenant%2 }

// Endpoints is how many there are in all.
func (t Tenants) Endpoints() (n int) {
	for i := range int(t) {
		n += PerTenant(i)
	}
	return n
}

// Server is a server of another sender.
type Server struct {
	Tenants Tenants
	// Receiver is the address that endpoints have, with the tenant and the number of the endpoint appended; empty: one
	// of example.com.
	Receiver string
	// Steady switches off the 429s and 5xx.
	Steady bool
	// Hidden says that secrets are not shown.
	Hidden bool
	// Rotated says that every endpoint has another secret, and Bare that endpoints have no headers, metadata, and rate.
	Rotated, Bare bool
	// Sensitive are the headers whose values Svix does not show. Rate and Metadata are those of its applications.
	Sensitive []string
	Rate      int
	Metadata  map[string]string
	// Types are the event types of the first endpoint; empty: those that the server has by itself.
	Types []string

	mu        sync.Mutex
	notify    func(asked int)
	asked     int
	throttled int
	disabled  map[string]bool // by endpoint, where it was changed
	routes    func(w http.ResponseWriter, r *http.Request)
}

// Notify has a function called for each request, with its number from 1; nil: no longer.
func (s *Server) Notify(notify func(asked int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
}

// Throttled is how often the server was too busy.
func (s *Server) Throttled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.throttled
}

// Asked is how many requests there were.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Disabled reports whether an endpoint was disabled through the API.
func (s *Server) Disabled(endpoint string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled[endpoint]
}

// Disable disables an endpoint, or enables it.
func (s *Server) Disable(endpoint string, off bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled == nil {
		s.disabled = map[string]bool{}
	}
	s.disabled[endpoint] = off
}

// Secret is the secret of an endpoint, by its name.
func Secret(endpoint string) string {
	key := sha256.Sum256([]byte(endpoint))
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// Secret is the secret that an endpoint has now.
func (s *Server) Secret(endpoint string) string {
	if s.Rotated {
		return Secret(endpoint + ", rotated")
	}
	return Secret(endpoint)
}

// pairs are headers or metadata of an endpoint.
func (s *Server) pairs(name, value string) map[string]string {
	if s.Bare {
		return map[string]string{}
	}
	return map[string]string{name: value}
}

func (s *Server) url(tenant, n int) string {
	if s.Receiver != "" {
		return fmt.Sprintf("%s/%d/%d", s.Receiver, tenant, n)
	}
	return fmt.Sprintf("https://c%d.example.com/hooks/%d", tenant, n)
}

func (s *Server) types(n int) []string {
	if len(s.Types) > 0 {
		return s.Types
	}
	return []string{fmt.Sprintf("type.n%d", n%2)}
}

// ServeHTTP handles a request: sometimes with 429 or 502.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	asked := s.asked
	busy := !s.Steady && asked%97 == 0
	if busy {
		s.throttled++
	}
	notify := s.notify
	s.mu.Unlock()
	if notify != nil {
		notify(asked)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		w.WriteHeader(http.StatusUnauthorized)
	case busy:
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	case !s.Steady && asked%201 == 0:
		w.WriteHeader(http.StatusBadGateway)
	default:
		s.routes(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// number is the number at the end of a name.
func number(name string) int {
	n, _ := strconv.Atoi(name[strings.LastIndex(name, "_")+1:])
	return n
}

// tenantOf is the number of the tenant in an endpoint's name, such as ep_12_1.
func tenantOf(endpoint string) int {
	return number(endpoint[:max(strings.LastIndex(endpoint, "_"), 0)])
}
