package handlers

import (
	"net/url"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// FormKey reads the form of a new API key. tenant is nil for a platform key. The error is a *fault.Error that names
// each wrong field.
func FormKey(form url.Values, tenant *id.UUID, now time.Time) (accounts.NewKey, error) {
	out := accounts.NewKey{Tenant: tenant}
	var wrong []fault.Field
	var err error
	if out.Name, err = account.Name("name", form.Get("name")); err != nil {
		wrong = append(wrong, fault.As(err).Fields...)
	}
	if out.Scopes, err = access.GrantScopes(form["scopes"], tenant == nil); err != nil {
		wrong = append(wrong, fault.As(err).Fields...)
	}
	var late *fault.Field
	if out.ExpiresAt, late = formExpiry("expires_at", form.Get("expires_at"), now); late != nil {
		wrong = append(wrong, *late)
	}
	if len(wrong) > 0 {
		return out, fault.InvalidFields(wrong)
	}
	return out, nil
}
