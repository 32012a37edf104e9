package openid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// authority is an authorization server that issues access tokens, as far as its tokens are verified here.
type authority struct {
	until time.Time
	keys  *oidc.RemoteKeySet // kept, since a client sends its token with each request
}

// Access verifies an access token: a JWT of an issuer for an audience (RFC 9068, section 4). It returns the claims and
// when the token expires. Otherwise the error is one that Rejected reports, or says that the issuer can't be reached.
func (c *Client) Access(ctx context.Context, issuer, audience, raw string) (claims map[string]any, expires time.Time, err error) {
	from, err := c.authority(ctx, issuer)
	if err != nil {
		return nil, expires, err
	}
	keys := &keySet{remote: from.keys}
	token, err := oidc.NewVerifier(issuer, keys, &oidc.Config{
		ClientID:             audience,
		SupportedSigningAlgs: algorithms,
		Now:                  func() time.Time { return c.now().Add(-leeway) },
	}).Verify(ctx, raw)
	if err != nil {
		return nil, expires, keys.fault(err)
	}
	if err := token.Claims(&claims); err != nil {
		return nil, expires, because(errRejected, err)
	}
	if token.Subject == "" || !storable(token.Subject) {
		return nil, expires, because(errRejected, errors.New("the token has no subject that can be stored"))
	}
	return claims, token.Expiry.Add(leeway), nil
}

// authority reads where an issuer publishes its keys, and keeps it for a while.
func (c *Client) authority(ctx context.Context, issuer string) (authority, error) {
	c.mu.Lock()
	a, found := c.authorities[issuer]
	c.mu.Unlock()
	if found && c.now().Before(a.until) {
		return a, nil
	}
	address, err := c.keysOf(ctx, issuer)
	if err != nil {
		return a, because(errUnreachable, err)
	}
	a = authority{
		until: c.now().Add(knownFor),
		keys:  oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), c.http), address),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.authorities) >= maxKnown {
		clear(c.authorities)
	}
	c.authorities[issuer] = a
	return a, nil
}

// maxMetadata bounds a metadata document, in bytes.
const maxMetadata = 1 << 20

// keysOf is the jwks_uri of an issuer: by OpenID Connect Discovery 1.0, or by RFC 8414, section 3.1, which puts its
// path between host and path.
func (c *Client) keysOf(ctx context.Context, issuer string) (string, error) {
	at, err := url.Parse(issuer)
	if err != nil {
		return "", err
	}
	inserted := *at
	inserted.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(at.Path, "/")
	var first error
	for _, address := range []string{strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration", inserted.String()} {
		found, err := c.keysAt(ctx, address, issuer)
		if err == nil {
			return found, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

func (c *Client) keysAt(ctx context.Context, address, issuer string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	var m struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the metadata has status %d", res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxMetadata)).Decode(&m); err != nil {
		return "", err
	}
	if m.Issuer != issuer {
		return "", errors.New("the metadata is another issuer's")
	}
	return m.Keys, safeAddress("jwks_uri", m.Keys, issuer)
}

// CheckAuthority rejects an issuer of access tokens that can't be a destination of requests, or that does not respond
// as one. The error has the field issuer.
func (c *Client) CheckAuthority(ctx context.Context, policy egress.Policy, issuer string, log *slog.Logger) error {
	wrong := func(detail string) error { return fault.InvalidField("issuer", "mcp_access_invalid", detail) }
	if why := addressFault(policy, issuer); why != "" {
		return wrong(why)
	}
	if _, err := c.keysOf(ctx, issuer); err != nil {
		log.Info("issuer rejected", "issuer", egress.Mask(issuer), "error", err)
		return wrong("Posthorn can't read the metadata of this issuer, by OpenID Connect Discovery or by RFC 8414. It must be reachable, " +
			"respond within 4 seconds, name exactly this issuer, and have a jwks_uri.")
	}
	return nil
}
