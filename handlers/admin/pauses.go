package admin

import (
	"net/http"
	"slices"
	"strings"

	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/reason"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
	"posthorn/views/layout"
)

const pausesPath = Root + "/pauses"

// withPauses has every page of the console say what is paused. What can't be read is not said: a page must not fail for it.
func (a *admin) withPauses(next handlers.Handler) handlers.Handler {
	return func(c *handlers.Call) error {
		_ = a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
			rows, err := q.ListPauses(c.Ctx())
			if len(rows) > 0 {
				c.Warn(layout.Warning{Title: pausedTitle(rows), Text: rows[0].Reason, Href: pausesPath, Label: "Pauses"})
			}
			return err
		})
		return next(c)
	}
}

func pausedTitle(rows []sql.ListPausesRow) string {
	if rows[0].Scope == string(pause.Platform) {
		return "Dispatch is paused: nothing is sent to anybody."
	}
	if len(rows) == 1 {
		return "Dispatch is paused for the " + rows[0].Scope + " " + pauseOf(rows[0]) + "."
	}
	return components.Many(int64(len(rows)), "pause", "pauses") + " of dispatch are on."
}

// pauseOf is what a pause concerns, as people know it.
func pauseOf(r sql.ListPausesRow) string {
	switch pause.Scope(r.Scope) {
	case pause.Tenant:
		return r.TenantName
	case pause.Host:
		return r.Host
	case pause.Endpoint:
		return egress.Mask(r.URL)
	}
	return "everything"
}

// pausesView is the list, and the form as the address fills it in: other pages lead here with what they show.
func (a *admin) pausesView(c *handlers.Call, scope, of string) (v console.PausesView, err error) {
	v = console.PausesView{
		Root: pausesPath, Scope: scope,
		Of: components.FieldProps{
			Name: "of", Label: "Which", Value: of, Mono: true, MaxLength: 300, Required: true, Complete: "off", Attrs: map[string]any{"list": "known-pausable"},
			Hint: "Choose a tenant or a host from the list, or give the id of an endpoint. To pause everything, type " + pauseAll + ".",
		},
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "Kept in the audit log. What concerns one tenant stands in its own log too."},
	}
	var rows []sql.ListPausesRow
	var names map[string]string
	err = a.DB.Console(c.Ctx(), func(q *sql.Queries) (err error) {
		if names, err = operatorNames(c, q); err != nil {
			return err
		}
		if v.Known, err = pausable(c, q); err != nil {
			return err
		}
		rows, err = q.ListPauses(c.Ctx())
		return err
	})
	for _, r := range rows {
		line := console.PauseLine{ID: id.Pause.Format(r.ID), Scope: r.Scope, Of: pauseOf(r), Reason: r.Reason, By: doer(r.ActorKind, r.ActorID, names), Since: r.CreatedAt}
		if r.TenantID != nil {
			line.TenantPath, line.Tenant = tenantPath(*r.TenantID), r.TenantName
		}
		v.Pauses = append(v.Pauses, line)
	}
	return v, err
}

func (a *admin) listPauses(c *handlers.Call) error {
	v, err := a.pausesView(c, word(c, "scope", "tenant", "host", "endpoint"), c.Query("of"))
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Pauses", "pauses")
	return c.Render(http.StatusOK, console.Pauses(v))
}

// pauseDispatch pauses what the form names. Of two operators who pause the same one does, and both see the pause.
func (a *admin) pauseDispatch(c *handlers.Call) error {
	w, err := readWish(c, 1)
	if err != nil {
		return err
	}
	what, wrong := readPause(w.Get("scope"), strings.TrimSpace(w.Get("of")))
	var row sql.DispatchPause
	made := false
	if wrong == nil && w.unsaid == nil {
		row, made, err = accounts.PauseDispatch(c.Ctx(), a.DB, what, w.why, c.Author())
		if fault.Is(err, fault.ErrNotFound.Code) {
			err, wrong = nil, fault.InvalidField("of", "out_of_range", "There is no such "+string(what.Scope)+" any more.")
		}
		if err != nil {
			return err
		}
	}
	if wrong != nil || w.unsaid != nil {
		v, err := a.pausesView(c, w.Get("scope"), w.Get("of"))
		if err != nil {
			return err
		}
		v.Reason.Value, v.Reason.Error, v.Of.Error = w.Get("reason"), handlers.WrongFields(w.unsaid)["reason"], handlers.WrongFields(wrong)["of"]
		v.Shell = c.Shell("Pauses", "pauses")
		return c.Render(http.StatusBadRequest, console.Pauses(v))
	}
	if made {
		c.Flash("Dispatch is paused. Requests under way end as they will.")
	} else {
		c.Flash("It was paused already, by " + strings.TrimSpace(row.ActorKind+" "+row.ActorID) + ": " + row.Reason)
	}
	return c.Redirect(pausesPath)
}

// pauseAll is typed by who pauses the whole platform.
const pauseAll = "everything"

// pausable are what the form proposes: tenants by their names, and the hosts of endpoints.
func pausable(c *handlers.Call, q *sql.Queries) (known []components.Option, err error) {
	tenants, err := q.ConsoleTenants(c.Ctx(), sql.ConsoleTenantsParams{Before: id.Last, Most: proposed})
	if err != nil {
		return nil, err
	}
	for _, t := range tenants {
		known = append(known, components.Option{Value: id.Tenant.Format(t.ID), Label: t.Name})
	}
	hosts, err := q.ConsoleHosts(c.Ctx(), sql.ConsoleHostsParams{Most: proposed})
	for _, h := range hosts {
		known = append(known, components.Option{Value: h.Host, Label: "host"})
	}
	return known, err
}

// proposed bounds how many tenants and hosts the form proposes.
const proposed = 200

// readPause reads what is to be paused.
func readPause(scope, of string) (p pause.Pause, err error) {
	p.Scope = pause.Scope(scope)
	switch p.Scope {
	case pause.Platform:
		if of != pauseAll {
			return p, fault.InvalidField("of", "out_of_range", "This stops the deliveries of all tenants. Type "+pauseAll+" to confirm, or choose what it is that you name.")
		}
		return p, nil
	case pause.Tenant:
		p.Tenant, err = id.Tenant.Parse(of)
	case pause.Endpoint:
		p.Endpoint, err = id.Endpoint.Parse(of)
	case pause.Host:
		p.Host, err = pause.ReadHost("of", of)
		return p, err
	default:
		return p, fault.InvalidField("of", "out_of_range", "Choose what is to be paused.")
	}
	if err != nil {
		return p, fault.InvalidField("of", "out_of_range", "Give the id of the "+scope+", as its page shows it.")
	}
	return p, nil
}

func (a *admin) resumeDispatch(c *handlers.Call) error {
	u, err := c.ID(id.Pause, "pause_id")
	if err != nil {
		return accounts.ErrPauseEnded
	}
	w, err := readWish(c, 0)
	if err != nil {
		return err
	}
	if w.unsaid != nil {
		return a.refuseResume(c, u, w)
	}
	if _, err = accounts.ResumeDispatch(c.Ctx(), a.DB, u, w.why, c.Author()); err != nil {
		if fault.Is(err, fault.ErrNotFound.Code) {
			return pauseEnded(c)
		}
		return err
	}
	c.Flash("The pause has ended. What waited goes on at the pace of its endpoints.")
	return c.Redirect(pausesPath)
}

func pauseEnded(c *handlers.Call) error {
	c.Flash("This pause has ended already.")
	return c.Redirect(pausesPath)
}

// refuseResume shows the pauses with what is wrong with the reason why one was to end.
func (a *admin) refuseResume(c *handlers.Call, pause id.UUID, w wish) error {
	v, err := a.pausesView(c, "", "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Pauses, func(l console.PauseLine) bool { return l.ID == id.Pause.Format(pause) })
	if i < 0 {
		return pauseEnded(c)
	}
	v.Pauses[i].Said = components.Said{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.unsaid)["reason"]}
	v.Shell = c.Shell("Pauses", "pauses")
	return c.Render(http.StatusBadRequest, console.Pauses(v))
}
