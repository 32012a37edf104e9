package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// viewForm starts a visit to a tenant's dashboard.
func viewForm() console.ViewForm {
	f := console.ViewForm{Reason: components.FieldProps{
		ID:        "view-reason",
		Name:      "reason",
		Label:     "Reason",
		Required:  true,
		MaxLength: words.MaxReason,
		Hint:      "The tenant sees this reason with each page that you open.",
	}}
	for _, life := range access.ViewLives() {
		f.Lives = append(f.Lives, components.Option{
			Value: strconv.Itoa(int(life.Minutes())),
			Label: fmt.Sprintf("%d minutes", int(life.Minutes())),
		})
	}
	return f
}

// viewLife is the selected duration of a visit.
func viewLife(text string) (time.Duration, error) {
	for _, life := range access.ViewLives() {
		if text == strconv.Itoa(int(life.Minutes())) {
			return life, nil
		}
	}
	return 0, fault.InvalidField("minutes", "out_of_range", fmt.Sprintf("Choose up to %d minutes.", int(access.MaxView.Minutes())))
}

// beginView lets the operator's session view a tenant's dashboard.
func (a *admin) beginView(c *handlers.Call) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	life, wrong := viewLife(w.Get("minutes"))
	if w.reasonErr != nil {
		wrong = w.reasonErr
	}
	if wrong != nil {
		return a.refuseTenant(c, wrong, func(v *console.TenantView, fields map[string]string) {
			v.View.Reason.Value, v.View.Reason.Error, v.View.Wrong = w.Get("reason"), fields["reason"], fields["minutes"]
		})
	}
	err = accounts.BeginView(c.Ctx(), a.DB, accounts.NewView{
		Session:  c.Actor.Session.ID,
		Operator: c.Actor.Operator.ID,
		Tenant:   w.tenant,
		Reason:   w.reason,
		Life:     life,
	}, c.Author())
	if err != nil {
		return gone(err)
	}
	return c.Redirect("/t/" + id.Tenant.Format(w.tenant) + "/")
}

// actInView allows changes in the current visit.
func (a *admin) actInView(c *handlers.Call) error {
	w, err := readAdminForm(c, 1)
	if err != nil {
		return err
	}
	tenantID, err := id.Tenant.Parse(w.Get("tenant"))
	if err != nil {
		return fault.ErrNotFound
	}
	if w.reasonErr != nil {
		return a.refuseAct(c, tenantID, w)
	}
	err = accounts.ActInView(c.Ctx(), a.DB, c.Actor.Session.ID, tenantID, w.reason, c.Author())
	if fault.Is(err, fault.ErrNotFound.Code) {
		return c.Done(tenantPath(tenantID), "Your view of this tenant has ended. Start again with a reason.")
	}
	if err != nil {
		return err
	}
	return c.Done("/t/"+id.Tenant.Format(tenantID)+"/", "You can make changes now. Each change is recorded in the tenant's audit log under your name.")
}

// refuseAct shows the form again with the reason's error.
func (a *admin) refuseAct(c *handlers.Call, tenant id.UUID, w adminForm) error {
	t, err := a.findTenant(c, tenant)
	if err != nil {
		return gone(err)
	}
	v := console.ActView{
		Tenant: t.Name,
		ID:     id.Tenant.Format(tenant),
		Reason: components.FieldProps{
			Name:      "reason",
			Label:     "Reason",
			Required:  true,
			MaxLength: words.MaxReason,
			Hint:      "The tenant sees this reason.",
			Value:     w.Get("reason"),
			Error:     handlers.WrongFields(w.reasonErr)["reason"],
			Focus:     true,
		},
	}
	v.Shell = c.Shell("Change something for "+t.Name, "tenants")
	return c.Render(http.StatusBadRequest, console.Act(v))
}

// endView ends the current visit.
func (a *admin) endView(c *handlers.Call) error {
	tenantID, err := accounts.EndView(c.Ctx(), a.DB, c.Actor.Session.ID, c.Author())
	if fault.Is(err, fault.ErrNotFound.Code) {
		return c.Done(Root+"/tenants", "You aren't viewing a tenant.")
	}
	if err != nil {
		return err
	}
	return c.Done(tenantPath(tenantID), "You've stopped viewing the tenant.")
}
