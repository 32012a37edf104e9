package mail

import (
	"encoding/json"
	"strings"
	"time"
)

// The data of mails, by kind: the JSON in the outbox. Links are absolute. A mail is rendered again on every try and
// must be the same each time, or the provider would take the second try for another mail. So everything that it shows
// is here, and nothing is looked up when it is sent.

// VerifyAddressData belong to VerifyAddress.
type VerifyAddressData struct {
	Name    string    `json:"name,omitempty"` // of the person
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`          // when the link stops working
	Change  bool      `json:"change,omitempty"` // the person has an account and asked for another address
}

// AccountExistsData belong to AccountExists.
type AccountExistsData struct {
	Name    string `json:"name,omitempty"`
	Tenant  string `json:"tenant"`            // the name of the requested tenant
	Link    string `json:"link"`              // where it is created after signing in
	Reset   string `json:"reset"`             // where a new password is asked for
	Address string `json:"address,omitempty"` // from which it was asked for
}

// ResetPasswordData belong to ResetPassword.
type ResetPasswordData struct {
	Name    string    `json:"name,omitempty"`
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
	Address string    `json:"address,omitempty"` // from which it was asked for
}

// InvitationData belong to Invitation.
type InvitationData struct {
	Tenant  string    `json:"tenant"`       // its name
	By      string    `json:"by,omitempty"` // who invites: a name or an address
	Role    string    `json:"role"`
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
}

// OperatorAccessData belong to OperatorAccess.
type OperatorAccessData struct {
	Server  string    `json:"server"`        // its host
	By      string    `json:"by"`            // the account on the server's machine that ran the command
	New     bool      `json:"new,omitempty"` // the person was just made an operator
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
}

// SignInAlertData belong to SignInAlert: something about an account that its person should hear of.
type SignInAlertData struct {
	Name    string    `json:"name,omitempty"`
	What    string    `json:"what,omitempty"` // a sentence; empty: "There was a new sign-in to your account."
	At      time.Time `json:"at"`
	Address string    `json:"address,omitempty"`
	Browser string    `json:"browser,omitempty"`
	Link    string    `json:"link,omitempty"`   // where sessions are ended and the password changed
	Advice  string    `json:"advice,omitempty"` // what to do if it was not the person; empty: end all sessions and choose a new password
}

// NoticeData belong to Notice and Digest.
type NoticeData struct {
	Tenant      string          `json:"tenant"` // its id
	TenantName  string          `json:"tenant_name"`
	Kind        string          `json:"kind"` // notice.Kind
	At          time.Time       `json:"at"`
	Details     json.RawMessage `json:"details"`     // of the notice
	Dashboard   string          `json:"dashboard"`   // the address of the tenant's pages, without a slash at the end
	Preferences string          `json:"preferences"` // where the person chooses what to get; needs no sign-in
	Unsubscribe string          `json:"unsubscribe"` // stops mails of this kind: RFC 8058's one-click address
}

// ConfirmContactData belong to ConfirmContact.
type ConfirmContactData struct {
	Tenant string `json:"tenant"` // its name
	Link   string `json:"link"`   // where the recipient agrees
}

// OperatorAlertData belong to OperatorAlert.
type OperatorAlertData struct {
	What     string    `json:"what"` // a sentence
	Facts    []Fact    `json:"facts,omitempty"`
	Link     string    `json:"link,omitempty"`
	LinkText string    `json:"link_text,omitempty"`
	At       time.Time `json:"at"`
}

// Text are the facts, one a line.
func (d OperatorAlertData) Text() string {
	lines := make([]string, len(d.Facts))
	for i, f := range d.Facts {
		lines[i] = f.Name + ": " + f.Value
	}
	return strings.Join(lines, "\n")
}

// Fact is a line of a table.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
