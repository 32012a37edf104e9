package handlers

import (
	"net/http"
	"slices"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// What keeps somebody from a page. Of the first two, a browser sees the page that mends it.
var (
	errSignIn = fault.New(fault.Unauthenticated, "sign_in_required", "Sign in to see this page.")
	errFresh  = fault.New(fault.Forbidden, "sign_in_again", "Confirm that it is you: sign in again, then repeat what you did.")
	// ErrRole refuses what a role does not allow.
	ErrRole = fault.New(fault.Forbidden, "role_missing", "Your role in this tenant does not allow this. Ask an owner or admin of the tenant.")
)

// admitPage finds whose the browser's session is, and what they are in the tenant that the path names. A tenant that they
// do not belong to is as unknown as one that does not exist.
func (k *Kit) admitPage(c *Call, a Access) error {
	if a.Operator {
		return k.admitOperator(c, a)
	}
	inTenant := c.Param(TenantParam) != ""
	if inTenant {
		for _, admit := range []func(*Call) (bool, error){k.admitViewing, k.admitPortal} {
			if admitted, err := admit(c); err != nil {
				return err
			} else if admitted {
				return k.authorise(c, a)
			}
		}
	}
	row, err := c.session(account.Person)
	if err != nil {
		return err
	}
	if row == nil || row.Pending {
		return k.strangerIn(c, inTenant)
	}
	c.Actor.Session, c.Actor.Person = sessionOf(row), personOf(row)
	if err := k.touch(c, row); err != nil {
		return err
	}
	if inTenant {
		if err := k.findMember(c); err != nil {
			return err
		}
	}
	return k.authorise(c, a)
}

func (k *Kit) findMember(c *Call) error {
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return err
	}
	return k.sessions.db.Account(c.Ctx(), func(q *sql.Queries) error {
		if c.tenants, err = q.TenantsOf(c.Ctx(), c.Actor.Person.ID); err != nil {
			return err
		}
		at := slices.IndexFunc(c.tenants, func(t sql.TenantsOfRow) bool {
			return t.TenantID == tenant && t.TenantState != maintenance.TenantDeleted
		})
		if at < 0 {
			return fault.ErrNotFound
		}
		m := c.tenants[at]
		c.Actor.Tenant, c.Actor.Member, c.Actor.Role, c.Actor.TenantName = tenant, m.MemberID, access.Role(m.Role), m.TenantName
		c.Actor.Suspended = m.TenantState != "active"
		return q.SetLastTenant(c.Ctx(), sql.SetLastTenantParams{PersonID: c.Actor.Person.ID, TenantID: &tenant})
	})
}

// admitPortal lets in who came by a link into the very tenant that the path names.
func (k *Kit) admitPortal(c *Call) (bool, error) {
	row, err := c.session(account.Portal)
	if err != nil || row == nil {
		return false, err
	}
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return false, nil // as unknown as to everybody
	}
	var link sql.FindPortalRow
	err = k.sessions.db.Account(c.Ctx(), func(q *sql.Queries) error {
		link, err = q.FindPortal(c.Ctx(), *row.LinkID)
		return err
	})
	if fault.Is(err, fault.ErrNotFound.Code) || err == nil && (link.TenantID != tenant || link.TenantState == maintenance.TenantDeleted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.Actor.Session, c.Actor.Tenant, c.Actor.Role, c.Actor.TenantName = sessionOf(row), tenant, access.Role(link.Role), link.TenantName
	c.Actor.Portal = &Portal{ID: *row.LinkID, Brand: link.Brand, Accent: link.Accent, ReturnURL: link.ReturnURL, AllowSecrets: link.AllowSecrets}
	c.Actor.Suspended = link.TenantState != "active"
	return true, k.touch(c, row)
}

func (k *Kit) admitOperator(c *Call, a Access) error {
	row, err := c.session(account.Operator)
	if err != nil {
		return err
	}
	if row == nil || row.Pending {
		return errSignIn
	}
	c.Actor.Session, c.Actor.Operator = sessionOf(row), personOf(row)
	if a.Fresh && !c.Actor.Session.Fresh {
		return errFresh
	}
	return k.touch(c, row)
}

// authorise holds the actor against what the route asks for. An operator who looks at a dashboard is shown every page, and
// changes nothing unless they asked to.
func (k *Kit) authorise(c *Call, a Access) error {
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	viewing := c.Actor.Viewing
	switch {
	case viewing != nil && !viewing.Acting && !reads:
		return errReadOnly
	case a.Action != "" && !c.Actor.mayUnlessSuspended(a.Action) && (viewing == nil || !reads):
		return ErrRole
	case c.Actor.Suspended && !reads && !a.Own:
		return errSuspended
	case a.Fresh && !c.Actor.Session.Fresh:
		return errFresh
	}
	return nil
}

// touch writes down, once a minute, that a session is used.
func (k *Kit) touch(c *Call, row *sql.FindSessionRow) error {
	if row.Now.Sub(row.SeenAt) < lastSeenEvery {
		return nil
	}
	return k.sessions.db.Account(c.Ctx(), func(q *sql.Queries) error {
		return q.TouchSession(c.Ctx(), sql.TouchSessionParams{ID: row.ID, Address: c.Actor.Address})
	})
}
