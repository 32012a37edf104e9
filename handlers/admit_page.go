package handlers

import (
	"net/http"

	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Reasons why somebody can't open a page. For the first two, a browser is redirected to the page that fixes it.
var (
	errSignIn = fault.New(fault.Unauthenticated, "sign_in_required", "Sign in to see this page.")
	errFresh  = fault.New(fault.Forbidden, "sign_in_again", "Confirm your identity: sign in again, then repeat the action.")
	// ErrRole rejects what a role does not allow.
	errAccountClosed = fault.New(fault.Forbidden, "sso_session", "You signed in with your organization's identity provider, which opens that tenant only. "+
		"To manage your account, sign out, and sign in with your password or a passkey. If you have no password, reset it first.")
	ErrRole = fault.New(fault.Forbidden, "role_missing", "Your role in this tenant doesn't allow this. Ask an owner or admin of the tenant.")
)

// admitPage finds the owner of the browser's session, and their role in the tenant that the path names. A tenant of
// others looks like one that does not exist.
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
	if inTenant && inFrame(c.Request) && !a.Framed {
		return errSignIn // nothing of a person's is shown in a frame
	}
	session, err := c.SignedInAs(account.Person)
	if err != nil {
		return err
	}
	if session == nil || session.Pending {
		return k.rejectNotMember(c, inTenant)
	}
	c.Actor.Session, c.Actor.Person = session, session.User
	if err := k.touch(c, session); err != nil {
		return err
	}
	if inTenant {
		if err := k.findMember(c); err != nil {
			return err
		}
	} else if c.Actor.Session.Only != nil && !a.Any {
		return errAccountClosed
	}
	return k.authorise(c, a)
}

func (k *Kit) findMember(c *Call) error {
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return err
	}
	all, m, err := accounts.EnterTenant(c.Ctx(), k.sessions.db, c.Actor.Person.ID, tenant, c.Actor.Session.Only)
	if c.tenants = all; err != nil {
		return err
	}
	c.Actor.Tenant, c.Actor.Member, c.Actor.Role, c.Actor.TenantName = tenant, m.Member, m.Role, m.Name
	c.Actor.Suspended = m.State != account.TenantActive
	return nil
}

// admitPortal admits a session of a portal link to the tenant of the link. A link that was revoked admits nobody.
func (k *Kit) admitPortal(c *Call) (bool, error) {
	session, err := c.SignedInAs(account.Portal)
	if err != nil || session == nil {
		return false, err
	}
	tenant, err := c.ID(id.Tenant, TenantParam)
	if err != nil {
		return false, nil // looks like a tenant that does not exist
	}
	link, err := accounts.FindPortal(c.Ctx(), k.sessions.db, *session.Link)
	if fault.Is(err, fault.ErrNotFound.Code) || err == nil && (link.Revoked || link.Tenant != tenant ||
		link.TenantState == account.TenantDeleted) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.Actor.Session, c.Actor.Portal = session, &link
	c.Actor.Tenant, c.Actor.Role, c.Actor.TenantName = tenant, link.Role, link.TenantName
	c.Actor.Suspended = link.TenantState != account.TenantActive
	return true, k.touch(c, session)
}

func (k *Kit) admitOperator(c *Call, a Access) error {
	session, err := c.SignedInAs(account.Operator)
	if err != nil {
		return err
	}
	if session == nil || session.Pending {
		return errSignIn
	}
	c.Actor.Session, c.Actor.Operator = session, session.User
	if a.Fresh && !c.Actor.Session.Fresh {
		return errFresh
	}
	return k.touch(c, session)
}

// authorise compares the actor with what the route requires. An operator who views a dashboard sees every page, and
// changes nothing unless they requested it.
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

// touch stores that a session is in use, at most once a minute.
func (k *Kit) touch(c *Call, session *account.Session) error {
	if session.Idle < lastSeenEvery {
		return nil
	}
	return accounts.TouchSession(c.Ctx(), k.sessions.db, session.ID, c.Actor.Address)
}
