package account

import (
	"net/mail"
	"strings"

	"golang.org/x/net/idna"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

const maxEmail = 254 // bytes (RFC 5321, section 4.5.3.1.3)

// domains reads international domain names as browsers and mail servers do (UTS 46, nontransitional).
var domains = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.Transitional(false),
	idna.CheckHyphens(false),
	idna.StrictDomainName(true),
)

// Email is an address as accounts are found by it: trimmed, with ASCII letters in lower case, and with the domain in
// ASCII, so that both forms of an international domain are one mailbox. Other letters before the @ stay as they are:
// the lower case of some, as of the Kelvin sign, is another mailbox's. The error is a *fault.Error with code
// email_invalid and field email.
func Email(text string) (string, error) {
	text = strings.TrimSpace(text)
	address, err := mail.ParseAddress(text)
	if err != nil || address.Name != "" || address.Address != text || len(text) > maxEmail || !characters.Line(text) {
		return "", errEmail
	}
	at := strings.LastIndexByte(text, '@')
	domain := text[at+1:]
	if !isASCII(domain) || strings.Contains(strings.ToLower(domain), "xn--") {
		if domain, err = domains.ToASCII(domain); err != nil {
			return "", errEmail
		}
	}
	domain = strings.ToLower(domain)
	if !isDomain(domain) || at+1+len(domain) > maxEmail {
		return "", errEmail
	}
	return lowerASCII(text[:at+1]) + domain, nil
}

var errEmail = fault.InvalidField("email", "email_invalid", "This isn't a valid email address. Use the form ada@example.com.")

// Mailbox is Email for an address to which mails are to be sent. Few mail servers deliver to letters before the @ that
// aren't ASCII, so that these are rejected.
func Mailbox(text string) (string, error) {
	email, err := Email(text)
	if err == nil && !isASCII(email) {
		return "", fault.InvalidField(
			"email",
			"email_invalid",
			"Email can't be sent to this address: before the @, it has letters other than a to z. Use another address of this person.",
		)
	}
	return email, err
}

// Shown is an address, or the domain of one, as people read it: international domains in their own letters.
func Shown(email string) string {
	at := strings.LastIndexByte(email, '@')
	domain, err := domains.ToUnicode(email[at+1:])
	if err != nil {
		return email
	}
	return email[:at+1] + domain
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// isDomain reports whether a mail can go to a domain of this form: a name of two labels or more, in lower case, and no
// address. The last label of a name has two characters or more and is no number (RFC 3696, section 2).
func isDomain(domain string) bool {
	labels := strings.Split(domain, ".")
	for _, label := range labels {
		bad := strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
		if label == "" || len(label) > 63 || bad || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && len(last) > 1 && strings.ContainsAny(last, "abcdefghijklmnopqrstuvwxyz")
}
