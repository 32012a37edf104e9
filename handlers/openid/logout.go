package openid

import (
	"errors"
	"log/slog"
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Receiver accepts providers' logout tokens (OpenID Connect Back-Channel Logout 1.0, sections 2.5 to 2.8).
type Receiver struct {
	DB     *db.DB
	Client *Client
	Log    *slog.Logger
}

// EndSessions ends the sessions that the logout token of a request names. A tenant of zero means operators.
func (r Receiver) EndSessions(c *handlers.Call, p Provider, tenant id.UUID) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	token, err := r.Client.Logout(c.Ctx(), p, form.Get("logout_token"))
	if Rejected(err) {
		r.Log.Warn("logout token rejected", "tenant", id.Tenant.Format(tenant), "error", errors.Unwrap(err))
		return c.Answer(http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": "The logout token is not valid for this client."})
	}
	if err != nil {
		return err
	}
	if _, err := accounts.EndByProvider(c.Ctx(), r.DB, tenant, token, c.Actor.Address); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, struct{}{})
}
