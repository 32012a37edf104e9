package api

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// getHealth responds with the condition of the tenant's endpoints, the reasons, and what to do first.
func (a *api) getHealth(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "health", Whole: true}); err != nil {
		return err
	}
	now := a.Now()
	var h endpoints.TenantHealth
	urls := map[id.UUID]string{}
	err := c.Tx(func(q *db.Tx) (err error) {
		if h, err = endpoints.HealthInputs(c.Ctx(), q, c.Actor.Tenant, now); err != nil {
			return err
		}
		ids := make([]id.UUID, len(h.Top))
		for i, r := range h.Top {
			ids[i] = r.Endpoint
		}
		rows, err := q.EndpointNames(c.Ctx(), sql.EndpointNamesParams{TenantID: c.Actor.Tenant, Ids: ids})
		for _, r := range rows {
			urls[r.ID] = r.URL
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, healthView(h, urls, now))
}

func healthView(h endpoints.TenantHealth, urls map[id.UUID]string, now time.Time) Health {
	s := health.Summarise(h.Inputs)
	out := Health{
		At: Time(now.UTC()), Severity: HealthSeverity(s.Severity.String()), Reason: s.Reason(), Action: s.Action,
		Findings: make([]HealthFinding, len(s.Findings)), ActiveEndpoints: h.ActiveEndpoints,
		Day: rateView(s.SuccessDay), Hour: rateView(s.SuccessHour), RetriesDay: int(h.Retries),
		FailedDeliveriesDay: int(h.FailedDeliveries), P50Ms: milliseconds(s.P50), P95Ms: milliseconds(s.P95),
		DisabledDay: h.Disabled, BreakersOpen: h.BreakersOpen, WarningsRunning: h.Warnings,
		OldestDueSeconds: int(h.OldestDue.Seconds()), MoreAlerts: s.MoreAlerts, DeadLetters: int(h.DeadLetters),
		Alerts: []HealthAlert{}, TopTypes: []HealthType{}, TopEndpoints: []HealthEndpoint{},
	}
	for i, f := range s.Findings {
		out.Findings[i] = HealthFinding{
			Severity: HealthSeverity(f.Severity.String()), Code: f.Code, Detail: f.Detail,
			EndpointID: orNullText(f.Endpoint),
		}
	}
	for _, a := range s.Alerts {
		out.Alerts = append(out.Alerts, HealthAlert{
			EndpointID: a.Endpoint, Name: a.Name, Severity: HealthSeverity(a.Severity.String()), Code: a.Code,
			Detail: a.Detail, Action: a.Action,
			Attempts: int(a.Attempts), Failed: int(a.Failed), Problem: orNullText(string(a.Problem)),
			Response: orNullText(a.Response.String()), ResponseCount: int(a.Response.Count),
		})
	}
	out.DominantEndpointID, out.ActionEndpointID = orNullText(s.DominantEndpoint), orNullText(s.ActionEndpoint)
	out.LastDigestAt.SetNull()
	if !h.LastDigest.IsZero() {
		out.LastDigestAt.Set(Time(h.LastDigest))
	}
	out.DominantProblem.SetNull()
	if s.Dominant != "" {
		out.DominantProblem.Set(string(s.Dominant))
	}
	for _, r := range h.Types {
		out.TopTypes = append(out.TopTypes, HealthType{Type: r.Type, Attempts: int(r.Total()), Failed: int(r.Failed())})
	}
	for _, r := range h.Top {
		out.TopEndpoints = append(out.TopEndpoints, HealthEndpoint{
			EndpointID: id.Endpoint.Format(r.Endpoint), URL: egress.Mask(urls[r.Endpoint]), Attempts: int(r.Total()),
			Failed: int(r.Failed()),
		})
	}
	return out
}

func rateView(r health.Rate) SuccessRate {
	out := SuccessRate{Attempts: int(r.Total), Succeeded: int(r.Succeeded)}
	out.Share.SetNull()
	if r.Known() {
		out.Share.Set(r.Share())
	}
	return out
}

// milliseconds keeps one decimal: the histogram has no more precision.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Microsecond).Microseconds()) / 1000
}
