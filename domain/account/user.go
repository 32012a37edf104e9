package account

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

// User is a person or an operator: who signs in.
type User struct {
	Kind  Kind // Person or Operator
	ID    id.UUID
	Name  string // operators can have none
	Email string
	TOTP  bool // an authenticator app is set up
}

// Account is how a user signs in.
type Account struct {
	User
	Password        string // a PHC string; a text that is none matches no password
	Seed            []byte // of the authenticator app, sealed; it counts if TOTP is set; nil: none
	PasskeyRequired bool   // after the password
	Disabled        bool
	LastTenant      *id.UUID // the tenant that a person opened last
}

// HasPassword reports whether the account signs in with a password. Those of a local user and of a person whom an
// identity provider brought have none.
func (a Account) HasPassword() bool { return strings.HasPrefix(a.Password, "$") }

// Session is a browser's session.
type Session struct {
	ID   id.UUID
	Kind Kind
	User User     // zero for a portal link
	Link *id.UUID // the portal link; nil for users
	// Pending says that the second factor is missing. A pending session opens only the page that asks for it.
	Pending bool
	Fresh   bool // the user authenticated within the last minutes
	// Only is the tenant whose identity provider started the session. The session opens this tenant and nothing else of
	// the person's: the provider speaks for no other. Nil: the person signed in here.
	Only *id.UUID

	Created, Seen time.Time
	Idle          time.Duration // since Seen, by the database's clock
	Remaining     time.Duration // until the session ends, however much it is used
	Address       string
	Agent         string          // what the browser says about itself
	Data          json.RawMessage // kept between pages
	Once          []byte          // a sealed value that one page shows once; nil: none
}

// Membership is a tenant of a person.
type Membership struct {
	Tenant, Member id.UUID
	Name           string // the tenant's
	Role           access.Role
	State          TenantState
	SSORequired    bool // the tenant accepts no session but its identity provider's
}

// PortalAccess is a link by which somebody opened a tenant's dashboard.
type PortalAccess struct {
	ID          id.UUID
	Tenant      id.UUID
	TenantName  string
	TenantState TenantState
	Role        access.Role
	Brand       string // empty: Posthorn's own
	Accent      string // a color as #rrggbb, or empty
	ReturnURL   string // where "back" leads, or empty
	Parts       access.Parts
	Revoked     bool
}

// View is an operator's visit to a tenant's dashboard.
type View struct {
	TenantName  string
	TenantState TenantState
	Until       time.Time
	Reason      string
	Acting      bool // can change things too
}

// Passkey is a passkey of an account.
type Passkey struct {
	ID         id.UUID
	Owner      id.UUID
	Credential []byte          // the authenticator's id of it
	State      json.RawMessage // what a sign-in is verified with
	Name       string
	Created    time.Time
	Used       *time.Time // nil: never
}

// FormID is the passkey's id in forms. ParsePasskey reads it.
func (p *Passkey) FormID() string { return base64.RawURLEncoding.EncodeToString(p.Credential) }

// ParsePasskey reads what FormID wrote. No passkey has any other text.
func ParsePasskey(text string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// Names that browsers and systems send, the most specific first: most also claim to be others.
var (
	browsers = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	systems  = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// Browser describes a browser for people, from its User-Agent header: "Firefox on Windows".
func Browser(agent string) string {
	find := func(names [][2]string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	name, system := find(browsers), find(systems)
	switch {
	case name != "" && system != "":
		return name + " on " + system
	case name != "" || system != "":
		return name + system
	}
	return "Unknown browser"
}
