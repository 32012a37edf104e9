package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
	"posthorn/views/layout"
)

const pausesPath = Root + "/pauses"

// withPauses makes every page of the console show what is paused. A failed read shows nothing, so that no page fails
// because of it.
func (a *admin) withPauses(next handlers.Handler) handlers.Handler {
	return func(c *handlers.Call) error {
		_ = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
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
		return "All deliveries are paused. Nothing is sent."
	}
	if len(rows) == 1 {
		return "Deliveries are paused for the " + rows[0].Scope + " " + pauseOf(rows[0]) + "."
	}
	return components.Many(int64(len(rows)), "pause", "pauses") + " of deliveries are active."
}

// pauseOf describes what a pause concerns.
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

// pausesView is the list, with the form filled in from the address: other pages link here with a pause of their object.
func (a *admin) pausesView(c *handlers.Call, scope, of string) (v console.PausesView, err error) {
	v = console.PausesView{
		Root: pausesPath, Scope: scope,
		Of: components.FieldProps{
			Name: "of", Label: "Which", Value: of, Mono: true, MaxLength: 300, Required: true, Complete: "off",
			Attrs: map[string]any{"list": "known-pausable"},
			Hint:  "Select a tenant or a host from the list, or enter an endpoint id. To pause everything, enter " + pauseAll + ".",
		},
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log, and in the tenant's own log if it concerns one tenant."},
	}
	var rows []sql.ListPausesRow
	var names map[string]string
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
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
		line := console.PauseLine{
			ID: id.Pause.Format(r.ID), Scope: r.Scope, Of: pauseOf(r), Reason: r.Reason,
			By: doer(r.ActorKind, r.ActorID, names), Since: r.CreatedAt,
		}
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

// pauseDispatch pauses what the form names. If two operators pause the same thing, one does, and both see the pause.
func (a *admin) pauseDispatch(c *handlers.Call) error {
	w, err := readAdminForm(c, 1)
	if err != nil {
		return err
	}
	what, wrong := readPause(w.Get("scope"), strings.TrimSpace(w.Get("of")))
	var row sql.DispatchPause
	made := false
	if wrong == nil && w.reasonErr == nil {
		row, made, err = accounts.PauseDispatch(c.Ctx(), a.DB, what, w.reason, c.Author())
		if fault.Is(err, fault.ErrNotFound.Code) {
			err, wrong = nil, fault.InvalidField("of", "out_of_range", "There is no such "+string(what.Scope)+" any more.")
		}
		if err != nil {
			return err
		}
	}
	if wrong != nil || w.reasonErr != nil {
		v, err := a.pausesView(c, w.Get("scope"), w.Get("of"))
		if err != nil {
			return err
		}
		v.Reason.Value, v.Reason.Error, v.Of.Error = w.Get("reason"), handlers.WrongFields(w.reasonErr)["reason"],
			handlers.WrongFields(wrong)["of"]
		v.Shell = c.Shell("Pauses", "pauses")
		return c.Render(http.StatusBadRequest, console.Pauses(v))
	}
	if made {
		c.Flash("Deliveries are paused. In-flight requests finish.")
	} else {
		by, err := a.whoPaused(c, row)
		if err != nil {
			return err
		}
		c.Flash("It was already paused by " + by + ": " + row.Reason)
	}
	return c.Redirect(pausesPath)
}

// whoPaused names who made a pause, with the kind.
func (a *admin) whoPaused(c *handlers.Call, row sql.DispatchPause) (by string, err error) {
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		names, err := operatorNames(c, q)
		by = strings.TrimSpace(row.ActorKind + " " + cmp.Or(names[row.ActorID], row.ActorID))
		return err
	})
	return by, err
}

// pauseAll is the word that an operator types to pause the whole platform.
const pauseAll = "everything"

// pausable are the suggestions of the form: tenants by name, and the hosts of endpoints.
func pausable(c *handlers.Call, q *db.Tx) (known []components.Option, err error) {
	tenants, err := q.TenantNames(c.Ctx(), proposed)
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

// proposed bounds how many tenants and hosts the form suggests.
const proposed = 200

// readPause reads what to pause.
func readPause(scope, of string) (p pause.Pause, err error) {
	p.Scope = pause.Scope(scope)
	switch p.Scope {
	case pause.Platform:
		if of != pauseAll {
			return p, fault.InvalidField("of", "out_of_range", "This stops the deliveries of all tenants. Enter "+pauseAll+" to confirm, or select another scope.")
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
		return p, fault.InvalidField("of", "out_of_range", "Select what to pause.")
	}
	if err != nil {
		return p, fault.InvalidField("of", "out_of_range", "Enter the id of the "+scope+", as shown on its page.")
	}
	return p, nil
}

func (a *admin) resumeDispatch(c *handlers.Call) error {
	pauseID, err := c.ID(id.Pause, "pause_id")
	if err != nil {
		return accounts.ErrPauseEnded
	}
	w, err := readAdminForm(c, 0)
	if err != nil {
		return err
	}
	if w.reasonErr != nil {
		return a.refuseResume(c, pauseID, w)
	}
	if _, err = accounts.ResumeDispatch(c.Ctx(), a.DB, pauseID, w.reason, c.Author()); err != nil {
		if fault.Is(err, fault.ErrNotFound.Code) {
			return pauseEnded(c)
		}
		return err
	}
	c.Flash("The pause has ended. Waiting deliveries are sent at their endpoints' own rates.")
	return c.Redirect(pausesPath)
}

func pauseEnded(c *handlers.Call) error {
	c.Flash("This pause has already ended.")
	return c.Redirect(pausesPath)
}

// refuseResume shows the pauses with what is wrong with the reason for resuming.
func (a *admin) refuseResume(c *handlers.Call, pause id.UUID, w adminForm) error {
	v, err := a.pausesView(c, "", "")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Pauses, func(l console.PauseLine) bool { return l.ID == id.Pause.Format(pause) })
	if i < 0 {
		return pauseEnded(c)
	}
	v.Pauses[i].ReasonInput = components.ReasonInput{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.reasonErr)["reason"]}
	v.Shell = c.Shell("Pauses", "pauses")
	return c.Render(http.StatusBadRequest, console.Pauses(v))
}
