package handlers

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/quota"
	"posthorn/views/components"
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
	if out.ExpiresAt, late = formExpiry(form, now); late != nil {
		wrong = append(wrong, *late)
	}
	if len(wrong) > 0 {
		return out, fault.InvalidFields(wrong)
	}
	return out, nil
}

// FormTime reads the value of a date and time field, which has no offset, as UTC, and writes it as RFC 3339. It keeps
// any other text as it is.
func FormTime(text string) string {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.000", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return text
}

// formExpiry reads when a new key expires: after some days, or at a time. It is nil for never.
func formExpiry(form url.Values, now time.Time) (*time.Time, *fault.Field) {
	text, in := strings.TrimSpace(form.Get("expires_at")), form.Get("expires_in")
	if days, err := strconv.Atoi(strings.TrimSuffix(in, "d")); err == nil && days > 0 && days <= 3650 {
		at := now.UTC().AddDate(0, 0, days)
		return &at, nil
	}
	if in == "never" || in == "" && text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, FormTime(text))
	switch {
	case err != nil:
		return nil, &fault.Field{Name: "expires_at", Code: "time_malformed", Detail: "Enter a date and a time in UTC."}
	case !at.After(now):
		return nil, &fault.Field{Name: "expires_at", Code: "expires_at_past", Detail: "This time is in the past. Enter a time in the future."}
	}
	at = at.UTC()
	return &at, nil
}

// BeyondText says what a shorter retention deletes.
func BeyondText(events int64, days int) string {
	return fmt.Sprintf("%s older than %s, with all deliveries and attempts. They are hidden immediately and then permanently deleted. This can't be undone.",
		components.Many(events, "event is", "events are"), components.Many(int64(days), "day", "days"))
}

// Usage returns a tenant's limits and usage for pages.
func Usage(u accounts.Usage, text string) components.UsageProps {
	return components.UsageProps{
		Text:            text,
		Resets:          quota.Resets(u.Month),
		Events:          u.Events,
		EventsPerMonth:  int64(u.Limits.EventsPerMonth),
		EventsPerSecond: int64(u.Limits.EventsPerSecond),
		Endpoints:       u.Endpoints,
		MaxEndpoints:    int64(u.Limits.Endpoints),
		MaxPayload:      int64(u.Limits.MaxPayload),
	}
}
