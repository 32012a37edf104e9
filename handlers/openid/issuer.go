package openid

import (
	"context"
	"log/slog"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// CheckIssuer rejects an issuer that can't be a destination of requests, or that does not respond as a provider. The
// error has the field issuer.
func (c *Client) CheckIssuer(ctx context.Context, policy egress.Policy, issuer string, log *slog.Logger) error {
	wrong := func(detail string) error { return fault.InvalidField("issuer", "sso_issuer_invalid", detail) }
	if u, err := policy.CheckURL(issuer); err != nil {
		return wrong(fault.As(err).Fields[0].Detail)
	} else if u.RawQuery != "" {
		return wrong("An issuer has no query. Copy the issuer from your provider's configuration.")
	}
	err := c.checkProvider(ctx, issuer)
	if e := fault.As(err); e != nil && e.Kind == fault.Unavailable {
		log.Info("issuer rejected", "issuer", egress.Mask(issuer), "error", e.Cause)
		return wrong("Posthorn can't read the provider's configuration at " + issuer + "/.well-known/openid-configuration. " +
			"It must be reachable from the internet, respond within 4 seconds, and name exactly this issuer.")
	}
	return err
}
