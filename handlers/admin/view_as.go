package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/reason"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// viewForm asks for a look at a tenant's dashboard.
func viewForm() console.ViewForm {
	f := console.ViewForm{Reason: components.FieldProps{
		ID: "view-reason", Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "The tenant sees it, with each page that you open.",
	}}
	for _, life := range access.ViewLives() {
		f.Lives = append(f.Lives, components.Option{Value: strconv.Itoa(int(life.Minutes())), Label: fmt.Sprintf("%d minutes", int(life.Minutes()))})
	}
	return f
}

// viewLife is the time that was chosen among those there are.
func viewLife(text string) (time.Duration, error) {
	for _, life := range access.ViewLives() {
		if text == strconv.Itoa(int(life.Minutes())) {
			return life, nil
		}
	}
	return 0, fault.InvalidField("minutes", "out_of_range", fmt.Sprintf("Look for %d minutes at most, then ask again.", int(access.ViewMost.Minutes())))
}

// beginView lets the operator's session look at a tenant's dashboard.
func (a *admin) beginView(c *handlers.Call) error {
	w, err := ofTenant(c)
	if err != nil {
		return err
	}
	life, wrong := viewLife(w.Get("minutes"))
	if w.unsaid != nil {
		wrong = w.unsaid
	}
	if wrong != nil {
		return a.refuseTenant(c, wrong, func(v *console.TenantView, fields map[string]string) {
			v.View.Reason.Value, v.View.Reason.Error, v.View.Wrong = w.Get("reason"), fields["reason"], fields["minutes"]
		})
	}
	_, err = accounts.BeginView(c.Ctx(), a.DB, accounts.NewView{
		Session: c.Actor.Session.ID, Operator: c.Actor.Operator.ID, Tenant: w.of, Reason: w.why, Life: life,
	}, c.Author())
	if err != nil {
		return gone(err)
	}
	return c.Redirect("/t/" + id.Tenant.Format(w.of) + "/")
}

// actInView lets the look that goes on change things too.
func (a *admin) actInView(c *handlers.Call) error {
	w, err := readWish(c, 1)
	if err != nil {
		return err
	}
	u, err := id.Tenant.Parse(w.Get("tenant"))
	if err != nil {
		return fault.ErrNotFound
	}
	if w.unsaid != nil {
		return a.refuseAct(c, u, w)
	}
	err = accounts.ActInView(c.Ctx(), a.DB, c.Actor.Session.ID, u, w.why, c.Author())
	if fault.Is(err, fault.ErrNotFound.Code) {
		c.Flash("You do not look at this tenant any more. Begin again, with a reason.")
		return c.Redirect(tenantPath(u))
	}
	if err != nil {
		return err
	}
	c.Flash("You may change things now. Each change is in the tenant's audit log as yours.")
	return c.Redirect("/t/" + id.Tenant.Format(u) + "/")
}

// refuseAct asks again why something is to be changed, with what was typed.
func (a *admin) refuseAct(c *handlers.Call, tenant id.UUID, w wish) error {
	var row sql.Tenant
	err := a.DB.Console(c.Ctx(), func(q *sql.Queries) (err error) {
		row, err = q.GetTenant(c.Ctx(), tenant)
		return err
	})
	if err != nil {
		return gone(err)
	}
	v := console.ActView{Tenant: row.Name, ID: id.Tenant.Format(tenant), Reason: components.FieldProps{
		Name: "reason", Label: "Reason", Required: true, MaxLength: reason.Max, Hint: "The tenant sees it.", Value: w.Get("reason"), Error: handlers.WrongFields(w.unsaid)["reason"], Focus: true,
	}}
	v.Shell = c.Shell("Change something for "+row.Name, "tenants")
	return c.Render(http.StatusBadRequest, console.Act(v))
}

// endView ends the look that goes on.
func (a *admin) endView(c *handlers.Call) error {
	u, err := accounts.EndView(c.Ctx(), a.DB, c.Actor.Session.ID, c.Author())
	if fault.Is(err, fault.ErrNotFound.Code) {
		c.Flash("You look at no tenant.")
		return c.Redirect(Root + "/tenants")
	}
	if err != nil {
		return err
	}
	c.Flash("You look at the tenant no more.")
	return c.Redirect(tenantPath(u))
}
