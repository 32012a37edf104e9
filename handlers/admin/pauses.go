package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/pause"
	"posthorn/domain/show"
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
			pauses, err := accounts.ListPauses(c.Ctx(), q)
			if len(pauses) > 0 {
				c.Warn(layout.Warning{Title: pausedTitle(pauses), Text: pauses[0].Reason, Href: pausesPath, Label: "Pauses"})
			}
			return err
		})
		return next(c)
	}
}

func pausedTitle(pauses []show.Pause) string {
	first := pauses[0]
	if first.Scope == pause.Platform {
		return "All deliveries are paused. Nothing is sent."
	}
	if len(pauses) == 1 {
		return "Deliveries are paused for the " + string(first.Scope) + " " + first.Of() + "."
	}
	return components.Many(int64(len(pauses)), "pause", "pauses") + " of deliveries are active."
}

// pausesView is the list, with the form filled in from the address: other pages link here with a pause of their object.
func (a *admin) pausesView(c *handlers.Call, scope, of string) (v console.PausesView, err error) {
	v = console.PausesView{
		Root:  pausesPath,
		Scope: scope,
		Of: components.FieldProps{
			Name:      "of",
			Label:     "Which",
			Value:     of,
			Mono:      true,
			MaxLength: 300,
			Required:  true,
			Complete:  "off",
			Attrs:     map[string]any{"list": "known-pausable"},
			Hint:      "Select a tenant or a host from the list, or enter an endpoint id. To pause everything, type the word " + pauseAll + ".",
		},
		Reason: components.FieldProps{Name: "reason", Label: "Reason", Required: true, MaxLength: words.MaxReason, Hint: "Recorded in the audit log, and in the tenant's own log if it concerns one tenant."},
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if v.Names, err = accounts.OperatorNames(c.Ctx(), q); err != nil {
			return err
		}
		if v.Known, err = pausable(c, q); err != nil {
			return err
		}
		v.Pauses, err = accounts.ListPauses(c.Ctx(), q)
		return err
	})
	return v, err
}

func (a *admin) listPauses(c *handlers.Call) error {
	scopes := []string{"", string(pause.Tenant), string(pause.Host), string(pause.Endpoint)}
	p, err := c.Page(handlers.List{
		Name:    "pauses",
		Rows:    pageRows,
		Choices: []handlers.Choice{{Name: "scope", Words: scopes}},
		Own:     []string{"of"},
	})
	if err != nil {
		return err
	}
	v, err := a.pausesView(c, p.Chosen["scope"], p.Given.Get("of"))
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
	var p show.Pause
	made := false
	if wrong == nil && w.reasonErr == nil {
		p, made, err = accounts.PauseDispatch(c.Ctx(), a.DB, what, w.reason, c.Author())
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
		by, err := a.whoPaused(c, p)
		if err != nil {
			return err
		}
		c.Flash("It was already paused by " + by + ": " + p.Reason)
	}
	return c.Redirect(pausesPath)
}

// whoPaused names who made a pause, with the kind.
func (a *admin) whoPaused(c *handlers.Call, p show.Pause) (by string, err error) {
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		names, err := accounts.OperatorNames(c.Ctx(), q)
		by = strings.TrimSpace(p.ActorKind + " " + cmp.Or(names[p.ActorID], p.ActorID))
		return err
	})
	return by, err
}

// pauseAll is the word that an operator types to pause the whole platform.
const pauseAll = "everything"

// pausable are the suggestions of the form: tenants by name, and the hosts of endpoints.
func pausable(c *handlers.Call, q *db.Tx) (known []components.Option, err error) {
	tenants, _, err := accounts.ListTenants(c.Ctx(), q, show.Range{Limit: proposed})
	if err != nil {
		return nil, err
	}
	for _, t := range tenants.Rows {
		known = append(known, components.Option{Value: id.Tenant.Format(t.ID), Label: t.Name})
	}
	hosts, err := endpoints.Hosts(c.Ctx(), q, "", false, proposed)
	for _, h := range hosts {
		known = append(known, components.Option{Value: h.Name, Label: "host"})
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
	pauseID := c.PathID("pause_id")
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
	return c.Done(pausesPath, "The pause has ended. Waiting deliveries are sent at their endpoints' own rates.")
}

func pauseEnded(c *handlers.Call) error {
	return c.Done(pausesPath, "This pause has already ended.")
}

// refuseResume shows the pauses with what is wrong with the reason for resuming.
func (a *admin) refuseResume(c *handlers.Call, pause id.UUID, w adminForm) error {
	v, err := a.pausesView(c, "", "")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(v.Pauses, func(p show.Pause) bool { return p.ID == pause }) {
		return pauseEnded(c)
	}
	v.Rejected, v.ReasonInput = pause, components.ReasonInput{Reason: w.Get("reason"), Wrong: handlers.WrongFields(w.reasonErr)["reason"]}
	v.Shell = c.Shell("Pauses", "pauses")
	return c.Render(http.StatusBadRequest, console.Pauses(v))
}
