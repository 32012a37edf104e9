package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/sso"
	"posthorn/handlers"
)

func (a *api) getTenantSSO(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	return a.showTenantSSO(c, tenantID)
}

// showTenantSSO responds with a tenant's connection as it is stored.
func (a *api) showTenantSSO(c *handlers.Call, tenant id.UUID) error {
	conn, _, err := accounts.FindSSO(c.Ctx(), a.DB, tenant)
	if err != nil {
		return err
	}
	var domains []show.Domain
	err = a.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) error {
		domains, err = accounts.ListDomains(c.Ctx(), q, tenant)
		return err
	})
	if err != nil {
		return err
	}
	out := SSO{
		Issuer:           conn.Issuer,
		ClientID:         conn.ClientID,
		RoleClaim:        conn.RoleClaim,
		Roles:            map[string]SSORole{},
		JoinMembers:      conn.Join,
		TrustEmail:       conn.TrustEmail,
		Required:         conn.Only,
		SessionSeconds:   int(conn.Session / time.Second),
		Domains:          []SSODomain{},
		ClientSecretHint: nullable.NewNullNullable[string](),
		DefaultRole:      nullable.NewNullNullable[SSORole](),
		BreakGlass:       nullable.NewNullNullable[string](),
	}
	for value, role := range conn.Roles {
		out.Roles[value] = SSORole(role)
	}
	if conn.Default != "" {
		out.DefaultRole.Set(SSORole(conn.Default))
	}
	for _, d := range domains {
		out.Domains = append(out.Domains, SSODomain{
			Domain:   account.Shown(d.Domain),
			Verified: d.Verified,
			Record:   d.Record,
			Text:     d.Text,
		})
	}
	hint, err := conn.Hint(a.Keys)
	if err != nil {
		return err
	}
	if hint != nil {
		out.ClientSecretHint.Set(*hint)
	}
	if conn.BreakGlass != nil {
		owners, err := accounts.BreakGlassOwners(c.Ctx(), a.DB, tenant)
		if err != nil {
			return err
		}
		for _, o := range owners {
			if o.ID == *conn.BreakGlass {
				out.BreakGlass.Set(account.Shown(o.Email))
			}
		}
	}
	return c.Answer(http.StatusOK, out)
}

// updateTenantSSO lays the given fields over the connection, or over the defaults of a new one.
func (a *api) updateTenantSSO(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	var in SSOPatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	was, _, err := accounts.FindSSO(c.Ctx(), a.DB, tenantID)
	if errors.Is(err, accounts.ErrSSOMissing) {
		was.Tenant, was.Config, err = tenantID, sso.Default(), nil
	}
	if err != nil {
		return err
	}
	to, err := in.lay(was)
	if err == nil && in.BreakGlass.IsSpecified() {
		to.BreakGlass, err = a.breakGlass(c, tenantID, in.BreakGlass)
	}
	var domains []string
	if err == nil && in.Domains != nil {
		domains, err = readDomains(*in.Domains)
	}
	if err == nil && to.Issuer != was.Issuer {
		err = a.OpenID.CheckIssuer(c.Ctx(), a.Egress, to.Issuer, a.Log.With("tenant", id.Tenant.Format(tenantID)))
	}
	if err != nil {
		return ssoFault(err)
	}
	to.Keys = a.Keys
	if err := accounts.ChangeSSO(c.Ctx(), a.DB, to, c.Author()); err != nil {
		return ssoFault(err)
	}
	if in.Domains != nil {
		err := a.DB.Tenant(c.Ctx(), tenantID, func(q *db.Tx) error {
			return accounts.SetDomains(c.Ctx(), q, tenantID, domains, c.Author())
		})
		if err != nil {
			return err
		}
	}
	return a.showTenantSSO(c, tenantID)
}

// lay changes the given fields of a connection and checks the result.
func (in SSOPatch) lay(was accounts.Connection) (accounts.NewSSO, error) {
	to := accounts.NewSSO{Connection: was}
	set(&to.Issuer, in.Issuer)
	set(&to.ClientID, in.ClientID)
	set(&to.RoleClaim, in.RoleClaim)
	set(&to.Join, in.JoinMembers)
	set(&to.TrustEmail, in.TrustEmail)
	set(&to.Only, in.Required)
	to.Issuer, to.ClientID, to.RoleClaim = strings.TrimSpace(to.Issuer), strings.TrimSpace(to.ClientID), strings.TrimSpace(to.RoleClaim)
	if to.Issuer == "" {
		return to, fault.InvalidField("issuer", "sso_issuer_invalid", "Single sign-on needs the issuer of your provider.")
	}
	if in.SessionSeconds != nil {
		to.Session = time.Duration(*in.SessionSeconds) * time.Second
	}
	if in.DefaultRole.IsSpecified() {
		role, _ := in.DefaultRole.Get() // null: none
		to.Default = access.Role(role)
	}
	if in.ClientSecret.IsSpecified() {
		secret, _ := in.ClientSecret.Get() // null: a public client
		to.Plain = &secret
	}
	if in.Roles != nil {
		to.Roles = sso.Mapping{}
		for value, role := range *in.Roles {
			to.Roles[value] = access.Role(role)
		}
		if err := to.Roles.Check(); err != nil {
			return to, err
		}
	}
	plain := ""
	set(&plain, to.Plain)
	return to, to.Check(plain)
}

// breakGlass finds the owner with an address. null is none.
func (a *api) breakGlass(c *handlers.Call, tenant id.UUID, given nullable.Nullable[string]) (*id.UUID, error) {
	email, err := given.Get()
	if err != nil {
		return nil, nil //nolint:nilerr // null
	}
	owners, err := accounts.BreakGlassOwners(c.Ctx(), a.DB, tenant)
	if err != nil {
		return nil, err
	}
	if ascii, err := account.Email(email); err == nil {
		email = ascii
	}
	for _, o := range owners {
		if o.Email == email {
			return &o.ID, nil
		}
	}
	return nil, accounts.ErrBreakGlass
}

// readDomains reads a list of domains, each once.
func readDomains(given []string) (out []string, err error) {
	for _, text := range given {
		domain, err := sso.Domain(text)
		if err != nil {
			return nil, err
		}
		out = append(out, domain)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ssoFault renames the fields of an error from the dashboard's names to the contract's.
func ssoFault(err error) error {
	e := fault.As(err)
	if e == nil || len(e.Fields) == 0 {
		return err
	}
	fields := slices.Clone(e.Fields)
	for i := range fields {
		switch fields[i].Name {
		case "session_hours":
			fields[i].Name, fields[i].Detail = "session_seconds", fmt.Sprintf(
				"Give a number of seconds from %d to %d.", sso.MinSession/time.Second, sso.MaxSession/time.Second)
		case "role_map":
			fields[i].Name = "roles"
		case "domain":
			fields[i].Name = "domains"
		}
	}
	return fault.InvalidFields(fields)
}

func (a *api) removeTenantSSO(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := accounts.RemoveSSO(c.Ctx(), a.DB, tenantID, c.Author()); err != nil {
		return err
	}
	return c.AnswerNothing()
}
