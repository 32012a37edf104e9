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

// What keeps an operator from a tenant's dashboard, or from changing it.
var (
	errReadOnly = fault.New(fault.Forbidden, "view_as_read_only", "You look at this tenant read-only. To change something here, ask for it in the banner above, with a reason that the tenant sees.")
	errViewOver = fault.New(fault.Forbidden, "view_as_over", "You do not look at this tenant any more: the time is over, or you ended it. Begin again in the console.")
)

// admitViewing lets in an operator whose session looks at the very tenant that the path names. What they are about to see is in
// the tenant's audit log before the handler runs; where it can't be entered, nothing is shown.
func (k *Kit) admitViewing(c *Call) (bool, error) {
	row, err := c.session(account.Operator)
	if err != nil || row == nil || row.Pending {
		return false, err
	}
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return false, nil // as unknown as to everybody
	}
	by := db.Author{Kind: "operator", ID: id.Operator.Format(*row.OperatorID), Name: row.Email, Address: c.Actor.Address}
	view, err := accounts.SeePage(c.Ctx(), k.sessions.db, accounts.SeenPage{
		Session: row.ID, Tenant: tenant, Path: shortenTo(maxSeen, within(c.Request.URL.Path)), Query: shortenTo(maxSeen, c.Request.URL.RawQuery),
		Acts: c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead, Part: c.Fragment(),
	}, by)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v := view.OperatorView
	c.Actor.Session, c.Actor.Operator = sessionOf(row), personOf(row)
	c.Actor.Tenant, c.Actor.TenantName, c.Actor.Role = tenant, view.TenantName, access.Admin
	c.Actor.Viewing = &Viewing{Until: v.ExpiresAt, Reason: v.Reason, Acting: v.Acting}
	c.Actor.Suspended = view.TenantState != "active"
	if err := k.touch(c, row); err != nil {
		return false, err
	}
	if !v.Acting {
		c.ctx = db.ReadOnly(c.ctx)
	}
	return true, nil
}

// maxSeen bounds what the audit log keeps of an address, in bytes.
const maxSeen = 300

// within is a page's path below its tenant's.
func within(path string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/t/"), "/")
	return "/" + rest
}

// strangerIn refuses who is not signed in as a member. An operator hears why the dashboard is closed to them.
func (k *Kit) strangerIn(c *Call, inTenant bool) error {
	if row, err := c.session(account.Operator); err != nil || !inTenant || row == nil || row.Pending {
		if err != nil {
			return err
		}
		return errSignIn
	}
	return errViewOver
}
