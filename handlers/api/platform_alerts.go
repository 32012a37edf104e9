package api

import (
	"cmp"
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/handlers"
)

// alertsListed is how many of the platform's alerts a response has.
const alertsListed = 250

func (a *api) listPlatformAlerts(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "platform-alerts", Whole: true}); err != nil {
		return err
	}
	var list []incidents.Kept
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		list, err = accounts.ListPlatformAlerts(c.Ctx(), q, alertsListed)
		return err
	})
	if err != nil {
		return err
	}
	console := cmp.Or(a.ConsoleURL, a.BaseURL)
	return c.Answer(http.StatusOK, PlatformAlertList{Data: views(list, func(k incidents.Kept) PlatformAlert {
		return PlatformAlert{
			ID:         id.Alert.Format(k.ID),
			Kind:       string(k.Alert.Kind),
			Title:      k.Alert.Title,
			Message:    k.Alert.Message,
			Severity:   PlatformAlertSeverity(k.Alert.Kind.Severity()),
			Status:     PlatformAlertStatus(k.Status()),
			DedupKey:   k.DedupKey(),
			URL:        k.Alert.Link(console),
			TenantID:   orNullText(k.Alert.Tenant),
			EndpointID: orNullText(k.Alert.Endpoint),
			OpenedAt:   Time(k.OpenedAt),
			ResolvedAt: orNullTime(k.EndedAt),
			Sent:       k.Sent,
		}
	})})
}
