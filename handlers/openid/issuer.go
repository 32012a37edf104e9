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
	if why := addressFault(policy, issuer); why != "" {
		return wrong(why)
	}
	err := c.checkProvider(ctx, issuer)
	if e := fault.As(err); e != nil && e.Kind == fault.Unavailable {
		log.Info("issuer rejected", "issuer", egress.Mask(issuer), "error", e.Cause)
		return wrong("Posthorn can't read the provider's configuration at " + issuer + "/.well-known/openid-configuration. " +
			"It must be reachable from the internet, respond within 4 seconds, and name exactly this issuer.")
	}
	return err
}

// addressFault says why an issuer can't be a destination of requests, or nothing.
func addressFault(policy egress.Policy, issuer string) string {
	u, err := policy.CheckURL(issuer)
	switch {
	case err != nil:
		return fault.As(err).Fields[0].Detail
	case u.RawQuery != "":
		return "An issuer has no query. Copy the issuer from your provider's configuration."
	}
	return ""
}
