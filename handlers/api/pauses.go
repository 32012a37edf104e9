package api

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/pause"
	"posthorn/domain/show"
	"posthorn/handlers"
)

func (a *api) listPauses(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "pauses", Whole: true}); err != nil {
		return err
	}
	var pauses []show.Pause
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		pauses, err = accounts.ListPauses(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, PauseList{Data: views(pauses, encodePause)})
}

func (a *api) pauseDispatch(c *handlers.Call) error {
	var in PauseInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	var wrong wrongFields
	reason := strings.TrimSpace(wrong.reason(&in.Reason, 1))
	what := wrong.pause(in)
	if err := wrong.err(); err != nil {
		return err
	}
	p, made, err := accounts.PauseDispatch(c.Ctx(), a.DB, what, reason, c.Author())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return c.Answer(status, encodePause(p))
}

// pause reads what to pause: the one thing that the scope names, and nothing else.
func (w *wrongFields) pause(in PauseInput) (p pause.Pause) {
	p.Scope = pause.Scope(in.Scope)
	for _, part := range []struct {
		of    pause.Scope
		field string
		given *string
		read  func(text string) error
	}{
		{pause.Tenant, "tenant_id", in.TenantID, func(text string) (err error) {
			p.Tenant,
				err = id.Tenant.Parse(text)
			return err
		}},
		{pause.Host, "host", in.Host, func(text string) (err error) { p.Host, err = pause.ReadHost("host", text); return err }},
		{pause.Endpoint, "endpoint_id", in.EndpointID, func(text string) (err error) {
			p.Endpoint,
				err = id.Endpoint.Parse(text)
			return err
		}},
	} {
		switch {
		case part.of != p.Scope && part.given != nil:
			w.add(part.field, "pause_scope", "A pause of the scope "+in.scope()+" must not have "+part.field+".")
		case part.of != p.Scope:
		case part.given == nil:
			w.add(part.field, "field_missing", "Add the field "+part.field+".")
		case part.read(*part.given) != nil && part.of == pause.Host:
			w.add(part.field, "host_malformed", "Use the host as in its endpoints' URLs, such as hooks.example.com or hooks.example.com:8443.")
		case part.of != pause.Host && part.read(*part.given) != nil:
			w.add(part.field, "id_malformed", "This isn't an id of this kind.")
		}
	}
	if !p.Scope.Known() {
		w.add("scope", "pause_scope", "scope must be platform, tenant, host, or endpoint.")
	}
	return p
}

func (in PauseInput) scope() string { return string(in.Scope) }

func (a *api) resumeDispatch(c *handlers.Call) error {
	pauseID := c.PathID("pause_id")
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	p, err := accounts.ResumeDispatch(c.Ctx(), a.DB, pauseID, reason, c.Author())
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodePause(p))
}

func encodePause(p show.Pause) Pause {
	return Pause{
		ID:         id.Pause.Format(p.ID),
		Scope:      PauseScope(p.Scope),
		TenantID:   idOrNull(id.Tenant, p.Tenant),
		Host:       orNullText(p.Host),
		EndpointID: idOrNull(id.Endpoint, p.Endpoint),
		Reason:     p.Reason,
		CreatedAt:  Time(p.CreatedAt),
	}
}

// idOrNull is an id that is null if it is zero.
func idOrNull(kind id.Kind, of id.UUID) nullable.Nullable[string] {
	if of.IsZero() {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(kind.Format(of))
}

func (a *api) getPlatformOverview(c *handlers.Call) error {
	if _, err := c.Page(handlers.List{Name: "platform-overview", Whole: true}); err != nil {
		return err
	}
	n, err := endpoints.ReadNumbers(c.Ctx(), a.DB, a.Now())
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, PlatformOverview{
		Tenants:     n.Tenants,
		Waiting:     n.Waiting,
		DeadLetters: n.DeadLetters,
		Workers:     n.Workers,
		Findings:    n.Findings,
	})
}

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
