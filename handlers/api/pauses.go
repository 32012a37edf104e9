package api

import (
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/handlers"
)

func (a *api) listPauses(c *handlers.Call) error {
	out := PauseList{Data: []Pause{}}
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		rows, err := q.ListPauses(c.Ctx())
		for _, r := range rows {
			out.Data = append(out.Data, pauseView(sql.DispatchPause{
				ID: r.ID, Scope: r.Scope, TenantID: r.TenantID, Host: r.Host, EndpointID: r.EndpointID,
				Reason: r.Reason, CreatedAt: r.CreatedAt,
			}))
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, out)
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
	row, made, err := accounts.PauseDispatch(c.Ctx(), a.DB, what, reason, c.Author())
	if err != nil {
		return err
	}
	if !made {
		return c.Answer(http.StatusOK, pauseView(row))
	}
	return c.Answer(http.StatusCreated, pauseView(row))
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
	pauseID, err := c.ID(id.Pause, "pause_id")
	if err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	row, err := accounts.ResumeDispatch(c.Ctx(), a.DB, pauseID, reason, c.Author())
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, pauseView(row))
}

func pauseView(p sql.DispatchPause) Pause {
	v := Pause{ID: id.Pause.Format(p.ID), Scope: PauseScope(p.Scope), Reason: p.Reason, CreatedAt: Time(p.CreatedAt)}
	var tenant, endpoint, host *string
	if p.EndpointID != nil {
		text := id.Endpoint.Format(*p.EndpointID)
		endpoint = &text
	}
	if p.TenantID != nil {
		text := id.Tenant.Format(*p.TenantID)
		tenant = &text
	}
	if p.Host != "" {
		host = &p.Host
	}
	v.TenantID, v.Host, v.EndpointID = orNull(tenant), orNull(host), orNull(endpoint)
	return v
}
