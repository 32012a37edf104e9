package auth

import (
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// newTenantPath is where a person with an account creates another tenant.
const newTenantPath = "/tenants/new"

// newTenantLink is newTenantPath with a name filled in.
func newTenantLink(name string) string {
	return newTenantPath + "?" + url.Values{"name": {name}}.Encode()
}

func newTenantForm(c *handlers.Call, name string) pages.Form {
	return pages.Form{
		Shell:  c.Shell("Create tenant", ""),
		Title:  "Create tenant",
		Text:   "A tenant is your organization: its endpoints, events, and members. You become its owner.",
		Action: newTenantPath,
		Submit: "Create tenant",
		Fields: []components.FieldProps{
			{Name: "name", Label: "Name of your organization", Complete: "organization", Value: name, Required: true, MaxLength: account.MaxName, Focus: true},
		},
		Links: []pages.Link{{Label: "Your tenants", Href: "/tenants"}},
	}
}

func (a *auth) showNewTenant(c *handlers.Call) error {
	if !a.signupIsOpen(c) {
		return errNoSignup
	}
	return show(c, newTenantForm(c, c.Query("name")))
}

// createTenant creates a tenant for the signed-in person. Their address is verified, so no mail is needed.
func (a *auth) createTenant(c *handlers.Call) error {
	if !a.signupIsOpen(c) {
		return errNoSignup
	}
	form, err := c.Form()
	if err != nil {
		return err
	}
	name, err := account.Name("name", form.Get("name"))
	if err != nil {
		return refuse(c, newTenantForm(c, form.Get("name")), err)
	}
	wait, p := 0, c.Actor.Person
	err = a.DB.Account(c.Ctx(), func(q *db.Tx) error {
		wait, err = accounts.Try(c.Ctx(), q, account.NewTenants, "tenant", p.ID.String())
		return err
	})
	if err != nil {
		return err
	}
	if wait > 0 {
		return refuse(c, newTenantForm(c, form.Get("name")), &fault.Error{
			Kind:       fault.Limited,
			Code:       handlers.ErrTooManyTries.Code,
			Detail:     "You've created too many tenants. Wait an hour, then try again.",
			RetryAfter: wait,
		})
	}
	tenant, err := accounts.CreateOwnTenant(c.Ctx(), a.DB, p.ID, name, c.Actor.Address)
	if err != nil {
		return err
	}
	return c.Done("/t/"+id.Tenant.Format(tenant)+"/", name+" created. You're its owner.")
}
