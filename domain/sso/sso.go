// Package sso decides who an identity provider signs in, and as what. A tenant's provider is configured by that tenant,
// so it is trusted about the tenant's own people and about nobody else (docs/adr/0019-single-sign-on.md).
package sso

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

// Bounds of a connection.
const (
	MaxClientID = 255
	maxSecret   = 1024
	minHinted   = 16 // characters of a secret whose end is shown
	maxClaim    = 200
	maxValue    = 200
	maxMapping  = 100
	maxSubject  = 255 // OpenID Connect Core, section 2
	MaxDomains  = 50  // of one tenant
)

// MinSession and MaxSession bound how long a session lives that a tenant's provider started.
const (
	MinSession     = 15 * time.Minute
	MaxSession     = 14 * 24 * time.Hour
	defaultSession = 12 * time.Hour
)

// FlowLife is how long a sign-in at a provider can take.
const FlowLife = 10 * time.Minute

// Mapping gives roles to values of the claim that names a person's groups.
type Mapping map[string]access.Role

// ParseMapping reads lines of the form "value = role". Owner is no such role: a provider neither makes nor removes
// owners. The error has the field role_map.
func ParseMapping(text string) (Mapping, error) {
	m := Mapping{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		cut := strings.LastIndexByte(line, '=')
		if cut < 0 {
			return nil, mappingFault("Write one mapping per line, as `engineering = developer`.")
		}
		value, name := strings.TrimSpace(line[:cut]), strings.TrimSpace(line[cut+1:])
		role := access.Role(strings.ToLower(name))
		if m[value] != "" && m[value] != role {
			return nil, mappingFault(value + " is mapped twice. Keep one line.")
		}
		m[value] = role
	}
	return m, m.Check()
}

// Check returns what is wrong with a mapping. The error has the field role_map.
func (m Mapping) Check() error {
	for _, value := range slices.Sorted(maps.Keys(m)) {
		switch {
		case value == "" || len(value) > maxValue || value != strings.TrimSpace(value) || !characters.Line(value):
			return mappingFault(fmt.Sprintf("A value has 1 to %d characters. Write `engineering = developer`.", maxValue))
		case !canMap(m[value]):
			return mappingFault("The role of " + value + " must be admin, developer, or viewer. A provider can't make owners.")
		}
	}
	if len(m) > maxMapping {
		return mappingFault(fmt.Sprintf("There are %d mappings; the maximum is %d.", len(m), maxMapping))
	}
	return nil
}

func mappingFault(detail string) error {
	return fault.InvalidField("role_map", "sso_mapping_invalid", detail)
}

// canMap reports whether a provider can give a role.
func canMap(r access.Role) bool {
	return r == access.Admin || r == access.Developer || r == access.Viewer
}

// Text is the mapping as ParseMapping reads it.
func (m Mapping) Text() string {
	var b strings.Builder
	for _, value := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(value + " = " + string(m[value]) + "\n")
	}
	return b.String()
}

// Domain reads an email domain, in lower case. The error has the field domain.
func Domain(text string) (string, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "@")
	email, err := account.Email("a@" + text)
	if err != nil {
		return "", fault.InvalidField("domain", "sso_domain_invalid", "This isn't an email domain. Use the form example.com.")
	}
	return strings.TrimPrefix(email, "a@"), nil
}

// DomainOf is the domain of an address as account.Email gives it.
func DomainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }

// RecordName is where the TXT record of a domain is looked up, and RecordText what it says for a tenant.
func RecordName(domain string) string { return "_posthorn." + domain }

// RecordText is what the TXT record of a domain must say; see RecordName.
func RecordText(proof string) string { return "posthorn-domain=" + proof }

// HasRecord reports whether TXT records contain that of a proof.
func HasRecord(texts []string, proof string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.TrimSpace(t) == RecordText(proof) })
}

// Config is a tenant's connection to its provider, without the secret.
type Config struct {
	Issuer, ClientID string
	RoleClaim        string // empty: the provider sets no roles
	Roles            Mapping
	Default          access.Role // of people without a mapped value; empty: they are rejected
	Join             bool        // people of verified domains become members
	TrustEmail       bool        // addresses without email_verified count as verified
	Session          time.Duration
}

// Default is the configuration of a tenant that has none yet, without its provider.
func Default() Config {
	return Config{Join: true, Default: access.Viewer, Session: defaultSession}
}

// Check returns what is wrong with the parts that a person types, except for the issuer, which is checked as a URL.
func (c Config) Check(secret string) error {
	var wrong []fault.Field
	add := func(name, detail string) {
		wrong = append(wrong, fault.Field{Name: name, Code: "sso_invalid", Detail: detail})
	}
	if c.ClientID == "" || len(c.ClientID) > MaxClientID || !characters.Line(c.ClientID) {
		add("client_id", fmt.Sprintf("Enter the client id that your provider shows, at most %d characters.", MaxClientID))
	}
	if len(secret) > maxSecret || secret != "" && !characters.Line(secret) {
		add("client_secret", fmt.Sprintf("A client secret is one line of at most %d characters.", maxSecret))
	}
	if len(c.RoleClaim) > maxClaim || c.RoleClaim != "" && !characters.Line(c.RoleClaim) {
		add("role_claim", fmt.Sprintf("A claim's name is one line of at most %d characters.", maxClaim))
	}
	if c.RoleClaim == "" && len(c.Roles) > 0 {
		add("role_claim", "Enter the claim whose values are mapped to roles, such as groups.")
	}
	if c.Default != "" && !canMap(c.Default) {
		add("default_role", "Use admin, developer, or viewer.")
	}
	if c.Join && c.Default == "" && len(c.Roles) == 0 {
		add("default_role", "Select the role of new members, or map values of a claim to roles.")
	}
	if c.Session < MinSession || c.Session > MaxSession {
		add("session_hours", "Enter a number of hours from 0.25 to 336.")
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	return nil
}

// SecretHint is the end of a client secret by which people recognize it: four characters, and none of a short secret.
func SecretHint(secret string) string {
	if len(secret) < minHinted {
		return ""
	}
	return secret[len(secret)-4:]
}

// roleFor is the highest role that values of the role claim are mapped to, else the default. Empty: no role.
func (c Config) roleFor(values []string) access.Role {
	for _, role := range access.Roles() {
		for _, v := range values {
			if c.RoleClaim != "" && c.Roles[v] == role {
				return role
			}
		}
	}
	return c.Default
}

// Claims is what a verified ID token says about a person.
type Claims struct {
	Subject       string
	Email         string // as the provider writes it
	EmailVerified *bool  // nil: the provider does not say
	Name          string
	Values        []string  // of the role claim
	Gap           Gap       // why Values are unknown; empty: they are known, or no claim is read
	SignedIn      time.Time // auth_time; zero: the provider does not say
	Ends          time.Time // session_expiry; zero: the provider does not say
	SessionID     string    // sid; empty: the provider does not say
}

// Facts are what the database knows about the person of some claims, in one tenant.
type Facts struct {
	Linked     bool // the subject is known; the rest is about its person
	Disabled   bool
	Role       access.Role // as a member; empty: is none
	Otherwise  bool        // the person with this address is or was linked to another subject
	Invited    access.Role // by an open invitation to the address; empty: there is none
	ByDomain   bool        // the tenant has verified the address's domain
	EmailKnown bool        // the address is taken from the claims and counts as verified
}

// Decision is what a sign-in does.
type Decision struct {
	Join bool        // become a member with Role
	Role access.Role // the role from now on
	Link bool        // remember the subject
	Kept Gap         // the member's role stays because the provider did not tell the groups; empty: it told them
}

// Why a provider's word is not enough. Each says who can help.
var (
	ErrRemoved = fault.New(
		fault.Forbidden,
		"sso_member_removed",
		"You were removed from this tenant. An owner or admin can invite you again.",
	)
	ErrNotMember = fault.New(
		fault.Forbidden,
		"sso_not_a_member",
		"Your provider signed you in, but you aren't a member of this tenant. Ask an owner or admin for an invitation.",
	)
	ErrEmail = fault.New(
		fault.Forbidden,
		"sso_email_unverified",
		"Your provider didn't say that your email address is verified. Ask the administrator of your provider to send the claims email and email_verified.",
	)
	ErrOtherAccount = fault.New(
		fault.Forbidden,
		"sso_other_account",
		"The member with this address belongs to another account of your provider. An owner can remove the member and invite you again.",
	)
	ErrNoRole = fault.New(
		fault.Forbidden,
		"sso_no_role",
		"None of your groups has a role in this tenant. Ask the administrator of your provider, or an owner of the tenant.",
	)
	ErrDisabled = fault.New(fault.Forbidden, "sso_account_disabled", "Your account is disabled. Contact the operator of this server.")
)

// VerifiedEmail is the address of claims as accounts are found by it, or empty where the provider does not vouch for
// it. A provider that says the address is not verified is never overruled.
func (c Config) VerifiedEmail(claims Claims) string {
	verified := claims.EmailVerified != nil && *claims.EmailVerified || claims.EmailVerified == nil && c.TrustEmail
	email, err := account.Email(claims.Email)
	if !verified || err != nil {
		return ""
	}
	return email
}

// Decide says whether a tenant's provider signs a person in, and as what. Owners stay what they are, whatever the
// provider says.
func (c Config) Decide(claims Claims, f Facts) (Decision, error) {
	switch {
	case claims.Subject == "" || len(claims.Subject) > maxSubject:
		return Decision{}, ErrEmail
	case f.Disabled:
		return Decision{}, ErrDisabled
	case !f.Linked && !f.EmailKnown:
		return Decision{}, ErrEmail
	case !f.Linked && f.Otherwise && f.Role != "":
		return Decision{}, ErrOtherAccount
	}
	if f.Role != "" {
		d, err := c.follow(f.Role, claims)
		d.Link = err == nil && !f.Linked
		return d, err
	}
	return c.join(claims, f)
}

// follow is what a sign-in does with the role of a member.
func (c Config) follow(now access.Role, claims Claims) (Decision, error) {
	switch {
	case now == access.Owner || c.RoleClaim == "":
		return Decision{Role: now}, nil
	case claims.Gap != "":
		return Decision{Role: now, Kept: claims.Gap}, nil
	}
	role := c.roleFor(claims.Values)
	if role == "" {
		return Decision{}, ErrNoRole
	}
	return Decision{Role: role}, nil
}

// join lets somebody in who is no member. The address must be in a domain that the tenant has verified: the provider
// speaks for no other address. Who was a member before needs an invitation, also with another subject.
func (c Config) join(claims Claims, f Facts) (Decision, error) {
	switch {
	case f.Invited != "" && (f.ByDomain || f.Linked):
		return Decision{Join: true, Role: f.Invited, Link: true}, nil
	case f.Linked || f.Otherwise:
		return Decision{}, ErrRemoved
	case !c.Join || !f.ByDomain:
		return Decision{}, ErrNotMember
	case c.RoleClaim != "" && claims.Gap != "":
		return Decision{}, claims.Gap.Refusal()
	}
	role := c.roleFor(claims.Values)
	if role == "" {
		return Decision{}, ErrNoRole
	}
	return Decision{Join: true, Role: role, Link: true}, nil
}

// SessionLife is how long a session lives that starts now. The provider can make it shorter. Zero or less: the
// provider's own session has ended.
func SessionLife(most time.Duration, claims Claims, now time.Time) time.Duration {
	if claims.Ends.IsZero() {
		return most
	}
	return min(most, claims.Ends.Sub(now))
}

// Stale is how long ago a person authenticated at the provider. A provider that does not say gives no fresh session,
// so that a cookie of the provider alone changes nothing that needs a fresh sign-in.
func Stale(claims Claims, now time.Time) time.Duration {
	if claims.SignedIn.IsZero() {
		return account.Fresh
	}
	return max(0, min(now.Sub(claims.SignedIn), 365*24*time.Hour))
}

// Logout is what a verified logout token ends: one session of the provider, or all of an account.
type Logout struct {
	ID        string // the token's own, so that it works once
	Subject   string // empty: the session alone is named
	SessionID string // empty: all sessions of the subject
}
