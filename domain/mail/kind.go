// Package mail says which mails Posthorn sends, and how the sender behaves when a provider does not take one.
package mail

import "slices"

// Kind is the template of a mail.
type Kind string

// The kinds.
const (
	VerifyAddress  Kind = "verify_address"
	ResetPassword  Kind = "reset_password"
	AccountExists  Kind = "account_exists" // a sign-up used the address of an account
	Invitation     Kind = "invitation"
	OperatorAccess Kind = "operator_access" // a link that sets an operator's password
	SignInAlert    Kind = "sign_in_alert"
	Notice         Kind = "notice"
	Digest         Kind = "digest"
	OperatorAlert  Kind = "operator_alert"
	ConfirmContact Kind = "confirm_contact" // asks a contact of a tenant whether notices can be sent there
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{
		VerifyAddress, ResetPassword, AccountExists, Invitation, OperatorAccess, SignInAlert, Notice, Digest, OperatorAlert,
		ConfirmContact,
	}
}

// Known reports whether there is such a kind.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Secret reports whether the mail's data holds a link that is as good as a password, so that it is sealed at rest and
// forgotten when the mail is sent.
func (k Kind) Secret() bool {
	return slices.Contains([]Kind{VerifyAddress, ResetPassword, Invitation, OperatorAccess}, k)
}

// InvitationFailed says that the mail with an invitation failed permanently.
const InvitationFailed = "The email with the link failed. Check the address, then invite it again."
