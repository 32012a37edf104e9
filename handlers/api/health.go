package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/analytics"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// getHealth responds with the condition of the tenant's endpoints, the reasons, and what to do first, as JSON or CSV.
func (a *api) getHealth(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "health", Whole: true, Choices: []handlers.Choice{formats}})
	if err != nil {
		return err
	}
	var h endpoints.TenantHealth
	err = c.Tx(func(q *db.Tx) (err error) {
		h, err = endpoints.ReadTenantHealth(c.Ctx(), q, c.Actor.Tenant, a.Now())
		return err
	})
	if err != nil {
		return err
	}
	if !wantsCSV(c, p.Chosen["format"]) {
		return c.Answer(http.StatusOK, healthView(h))
	}
	text, err := json.Marshal(healthView(h))
	if err != nil {
		return err
	}
	rows := [][]string{{"field", "value"}}
	if rows, err = flatten(rows, "", text); err == nil {
		respondCSV(c, "posthorn-health.csv", rows)
	}
	return err
}

// flatten appends a row for each value in a JSON text, in its order, with the path to it: "findings.0.code".
func flatten(rows [][]string, path string, text json.RawMessage) ([][]string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	start, err := d.Token()
	if err != nil {
		return rows, err
	}
	if _, nested := start.(json.Delim); !nested {
		value := strings.TrimSpace(string(text))
		switch v := start.(type) {
		case string:
			value = v
		case nil:
			value = ""
		}
		return append(rows, []string{strings.TrimPrefix(path, "."), value}), nil
	}
	for i := 0; d.More(); i++ {
		at := fmt.Sprint(i)
		if start == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return rows, err
			}
			at = fmt.Sprint(name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return rows, err
		}
		if rows, err = flatten(rows, path+"."+at, value); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func healthView(h endpoints.TenantHealth) Health {
	out := Health{
		At:                  Time(h.Now.UTC()),
		Severity:            HealthSeverity(h.Severity.String()),
		Reason:              h.Reason(),
		Action:              h.Action,
		ActionEndpointID:    orNullEndpoint(h.ActionEndpoint),
		Findings:            make([]HealthFinding, len(h.Findings)),
		ActiveEndpoints:     h.ActiveEndpoints,
		Day:                 rateView(h.SuccessDay),
		Hour:                rateView(h.SuccessHour),
		RetriesDay:          int(h.Retries),
		FailedDeliveriesDay: int(h.FailedDeliveries),
		P50Ms:               milliseconds(h.P50),
		P95Ms:               milliseconds(h.P95),
		DisabledDay:         h.Disabled,
		BreakersOpen:        h.BreakersOpen,
		WarningsRunning:     h.Warnings,
		OldestDueSeconds:    int(h.OldestDue.Seconds()),
		DominantProblem:     orNullText(string(h.Dominant)),
		DominantEndpointID:  orNullEndpoint(h.DominantEndpoint),
		Alerts:              make([]HealthAlert, len(h.Alerts)),
		MoreAlerts:          h.MoreAlerts,
		Recovered:           make([]HealthRecovery, len(h.Recovered)),
		DeadLetters:         int(h.DeadLetters),
		TopTypes:            make([]HealthType, len(h.Types)),
		TopEndpoints:        make([]HealthEndpoint, len(h.Top)),
	}
	listEndpoints(&out, h)
	out.LastDigestAt.SetNull()
	if !h.LastDigest.IsZero() {
		out.LastDigestAt.Set(Time(h.LastDigest))
	}
	for i, r := range h.Types {
		out.TopTypes[i] = HealthType{Type: r.Type, Attempts: int(r.Total()), Failed: int(r.Failed())}
	}
	for i, r := range h.Top {
		out.TopEndpoints[i] = HealthEndpoint{
			EndpointID: id.Endpoint.Format(r.Endpoint),
			URL:        r.URL,
			Attempts:   int(r.Total()),
			Failed:     int(r.Failed()),
		}
	}
	return out
}

// listEndpoints fills in what names endpoints.
func listEndpoints(out *Health, h endpoints.TenantHealth) {
	for i, f := range h.Findings {
		out.Findings[i] = HealthFinding{
			Severity:   HealthSeverity(f.Severity.String()),
			Code:       f.Code,
			Detail:     f.Detail,
			EndpointID: orNullEndpoint(f.Endpoint),
		}
	}
	for i, a := range h.Alerts {
		out.Alerts[i] = HealthAlert{
			EndpointID:    id.Endpoint.Format(a.Endpoint),
			Name:          a.Name,
			Severity:      HealthSeverity(a.Severity.String()),
			Code:          a.Code,
			Detail:        a.Detail,
			Action:        a.Action,
			Attempts:      int(a.Attempts),
			Failed:        int(a.Failed),
			Problem:       orNullText(string(a.Problem)),
			Response:      orNullText(a.Response.String()),
			ResponseCount: int(a.Response.Count),
		}
	}
	for i, r := range h.Recovered {
		out.Recovered[i] = HealthRecovery{
			EndpointID: id.Endpoint.Format(r.Endpoint),
			Name:       r.Name,
			At:         Time(r.At.UTC()),
			Detail:     r.Detail(),
			Attempts:   int(r.Attempts),
			Failed:     int(r.Failed),
		}
	}
}

func orNullEndpoint(u id.UUID) nullable.Nullable[string] {
	if u.IsZero() {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(id.Endpoint.Format(u))
}

func rateView(r health.Rate) SuccessRate {
	out := SuccessRate{Attempts: int(r.Total), Succeeded: int(r.Succeeded)}
	out.Share.SetNull()
	if r.Known() {
		out.Share.Set(r.Share())
	}
	return out
}

// formats is the choice of the responses that are also tables.
var formats = handlers.Choice{Name: "format", Words: []string{"json", "csv"}}

// wantsCSV follows the parameter if it is given, else the Accept header.
func wantsCSV(c *handlers.Call, format string) bool {
	if c.Request.URL.Query().Has("format") {
		return format == "csv"
	}
	return c.NegotiateFormat("application/json", "text/csv") == "text/csv"
}

func respondCSV(c *handlers.Call, name string, rows [][]string) {
	c.Writer.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	c.Data(http.StatusOK, "text/csv; charset=utf-8", analytics.CSV(rows))
}
