package notice

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// Wants reports whether a recipient with a role gets a kind by mail: their choice, else the kind's default. A recipient
// never gets what the role can't see.
func (k Kind) Wants(role access.Role, chosen *bool) bool {
	switch {
	case !k.SeenBy(role):
		return false
	case chosen != nil:
		return *chosen
	}
	return k.MailedByDefault()
}

// Subscription is one recipient's mails of one kind in one tenant: what a link to unsubscribe is about.
type Subscription struct {
	Tenant    id.UUID
	Recipient string // see PersonRecipient and AddressRecipient
	Kind      Kind
}

// PersonRecipient is how preferences name a person, whose address can change.
func PersonRecipient(person id.UUID) string { return person.String() }

// AddressRecipient is how preferences name an address without a person.
func AddressRecipient(address string) string {
	if email, err := account.Email(address); err == nil {
		return email
	}
	return strings.ToLower(strings.TrimSpace(address))
}

// ContactConfirmed is the preference with which a contact agreed to get a tenant's notices. It is no kind of notices.
const ContactConfirmed Kind = "contact.confirmed"

type subscriptionText struct {
	Tenant    string `json:"t"`
	Recipient string `json:"r"`
	Kind      Kind   `json:"k"`
}

// Encode writes a subscription; the same one makes the same text.
func (s Subscription) Encode() []byte {
	// never fails: texts alone
	text, _ := json.Marshal(subscriptionText{id.Tenant.Format(s.Tenant), s.Recipient, s.Kind})
	return text
}

// ParseSubscription reads what Encode wrote; false for anything else.
func ParseSubscription(text []byte) (Subscription, bool) {
	var t subscriptionText
	if err := json.Unmarshal(text, &t); err != nil {
		return Subscription{}, false
	}
	tenant, err := id.Tenant.Parse(t.Tenant)
	if err != nil || t.Recipient == "" || !t.Kind.Known() {
		return Subscription{}, false
	}
	return Subscription{tenant, t.Recipient, t.Kind}, true
}

// RecipientPerson is the person that a recipient's name refers to; false for an address.
func RecipientPerson(recipient string) (id.UUID, bool) {
	raw, err := hex.DecodeString(strings.ReplaceAll(recipient, "-", ""))
	if err != nil || len(raw) != len(id.UUID{}) {
		return id.UUID{}, false
	}
	return id.UUID(raw), true
}
