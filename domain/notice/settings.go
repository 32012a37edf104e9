package notice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/health"
)

// Settings are a tenant's own, in its settings.
type Settings struct {
	// Contacts are addresses that get notices as an owner would, beside the members: a mailing list, or the customer of
	// a provider whose people do not sign in here.
	Contacts []string `json:"contacts"`
	NoDigest bool     `json:"no_digest"` // no recipient gets a daily summary: the mute of that kind
	// Muted are the other kinds that the tenant muted, in the order in which preferences are shown.
	Muted []Kind `json:"muted_notices"`
}

// Mutes reports whether the tenant muted a kind.
func (s Settings) Mutes(k Kind) bool {
	return k == Digest && s.NoDigest || k != Digest && slices.Contains(s.Muted, k)
}

// Mute mutes a kind, or ends its mute.
func (s Settings) Mute(kind Kind, muted bool) Settings {
	if kind == Digest {
		s.NoDigest = muted
		return s
	}
	s.Muted = slices.DeleteFunc(Kinds(), func(k Kind) bool {
		return k == Digest || k != kind && !s.Mutes(k) || k == kind && !muted
	})
	return s
}

// Silences reports whether a notice of a kind is kept from being sent, by mail and to channels alike: by the tenant's
// mute of the kind, or by the mute of its endpoint's alerts.
func (s Settings) Silences(k Kind, endpoint health.Mute, at time.Time) bool {
	return s.Mutes(k) || k.Mutable() && endpoint.Holds(at)
}

// MutedKinds reads the kinds that a tenant mutes, without the digest, which has a switch of its own. The error is a
// *fault.Error that names field and the place of each invalid kind ("muted_notices.1").
func MutedKinds(field string, given []string) ([]Kind, error) {
	var wrong []fault.Field
	kinds := mutableKinds()
	for i, text := range given {
		if slices.Contains(kinds, Kind(text)) {
			continue
		}
		detail := fmt.Sprintf("%q is not a kind of notice. The kinds are %s.", text, joinKinds(kinds))
		if Kind(text) == Digest {
			detail = "The digest has a setting of its own: digest."
		}
		wrong = append(wrong, fault.Field{Name: field + "." + strconv.Itoa(i), Code: "notice_kind_unknown", Detail: detail})
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong)
	}
	return slices.DeleteFunc(kinds, func(k Kind) bool { return !slices.Contains(given, string(k)) }), nil
}

// mutableKinds are the kinds that a list of mutes can name.
func mutableKinds() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == Digest })
}

func joinKinds(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// MaxContacts bounds how many of them there are.
const MaxContacts = 20

// ReadSettings decodes what concerns notices in a tenant's settings. What can't be read counts as not set: it was
// checked when it was saved.
func ReadSettings(all []byte) Settings {
	var s Settings
	if json.Unmarshal(all, &s) != nil {
		return Settings{}
	}
	s.Contacts = s.Contacts[:min(len(s.Contacts), MaxContacts)]
	return s
}

// Contacts are addresses as a tenant's settings keep them: in lower case, each once, in their order. The error is a
// *fault.Error that names field, or field and the place of each invalid address ("contacts.1").
func Contacts(field string, given []string) ([]string, error) {
	if len(given) > MaxContacts {
		return nil, fault.InvalidField(field, "contacts_range", fmt.Sprintf("A tenant can have at most %d contacts; there are %d. Use a mailing list instead.", MaxContacts, len(given)))
	}
	var wrong []fault.Field
	kept := []string{}
	for i, text := range given {
		address, err := account.Mailbox(text)
		switch e := fault.As(err); {
		case e != nil:
			cure := "Use the form ada@example.com."
			if _, err := account.Email(text); err == nil {
				cure = e.Detail
			}
			shown := []rune(strings.ToValidUTF8(text, "?"))
			wrong = append(wrong, fault.Field{
				Name:   field + "." + strconv.Itoa(i),
				Code:   e.Code,
				Detail: fmt.Sprintf("%q isn't a valid email address. %s", string(shown[:min(len(shown), 100)]), cure),
			})
		case !slices.Contains(kept, address):
			kept = append(kept, address)
		}
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong)
	}
	return kept, nil
}

// Write lays s over a tenant's settings. A value that equals the default is left out.
func (s Settings) Write(all []byte) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if len(all) > 0 {
		if err := json.Unmarshal(all, &members); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	delete(members, "contacts")
	delete(members, "no_digest")
	delete(members, "muted_notices")
	if len(s.Contacts) > 0 {
		members["contacts"], _ = json.Marshal(s.Contacts) // texts alone
	}
	if s.NoDigest {
		members["no_digest"] = json.RawMessage("true")
	}
	if len(s.Muted) > 0 {
		members["muted_notices"], _ = json.Marshal(s.Muted) // texts alone
	}
	return json.Marshal(members)
}
