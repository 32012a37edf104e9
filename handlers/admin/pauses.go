package admin

import (
	"net/http"
	"strings"

	"posthorn/db"
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
		_ = a.DB.Console(c.Ctx(), func(q *db.Queries) error {
			rows, err := q.ListPauses(c.Ctx())
			if len(rows) > 0 {
				c.Warn(layout.Warning{Title: pausedTitle(rows), Text: rows[0].Reason, Href: pausesPath, Label: "Pauses"})
			}
			return err
		})
		return next(c)
	}
}

func pausedTitle(rows []db.ListPausesRow) string {
	if rows[0].Scope == string(pause.Platform) {
		return "Dispatch is paused: nothing is sent to anybody."
	}
	if len(rows) == 1 {
		return "Dispatch is paused for the " + rows[0].Scope + " " + pauseOf(rows[0]) + "."
	}
	return components.Many(int64(len(rows)), "pause", "pauses") + " of dispatch are on."
}

// pauseOf is what a pause concerns, as people know it.
func pauseOf(r db.ListPausesRow) string {
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
			Name: "of", Label: "Which", Value: of, Mono: true, MaxLength: 300, Optional: true,
			Hint: "The id of the tenant or endpoint, or the host as in its URLs. Nothing for the whole platform.",
		},
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "Kept in the audit log. What concerns one tenant stands in its own log too."},
	}
	var rows []db.ListPausesRow
	err = a.DB.Console(c.Ctx(), func(q *db.Queries) (err error) {
		rows, err = q.ListPauses(c.Ctx())
		return err
	})
	for _, r := range rows {
		line := console.PauseLine{ID: id.Pause.Format(r.ID), Scope: r.Scope, Of: pauseOf(r), Reason: r.Reason, By: strings.TrimSpace(r.ActorKind + " " + r.ActorID), Since: r.CreatedAt}
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
	form, err := c.Form()
	if err != nil {
		return err
	}
	what, wrong := readPause(form.Get("scope"), strings.TrimSpace(form.Get("of")))
	why, unsaid := readReason(form.Get("reason"))
	var row db.DispatchPause
	made := false
	if wrong == nil && unsaid == nil {
		row, made, err = a.DB.PauseDispatch(c.Ctx(), what, why, c.Author())
		if fault.Is(err, fault.ErrNotFound.Code) {
			err, wrong = nil, fault.InvalidField("of", "out_of_range", "There is no such "+string(what.Scope)+" any more.")
		}
		if err != nil {
			return err
		}
	}
	if wrong != nil || unsaid != nil {
		v, err := a.pausesView(c, form.Get("scope"), form.Get("of"))
		if err != nil {
			return err
		}
		v.Reason.Value, v.Reason.Error, v.Of.Error = form.Get("reason"), handlers.WrongFields(unsaid)["reason"], handlers.WrongFields(wrong)["of"]
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

// readPause reads what is to be paused.
func readPause(scope, of string) (p pause.Pause, err error) {
	p.Scope = pause.Scope(scope)
	switch p.Scope {
	case pause.Platform:
		if of != "" {
			return p, fault.InvalidField("of", "out_of_range", "The whole platform has no name: leave this empty, or choose what it is that you name.")
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
		return db.ErrPauseEnded
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	why := strings.TrimSpace(form.Get("reason"))
	if wrong := reason.Faults(why, 0); len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	if _, err = a.DB.ResumeDispatch(c.Ctx(), u, why, c.Author()); err != nil {
		if fault.Is(err, fault.ErrNotFound.Code) {
			c.Flash("This pause has ended already.")
			return c.Redirect(pausesPath)
		}
		return err
	}
	c.Flash("The pause has ended. What waited goes on at the pace of its endpoints.")
	return c.Redirect(pausesPath)
}
