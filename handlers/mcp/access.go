package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/subscriptions"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	rules "posthorn/domain/mcp"
	"posthorn/handlers"
	"posthorn/handlers/openid"
)

// SignIns identifies people of tenants' products by their access tokens.
type SignIns struct {
	DB      *db.DB
	OpenID  *openid.Client
	BaseURL string
	Now     func() time.Time

	mu   sync.Mutex
	kept map[id.UUID]keptAccess
}

type keptAccess struct {
	access rules.Access
	until  time.Time
}

// keptFor is how long the settings of a tenant are used without reading them again, and how many tenants' are kept.
const (
	keptFor = 5 * time.Second
	maxKept = 10_000
)

// Resource is the address of a tenant's server, which clients name when they ask for a token (RFC 8707).
func Resource(base string, tenant id.UUID) string {
	return base + rules.Root + "/" + id.Tenant.Format(tenant)
}

// Identify implements handlers.Tokens.
func (s *SignIns) Identify(ctx context.Context, tenant id.UUID, token string) (handlers.Identified, error) {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	a, err := s.access(ctx, tenant)
	if err != nil && !db.IsNotFound(err) {
		return handlers.Identified{}, err
	}
	if a.Issuer == "" {
		return handlers.Identified{}, handlers.ErrTokenRejected
	}
	audience := a.Audience
	if audience == "" {
		audience = Resource(s.BaseURL, tenant)
	}
	claims, expires, err := s.OpenID.Access(ctx, a.Issuer, audience, token)
	if openid.Rejected(err) || err == nil && !a.Admits(claims) {
		return handlers.Identified{}, handlers.ErrTokenRejected
	} else if err != nil {
		return handlers.Identified{}, err
	}
	subject, _ := claims["sub"].(string)
	if rules.CheckPrincipal(subject) != nil {
		return handlers.Identified{}, handlers.ErrTokenRejected
	}
	return handlers.Identified{Principal: subject, Expires: expires}, nil
}

func (s *SignIns) access(ctx context.Context, tenant id.UUID) (a rules.Access, err error) {
	s.mu.Lock()
	kept, found := s.kept[tenant]
	s.mu.Unlock()
	if found && s.Now().Before(kept.until) {
		return kept.access, nil
	}
	err = s.DB.Tenant(ctx, tenant, func(q *db.Tx) (err error) {
		a, err = subscriptions.Access(ctx, q, tenant)
		return err
	})
	if err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || len(s.kept) >= maxKept {
		s.kept = map[id.UUID]keptAccess{}
	}
	s.kept[tenant] = keptAccess{access: a, until: s.Now().Add(keptFor)}
	return a, nil
}

var errNoSignIn = fault.New(fault.NotFound, "mcp_sign_in_off", "People can't sign in to this address themselves. Use an API key.")

// metadata tells clients who issues tokens for a tenant's server (RFC 9728, section 2). A tenant without an issuer
// looks like one that does not exist.
func (s *server) metadata(c *handlers.Call) error {
	tenant := c.PathID(handlers.TenantParam)
	var a rules.Access
	err := s.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) (err error) {
		a, err = subscriptions.Access(c.Ctx(), q, tenant)
		return err
	})
	if err != nil && !db.IsNotFound(err) {
		return err
	}
	if a.Issuer == "" {
		return errNoSignIn
	}
	c.Writer.Header().Set("Access-Control-Allow-Origin", "*")
	return c.Answer(http.StatusOK, map[string]any{
		"resource":                 Resource(s.BaseURL, tenant),
		"resource_name":            "Posthorn",
		"authorization_servers":    []string{a.Issuer},
		"bearer_methods_supported": []string{"header"},
	})
}
