package handlers

import (
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Reasons why an operator can't open or change a tenant's dashboard.
var (
	errReadOnly = fault.New(fault.Forbidden, "view_as_read_only", "You're viewing this tenant read-only. To make changes, select Make changes in the banner above and give a reason, which the tenant sees.")
	errViewOver = fault.New(fault.Forbidden, "view_as_over", "Your view of this tenant has ended. Start again in the console.")
)

// admitViewing admits an operator whose session views the tenant that the path names. The visit is in the tenant's
// audit log before the handler runs. If it can't be written, nothing is shown.
func (k *Kit) admitViewing(c *Call) (bool, error) {
	session, err := c.SignedInAs(account.Operator)
	if err != nil || session == nil || session.Pending {
		return false, err
	}
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return false, nil // looks like a tenant that does not exist
	}
	by := db.Author{Kind: "operator", ID: id.Operator.Format(session.User.ID), Name: session.User.Email, Address: c.Actor.Address}
	view, err := accounts.SeePage(c.Ctx(), k.sessions.db, accounts.SeenPage{
		Session: session.ID,
		Tenant:  tenant,
		Path:    shortenTo(maxSeen, within(c.Request.URL.Path)),
		Query:   shortenTo(maxSeen, c.Request.URL.RawQuery),
		Acts:    c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead,
		Part:    c.Fragment(),
	}, by)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.Actor.Session, c.Actor.Operator = session, session.User
	c.Actor.Tenant, c.Actor.TenantName, c.Actor.Role = tenant, view.TenantName, access.Admin
	c.Actor.Viewing = &view
	c.Actor.Suspended = view.TenantState != account.TenantActive
	if err := k.touch(c, session); err != nil {
		return false, err
	}
	if !view.Acting {
		c.ctx = db.ReadOnly(c.ctx)
	}
	return true, nil
}

// maxSeen bounds how many bytes of an address the audit log keeps.
const maxSeen = 300

// within is the path of a page below its tenant's.
func within(path string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/t/"), "/")
	return "/" + rest
}

// rejectNotMember rejects somebody who is not signed in as a member. Operators learn why the dashboard is closed to
// them.
func (k *Kit) rejectNotMember(c *Call, inTenant bool) error {
	if session, err := c.SignedInAs(account.Operator); err != nil || !inTenant || session == nil || session.Pending {
		if err != nil {
			return err
		}
		return errSignIn
	}
	return errViewOver
}
