// Package account holds the rules of people's accounts: addresses, names, passwords, how long sessions live, and rate
// limits of tries.
package account

import (
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

// MaxName bounds a name, in characters.
const MaxName = 100

// Name is the name of a person, a tenant, a key or a brand: one line of 1 to 100 characters without a web address,
// since it appears in mails to others. The error names the field.
func Name(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	switch {
	case n == 0:
		return "", fault.InvalidField(field, "field_missing", "Enter a name.")
	case n > MaxName, !characters.Line(text):
		return "", fault.InvalidField(field, "name_invalid", "A name is one line of at most 100 visible characters.")
	case strings.Contains(text, "://"):
		return "", fault.InvalidField(field, "name_invalid", "A name can't contain a web address.")
	}
	return text, nil
}

// MaskEmail shows enough of an address for its owner to know it again: a…@example.com.
func MaskEmail(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 1 {
		return "…"
	}
	_, size := utf8.DecodeRuneInString(email)
	return email[:size] + "…" + email[at:]
}

// Kind is whose a session is.
type Kind string

// The kinds of sessions: of a person, of an operator, and of who came by a link into one tenant's dashboard.
const (
	Person   Kind = "person"
	Operator Kind = "operator"
	Portal   Kind = "portal"
)

// Fresh is how long after authenticating a person can change password, address or second factor.
const Fresh = 10 * time.Minute

// SecondFactor is how long a session waits for the code after the password was right.
const SecondFactor = 10 * time.Minute

// Idle and Life are how long a session lives unused, and at most (SECURITY, "Accounts and sessions"). A portal
// session's life is its link's.
func (k Kind) Idle() time.Duration {
	if k == Operator {
		return 30 * time.Minute
	}
	return 8 * time.Hour
}

// Life is how long a session lives at most; see Idle.
func (k Kind) Life() time.Duration {
	if k == Operator {
		return 12 * time.Hour
	}
	return 14 * 24 * time.Hour
}

// Alive reports whether a session that was last seen at one moment and ends at another is good now.
func (k Kind) Alive(now, seen, ends time.Time) bool {
	return now.Before(ends) && now.Before(seen.Add(k.Idle()))
}

// IsFresh reports whether who proved themselves at a moment need not do so again now.
func IsFresh(now, verified time.Time) bool { return now.Before(verified.Add(Fresh)) }

// Limit is how many tries are allowed within a window that starts with the first try.
type Limit struct {
	Tries  int
	Window time.Duration
}

// The limits for one account. They hold for addresses without an account too, which would otherwise be told apart.
var (
	Passwords  = Limit{Tries: 10, Window: 15 * time.Minute}
	Codes      = Limit{Tries: 5, Window: 15 * time.Minute}
	Mails      = Limit{Tries: 5, Window: time.Hour}  // mails that another person can have sent to an address
	NewTenants = Limit{Tries: 20, Window: time.Hour} // tenants that one person creates
)

// The limits of mails that a tenant can have sent to unverified addresses. Those of one address hold across tenants.
var (
	Invitations       = Limit{Tries: 5, Window: time.Hour}  // to one address
	TenantInvitations = Limit{Tries: 50, Window: time.Hour} // of one tenant
	ContactNotices    = Limit{Tries: 20, Window: time.Hour} // to one contact
)

// The limits of mails that ask a contact whether it wants notices.
var (
	ContactAsks    = Limit{Tries: 1, Window: 7 * 24 * time.Hour} // by one tenant
	AllContactAsks = Limit{Tries: 3, Window: 24 * time.Hour}     // by all tenants together
)

// The limits of mails that a tenant's events cause.
var (
	MemberNotices  = Limit{Tries: 60, Window: time.Hour}  // of one tenant to one member
	TenantNotices  = Limit{Tries: 500, Window: time.Hour} // of one tenant in all
	OperatorAlerts = Limit{Tries: 20, Window: time.Hour}  // that one tenant causes
)

// The lives of links in mails.
const (
	SignUpLife     = 24 * time.Hour
	ResetLife      = time.Hour
	EmailLife      = 24 * time.Hour
	InvitationLife = 7 * 24 * time.Hour
	OperatorLife   = 24 * time.Hour
	PortalOpenLife = 10 * time.Minute
	LocalLife      = 24 * time.Hour // of a link that is printed in a terminal
)

// MaxPortalLinks is how many portal links of a tenant can wait to be opened.
const MaxPortalLinks = 500

// portalMin and portalMax bound the life of a portal session.
const (
	portalMin = time.Hour
	portalMax = 7 * 24 * time.Hour
)
