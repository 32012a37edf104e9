package handlers

import (
	"posthorn/db/accounts"
	"posthorn/domain/quota"
	"posthorn/views/components"
)

// Usage returns a tenant's limits and usage for pages.
func Usage(u accounts.Usage, text string) components.UsageProps {
	return components.UsageProps{
		Text: text, Resets: quota.Resets(u.Month), Events: u.Events, EventsPerMonth: int64(u.Limits.EventsPerMonth),
		EventsPerSecond: int64(u.Limits.EventsPerSecond),
		Endpoints:       u.Endpoints, MaxEndpoints: int64(u.Limits.Endpoints), MaxPayload: int64(u.Limits.MaxPayload),
	}
}
