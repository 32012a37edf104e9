package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/sso"
)

// Errors that reject changes of single sign-on.
var (
	ErrSSOMissing = fault.New(fault.NotFound, "sso_not_set_up", "Single sign-on isn't set up for this tenant. Sign in with your email address and password.")
	errSSOChanged = fault.New(fault.Conflict, "sso_changed", "Single sign-on of this tenant was changed while you signed in. Start again.")
	errDomains    = fault.New(fault.Conflict, "sso_domains_limit", "This tenant has 50 domains, the maximum. Remove one first.")
	errDomainHeld = fault.InvalidField(
		"domain",
		"sso_domain_held",
		"Another tenant of this server has verified this domain, and its DNS record is still there. Remove that record first.",
	)
	ErrBreakGlass = fault.InvalidField(
		"break_glass",
		"sso_break_glass_missing",
		"Select an owner who has a password. This owner can still sign in when your provider doesn't work.",
	)
	errBreakGlassStays = fault.New(
		fault.Conflict,
		"sso_break_glass",
		"This member is the tenant's break-glass account. Select another one under Settings, Single sign-on first.",
	)
)

// Connection is a tenant's connection to its provider.
type Connection struct {
	sso.Config
	Tenant     id.UUID
	Secret     []byte // sealed for the tenant; nil: a public client
	Only       bool   // members sign in by the provider only
	BreakGlass *id.UUID
}

// connectionOf reads the row that a statement found. If there was none, it returns ErrSSOMissing.
func connectionOf(row sql.SSOConnection, err error) (Connection, error) {
	if db.IsMissing(err) {
		err = ErrSSOMissing
	}
	if err != nil {
		return Connection{}, err
	}
	c := Connection{
		Config: sso.Config{
			Issuer:     row.Issuer,
			ClientID:   row.ClientID,
			RoleClaim:  row.RoleClaim,
			Default:    access.Role(row.DefaultRole),
			Join:       row.JoinMembers,
			TrustEmail: row.TrustEmail,
			Session:    time.Duration(row.SessionSeconds) * time.Second,
		},
		Tenant:     row.TenantID,
		Secret:     row.ClientSecret,
		Only:       row.SSOOnly,
		BreakGlass: row.BreakGlass,
	}
	return c, json.Unmarshal(row.RoleMap, &c.Roles)
}

// ReadSSO returns a tenant's connection, in a transaction that sees the tenant. If there is none, it returns
// ErrSSOMissing.
func ReadSSO(ctx context.Context, q *sql.Queries, tenant id.UUID) (Connection, error) {
	return connectionOf(q.GetSSO(ctx, tenant))
}

// FindSSO is ReadSSO before the tenant is entered. A deleted tenant has no connection.
func FindSSO(ctx context.Context, d *db.DB, tenant id.UUID) (c Connection, name string, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		if c, err = ReadSSO(ctx, q, tenant); err != nil {
			return err
		}
		t, err := q.GetTenant(ctx, tenant)
		if db.IsMissing(err) || err == nil && t.State == account.TenantDeleted {
			err = ErrSSOMissing
		}
		name = t.Name
		return err
	})
	return c, name, err
}

// NewSSO is a connection as an owner configured it.
type NewSSO struct {
	Connection
	Plain *string // the client secret; nil keeps the stored one
	Keys  *seal.Ring
}

// ChangeSSO stores a tenant's connection and audits it. With another issuer or client, the provider's accounts are
// different ones: the stored accounts are deleted, and the sessions that they started end.
func ChangeSSO(ctx context.Context, d *db.DB, to NewSSO, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		if _, err := q.LockTenant(ctx, to.Tenant); err != nil {
			return err
		}
		was, err := ReadSSO(ctx, q, to.Tenant)
		if err != nil && !errors.Is(err, ErrSSOMissing) {
			return err
		}
		if err := checkBreakGlass(ctx, q, to.Connection); err != nil {
			return err
		}
		moved := was.Issuer != to.Issuer || was.ClientID != to.ClientID
		if moved {
			if err := forgetIdentities(ctx, q, to.Tenant); err != nil {
				return err
			}
		}
		secret := was.Secret
		switch {
		case to.Plain != nil && *to.Plain != "":
			secret = to.Keys.Seal([]byte(*to.Plain), to.Tenant, to.Tenant)
		case to.Plain != nil || was.Issuer != to.Issuer:
			secret = nil // never send one provider the secret of another
		}
		roles, err := json.Marshal(to.Roles)
		if err != nil {
			return err
		}
		err = q.PutSSO(ctx, sql.PutSSOParams{
			TenantID:       to.Tenant,
			Issuer:         to.Issuer,
			ClientID:       to.ClientID,
			ClientSecret:   secret,
			RoleClaim:      to.RoleClaim,
			RoleMap:        roles,
			DefaultRole:    string(to.Default),
			JoinMembers:    to.Join,
			TrustEmail:     to.TrustEmail,
			SSOOnly:        to.Only,
			BreakGlass:     to.BreakGlass,
			SessionSeconds: int32(to.Session / time.Second),
		})
		if err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{
			Tenant: &to.Tenant,
			Action: "sso.changed",
			Kind:   "tenant",
			Object: id.Tenant.Format(to.Tenant),
			Details: map[string]any{
				"issuer":             to.Issuer,
				"client_id":          to.ClientID,
				"sso_only":           to.Only,
				"role_claim":         to.RoleClaim,
				"default_role":       to.Default,
				"join_members":       to.Join,
				"trust_email":        to.TrustEmail,
				"secret_changed":     to.Plain != nil,
				"accounts_forgotten": moved && was.Issuer != "",
			},
		})
	})
}

// checkBreakGlass accepts SSO as the only way to sign in only if one owner can sign in without the provider.
func checkBreakGlass(ctx context.Context, q *sql.Queries, to Connection) error {
	if !to.Only && to.BreakGlass == nil {
		return nil
	}
	owners, err := q.OwnersForBreakGlass(ctx, to.Tenant)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if to.BreakGlass != nil && o.ID == *to.BreakGlass {
			return nil
		}
	}
	return ErrBreakGlass
}

// keepBreakGlass rejects the demotion or removal of an owner if the tenant accepts only SSO and nobody else could sign
// in while its provider doesn't work.
func keepBreakGlass(ctx context.Context, q *sql.Queries, tenant, member id.UUID) error {
	c, err := ReadSSO(ctx, q, tenant)
	if errors.Is(err, ErrSSOMissing) {
		return nil
	}
	if err == nil && c.Only && c.BreakGlass != nil && *c.BreakGlass == member {
		err = errBreakGlassStays
	}
	return err
}

// BreakGlassOwners lists the owners of a tenant who can be its break-glass account.
func BreakGlassOwners(ctx context.Context, d *db.DB, tenant id.UUID) (owners []show.Member, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.OwnersForBreakGlass(ctx, tenant)
		for _, r := range rows {
			m := show.Member{ID: r.ID, Name: r.Name, Email: r.Email, Role: access.Owner, SecondFactor: r.HasTotp}
			owners = append(owners, m)
		}
		return err
	})
	return owners, err
}

func forgetIdentities(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	if err := q.DeleteIdentities(ctx, tenant); err != nil {
		return err
	}
	_, err := q.EndSessionsOfSSO(ctx, &tenant)
	return err
}

// RemoveSSO deletes a tenant's connection, ends the sessions that it started, and audits it. Domains stay verified.
func RemoveSSO(ctx context.Context, d *db.DB, tenant id.UUID, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		n, err := q.DeleteSSO(ctx, tenant)
		if err == nil && n == 0 {
			err = ErrSSOMissing
		}
		if err != nil {
			return err
		}
		if err := forgetIdentities(ctx, q, tenant); err != nil {
			return err
		}
		return db.Audit(ctx, q, by, db.Audited{Tenant: &tenant, Action: "sso.removed", Kind: "tenant", Object: id.Tenant.Format(tenant)})
	})
}

// AddDomain stores a domain that a tenant has to verify. If the domain is there already, nothing changes.
func AddDomain(ctx context.Context, q *sql.Queries, tenant id.UUID, domain string, by db.Author) error {
	all, err := q.ListDomains(ctx, tenant)
	if err == nil && len(all) >= sso.MaxDomains {
		err = errDomains
	}
	if err != nil {
		return err
	}
	proof, _ := NewToken()
	n, err := q.InsertDomain(ctx, sql.InsertDomainParams{TenantID: tenant, Domain: domain, Proof: proof})
	if err != nil || n == 0 {
		return err
	}
	return auditDomain(ctx, q, tenant, "sso.domain_added", domain, by)
}

func auditDomain(ctx context.Context, q *sql.Queries, tenant id.UUID, action, domain string, by db.Author) error {
	return db.Audit(ctx, q, by, db.Audited{Tenant: &tenant, Action: action, Kind: "domain", Object: domain})
}

// RemoveDomain deletes a domain of a tenant. A domain that the tenant does not have is fault.ErrNotFound.
func RemoveDomain(ctx context.Context, q *sql.Queries, tenant id.UUID, domain string, by db.Author) error {
	if err := foundOne(q.DeleteDomain(ctx, tenant, domain)); err != nil {
		return err
	}
	return auditDomain(ctx, q, tenant, "sso.domain_removed", domain, by)
}

// SetDomains replaces a tenant's domains by a list: new ones have to be verified, and domains that are not in the list
// are deleted.
func SetDomains(ctx context.Context, q *sql.Queries, tenant id.UUID, domains []string, by db.Author) error {
	there, err := q.ListDomains(ctx, tenant)
	if err != nil {
		return err
	}
	for _, d := range there {
		if slices.Contains(domains, d.Domain) {
			continue
		}
		if err := RemoveDomain(ctx, q, tenant, d.Domain, by); err != nil {
			return err
		}
	}
	for _, domain := range domains {
		if slices.ContainsFunc(there, func(d sql.SSODomain) bool { return d.Domain == domain }) {
			continue
		}
		if err := AddDomain(ctx, q, tenant, domain, by); err != nil {
			return err
		}
	}
	return nil
}

// Hint is the end of the stored client secret, by which people recognize it: four characters, or none of a short
// secret. It is nil for a public client.
func (c Connection) Hint(ring *seal.Ring) (*string, error) {
	if c.Secret == nil {
		return nil, nil
	}
	text, err := ring.Open(c.Secret, c.Tenant, c.Tenant)
	if err != nil {
		return nil, db.Unopened(err)
	}
	return new(sso.SecretHint(string(text))), nil
}

// VerifyDomain records that the DNS names a tenant for its domain; texts are the records that were found. A domain that
// another tenant has verified moves only if the DNS no longer has that tenant's record.
func VerifyDomain(ctx context.Context, d *db.DB, tenant id.UUID, domain string, texts []string, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		holder, err := q.DomainHolder(ctx, domain)
		switch {
		case db.IsMissing(err):
		case err != nil:
			return err
		case holder.TenantID == tenant:
			return nil
		case sso.HasRecord(texts, holder.Proof):
			return errDomainHeld
		default:
			if err := q.UnverifyDomain(ctx, holder.TenantID, domain); err != nil {
				return err
			}
			if err := auditDomain(ctx, q, holder.TenantID, "sso.domain_lost", domain, db.Author{Kind: "system"}); err != nil {
				return err
			}
		}
		if err := foundOne(q.VerifyDomain(ctx, tenant, domain)); err != nil {
			return err
		}
		return auditDomain(ctx, q, tenant, "sso.domain_verified", domain, by)
	})
}

// TenantOfDomain finds the tenant whose provider signs in people of an email domain, or returns fault.ErrNotFound.
func TenantOfDomain(ctx context.Context, d *db.DB, domain string) (tenant id.UUID, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		tenant, err = q.SSOOfDomain(ctx, domain)
		return err
	})
	if err == nil && tenant.IsZero() {
		err = fault.ErrNotFound
	}
	return tenant, err
}

// SSOFlow is a sign-in at a provider that is in progress: the data that the callback needs.
type SSOFlow struct {
	Browser  []byte  `json:"browser"` // the hash of the browser's cookie
	Tenant   id.UUID `json:"tenant"`  // zero: the operators' provider
	Issuer   string  `json:"issuer"`
	ClientID string  `json:"client_id"`
	Next     string  `json:"next"`
	Fresh    bool    `json:"fresh"`
	Try      bool    `json:"try"` // only says what the sign-in would do
}

// StartSSO stores a sign-in and returns its state. The state itself is not stored.
func StartSSO(ctx context.Context, d *db.DB, f SSOFlow) (string, error) {
	return db.Read(ctx, d.Account, func(q *sql.Queries) (string, error) {
		return MakeLink(ctx, q, NewLink{Purpose: linkSSO, Data: f, Life: sso.FlowLife})
	})
}

// TakeSSO uses up a state if the browser that sends it is the one that started the sign-in. A state that was used, has
// expired, or comes from another browser is fault.ErrNotFound. A request from another browser does not use up a state.
func TakeSSO(ctx context.Context, d *db.DB, state, browser string) (f SSOFlow, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		link, err := q.PeekLink(ctx, HashToken(state), linkSSO)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(link.Data, &f); err != nil {
			return err
		}
		if browser == "" || string(f.Browser) != string(HashToken(browser)) {
			return fault.ErrNotFound
		}
		_, err = q.UseLink(ctx, HashToken(state), linkSSO)
		return err
	})
	return f, err
}

// SSOSignIn is what a provider said about who signs in, and from where.
type SSOSignIn struct {
	Tenant           id.UUID // zero for operators
	Issuer, ClientID string  // at the start of the flow
	Claims           sso.Claims
	Address, Agent   string
	Now              time.Time
}

// SignInBySSO signs in a person whom a tenant's provider has authenticated, and returns the token of a session. The
// session opens this tenant alone. An error is one of package sso's and is audited.
func SignInBySSO(ctx context.Context, d *db.DB, s SSOSignIn) (token string, err error) {
	var refused error
	err = d.Console(ctx, func(q *sql.Queries) error {
		c, err := connectionOf(q.LockSSO(ctx, s.Tenant))
		if err != nil {
			return err
		}
		if c.Issuer != s.Issuer || c.ClientID != s.ClientID {
			return errSSOChanged
		}
		who, decision, wrong, err := s.decide(ctx, q, c)
		if err != nil {
			return err
		}
		if wrong != nil {
			refused = wrong
			return db.Audit(ctx, q, db.Author{Kind: "system", Address: s.Address}, db.Audited{
				Tenant:  &s.Tenant,
				Action:  "sign_in.failed",
				Kind:    "member",
				Object:  who.object(),
				Details: map[string]string{"by": "sso", "reason": fault.As(wrong).Code, "subject": shortenText(s.Claims.Subject, 100)},
			})
		}
		member, err := who.enter(ctx, q, s, decision)
		if err != nil {
			return err
		}
		by := db.Author{Kind: "member", ID: id.Member.Format(member), Address: s.Address}
		if err := db.Audit(ctx, q, by, db.Audited{
			Tenant:  &s.Tenant,
			Action:  "sign_in.succeeded",
			Kind:    "member",
			Object:  by.ID,
			Reason:  decision.Kept.RoleKept(),
			Details: map[string]string{"by": "sso"},
		}); err != nil {
			return err
		}
		life := sso.SessionLife(c.Session, s.Claims, s.Now)
		token, err = s.start(ctx, q, NewSession{Person: &who.person, Life: life}, &s.Tenant)
		return err
	})
	return token, cmp.Or(err, refused)
}

// decide says whom the provider means, and whether they are signed in, and as what.
func (s SSOSignIn) decide(ctx context.Context, q *sql.Queries, c Connection) (who signer, d sso.Decision, wrong, err error) {
	if who, err = findBySSO(ctx, q, c, s.Claims); err != nil {
		return who, d, nil, err
	}
	d, wrong = c.Decide(s.Claims, who.facts)
	if wrong == nil && sso.SessionLife(c.Session, s.Claims, s.Now) <= 0 {
		wrong = errProviderEnded
	}
	return who, d, wrong, nil
}

// TryBySSO says what SignInBySSO would do, and does nothing: as whom the person would enter, and with which role.
func TryBySSO(ctx context.Context, d *db.DB, s SSOSignIn) (email string, decision sso.Decision, err error) {
	var refused error
	err = d.Console(ctx, func(q *sql.Queries) error {
		c, err := connectionOf(q.LockSSO(ctx, s.Tenant))
		if err != nil {
			return err
		}
		var who signer
		who, decision, refused, err = s.decide(ctx, q, c)
		email = who.email
		return err
	})
	return email, decision, cmp.Or(err, refused)
}

// start starts a session that opens one tenant alone, or for an operator (nil) the console.
func (s SSOSignIn) start(ctx context.Context, q *sql.Queries, session NewSession, tenant *id.UUID) (string, error) {
	session.Address, session.Agent = s.Address, s.Agent
	session.By = &SSOSession{
		Tenant:  tenant,
		Subject: s.Claims.Subject,
		SID:     s.Claims.SessionID,
		Stale:   sso.Stale(s.Claims, s.Now),
	}
	return StartSession(ctx, q, session)
}

var errProviderEnded = fault.New(fault.Forbidden, "sso_session_over", "Your session at your provider is over. Sign in there again.")

// signer is the person who signs in by a provider.
type signer struct {
	facts        sso.Facts
	person       id.UUID // zero: a new person
	email        string
	member       id.UUID // zero: none
	invitation   id.UUID
	memberBefore access.Role
}

func (w *signer) object() string {
	if w.member.IsZero() {
		return ""
	}
	return id.Member.Format(w.member)
}

// findBySSO reads what is known about the person who signs in: by the subject, else by an address that counts as
// verified.
func findBySSO(ctx context.Context, q *sql.Queries, c Connection, claims sso.Claims) (w signer, err error) {
	w.email = c.VerifiedEmail(claims)
	identity, err := q.FindIdentity(ctx, c.Tenant, claims.Subject)
	switch {
	case err == nil:
		w.facts.Linked, w.facts.Disabled = true, identity.Disabled
		w.person, w.email = identity.PersonID, identity.Email
	case !db.IsMissing(err):
		return w, err
	case w.email == "":
		return w, nil
	default:
		p, err := q.FindPerson(ctx, w.email)
		if err != nil && !db.IsMissing(err) {
			return w, err
		}
		w.person, w.facts.Disabled = p.ID, p.DisabledAt != nil
	}
	w.facts.EmailKnown = true
	if w.facts.ByDomain, err = q.DomainIsVerified(ctx, c.Tenant, sso.DomainOf(w.email)); err != nil {
		return w, err
	}
	return w, w.findMember(ctx, q, c.Tenant)
}

func (w *signer) findMember(ctx context.Context, q *sql.Queries, tenant id.UUID) error {
	if !w.person.IsZero() {
		m, err := q.MemberOfPerson(ctx, tenant, w.person)
		if err != nil && !db.IsMissing(err) {
			return err
		}
		w.member, w.facts.Role, w.memberBefore = m.ID, access.Role(m.Role), access.Role(m.Role)
		if !w.facts.Linked {
			if w.facts.Otherwise, err = q.HasIdentity(ctx, tenant, w.person); err != nil {
				return err
			}
		}
	}
	i, err := q.InvitedAs(ctx, tenant, w.email)
	if err != nil && !db.IsMissing(err) {
		return err
	}
	w.invitation, w.facts.Invited = i.ID, access.Role(i.Role)
	return nil
}

// enter applies the decision and returns the member.
func (w *signer) enter(ctx context.Context, q *sql.Queries, s SSOSignIn, to sso.Decision) (member id.UUID, err error) {
	if w.person.IsZero() {
		name, err := account.Name("name", s.Claims.Name)
		if err != nil {
			name = w.email[:len(w.email)-len(sso.DomainOf(w.email))-1]
		}
		if w.person, err = AddPerson(ctx, q, w.email, name, noPassword); err != nil {
			return member, err
		}
	}
	switch {
	case to.Join:
		if err := w.join(ctx, q, s, to.Role); err != nil {
			return member, err
		}
	case to.Role != w.memberBefore:
		if _, err := q.SetMemberRole(ctx, sql.SetMemberRoleParams{
			TenantID: s.Tenant,
			ID:       w.member,
			Role:     string(to.Role),
		}); err != nil {
			return member, err
		}
		err := db.Audit(ctx, q, db.Author{Kind: "system", Address: s.Address}, db.Audited{
			Tenant:  &s.Tenant,
			Action:  "member.role_changed",
			Kind:    "member",
			Object:  id.Member.Format(w.member),
			Reason:  "The identity provider's groups have this role.",
			Details: map[string]string{"email": w.email, "from": string(w.memberBefore), "to": string(to.Role), "by": "sso"},
		})
		if err != nil {
			return member, err
		}
	}
	return w.member, q.PutIdentity(ctx, sql.PutIdentityParams{
		TenantID: s.Tenant,
		Subject:  s.Claims.Subject,
		PersonID: w.person,
		RoleGap:  string(to.Kept),
	})
}

func (w *signer) join(ctx context.Context, q *sql.Queries, s SSOSignIn, role access.Role) (err error) {
	if w.member, err = AddMember(ctx, q, s.Tenant, w.person, role); err != nil {
		return err
	}
	if !w.invitation.IsZero() {
		if _, err := q.DeleteInvitation(ctx, s.Tenant, w.invitation); err != nil {
			return err
		}
	}
	by := db.Author{Kind: "member", ID: id.Member.Format(w.member), Address: s.Address}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &s.Tenant,
		Action:  "member.joined",
		Kind:    "member",
		Object:  by.ID,
		Details: map[string]string{"email": w.email, "role": string(role), "by": "sso"},
	})
}

// SignOut audits that a user signed out: in each of a person's tenants, or in the one tenant that the session opened.
func SignOut(ctx context.Context, q *sql.Queries, self Self, only *id.UUID) error {
	const action = "sign_out"
	if only == nil {
		return self.Audit(ctx, q, action, nil)
	}
	tenants, err := TenantsOf(ctx, q, self.ID, only)
	if err != nil || len(tenants) == 0 {
		return err
	}
	member := id.Member.Format(tenants[0].Member)
	return db.Audit(ctx, q, db.Author{Kind: "member", ID: member, Address: self.Address}, db.Audited{
		Tenant: only,
		Action: action,
		Kind:   "member",
		Object: member,
	})
}

// logoutTokens accepts each logout token once.
var logoutTokens = account.Limit{Tries: 1, Window: time.Hour}

// EndByProvider ends the sessions that a verified logout token names and audits it. A tenant of zero means operators.
// The same token does nothing a second time. It returns how many sessions ended.
func EndByProvider(ctx context.Context, d *db.DB, tenant id.UUID, token sso.Logout, address string) (n int64, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		wait, err := Try(ctx, q, logoutTokens, "logout token", tenant.String()+"\x00"+token.ID)
		if err != nil || wait > 0 {
			return err
		}
		of := &tenant
		if tenant.IsZero() {
			of = nil
		}
		if n, err = q.EndSSOSessions(ctx, sql.EndSSOSessionsParams{
			TenantID: of,
			Subject:  token.Subject,
			Sid:      token.SessionID,
		}); err != nil || n == 0 {
			return err
		}
		return db.Audit(ctx, q, db.Author{Kind: "system", Address: address}, db.Audited{
			Tenant:  of,
			Action:  "sessions.ended",
			Kind:    "sso",
			Details: map[string]any{"by": "identity provider", "sessions": n},
		})
	})
	return n, err
}

// RefuseSSO audits a sign-in that failed before its person was known.
func RefuseSSO(ctx context.Context, d *db.DB, tenant id.UUID, code, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		what := db.Audited{Tenant: &tenant, Action: "sign_in.failed", Kind: "sso", Details: map[string]string{"by": "sso", "reason": code}}
		if tenant.IsZero() {
			what.Tenant, what.Action = nil, "operator.sign_in.failed"
		}
		return db.Audit(ctx, q, db.Author{Kind: "system", Address: address}, what)
	})
}

var errNotOperator = fault.New(
	fault.Forbidden,
	"sso_not_an_operator",
	"Your provider signed you in, but you aren't an operator of this server. Ask another operator.",
)

var errOtherOperator = fault.New(
	fault.Forbidden,
	sso.ErrOtherAccount.Code,
	"The operator with this address belongs to another account of your provider. "+
		"Whoever runs this server can change that: `posthorn operator unlink-sso --email you@example.com --reason \"...\"`.",
)

// SignInOperatorBySSO is SignInBySSO for the operators' provider. named says that the provider's claims name the person
// as an operator; the first such sign-in makes the person one. Otherwise the person must be an operator already, and
// where the claims have a gap, one who has signed in by the provider before.
func SignInOperatorBySSO(ctx context.Context, d *db.DB, s SSOSignIn, email string, named bool) (token string, err error) {
	var refused error
	err = d.Console(ctx, func(q *sql.Queries) error {
		operator, err := operatorBySSO(ctx, q, s, email, named)
		self := Self{Kind: account.Operator, ID: operator, Address: s.Address}
		life := sso.SessionLife(account.Operator.Life(), s.Claims, s.Now)
		if err == nil && life <= 0 {
			err = errProviderEnded
		}
		if e := fault.As(err); e != nil && e.Kind == fault.Forbidden {
			refused = err
			return self.Audit(ctx, q, "sign_in.failed", nil)
		}
		if err != nil {
			return err
		}
		if err := self.auditOperator(ctx, q, db.Audited{
			Action: "operator.sign_in.succeeded",
			Reason: s.Claims.Gap.RoleKept(),
		}); err != nil {
			return err
		}
		token, err = s.start(ctx, q, NewSession{Operator: &operator, Life: life}, nil)
		return err
	})
	return token, cmp.Or(err, refused)
}

func operatorBySSO(ctx context.Context, q *sql.Queries, s SSOSignIn, email string, named bool) (operator id.UUID, err error) {
	row, err := q.FindOperatorBySubject(ctx, &s.Issuer, &s.Claims.Subject)
	if db.IsMissing(err) {
		if s.Claims.Gap != "" {
			return operator, s.Claims.Gap.Refusal()
		}
		if email == "" {
			return operator, sso.ErrEmail
		}
		row, err = q.FindOperator(ctx, email)
		if db.IsMissing(err) && named {
			if row.ID, err = CreateOperator(ctx, q, email); err == nil {
				err = Self{Kind: account.Operator, ID: row.ID, Address: s.Address}.Audit(ctx, q, "created", nil)
			}
		}
		if db.IsMissing(err) {
			err = errNotOperator
		}
	}
	if err != nil {
		return operator, err
	}
	if row.DisabledAt != nil {
		return row.ID, sso.ErrDisabled
	}
	n, err := q.LinkOperator(ctx, sql.LinkOperatorParams{ID: row.ID, Issuer: &s.Issuer, Subject: &s.Claims.Subject})
	if err == nil && n == 0 {
		err = errOtherOperator
	}
	return row.ID, err
}

// UnlinkSSO forgets which account of a provider a user has, and ends the sessions that providers started. The next
// sign-in links the user again. A person is unlinked in each tenant whose member the person is, and the audit log of
// each has the reason. UnlinkSSO returns from how many providers the user was unlinked.
func UnlinkSSO(ctx context.Context, d *db.DB, kind account.Kind, email, reason string, by db.Author) (n int, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		a, err := Find(ctx, q, kind, email)
		if err != nil {
			return err
		}
		entries, err := unlink(ctx, q, a.User)
		if n = len(entries); err != nil || n == 0 {
			return err
		}
		for _, entry := range entries {
			entry.Reason = reason
			if err := db.Audit(ctx, q, by, entry); err != nil {
				return err
			}
		}
		return q.EndSSOSessionsOf(ctx, &a.ID)
	})
	return n, err
}

// unlink deletes the links of a user to accounts of providers, and returns the audit log's entry for each.
func unlink(ctx context.Context, q *sql.Queries, user account.User) (entries []db.Audited, err error) {
	if user.Kind == account.Operator {
		n, err := q.UnlinkOperator(ctx, user.ID)
		if n > 0 {
			entries = []db.Audited{{Action: "operator.sso_unlinked", Kind: "operator", Object: id.Operator.Format(user.ID)}}
		}
		return entries, err
	}
	rows, err := q.UnlinkPerson(ctx, user.ID)
	for i := range rows {
		entries = append(entries, db.Audited{
			Tenant:  &rows[i].TenantID,
			Action:  "sso.unlinked",
			Kind:    "member",
			Object:  id.Member.Format(rows[i].ID),
			Details: map[string]string{"email": user.Email},
		})
	}
	return entries, err
}
