package emails

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/mail"
	"posthorn/domain/words"
)

const whyAccount = "You're receiving this email because someone entered this address at Posthorn."

// hello starts a letter to a person whose name is possibly unknown.
func hello(name string) Block {
	if name = mail.TenantText(name); name == "" {
		return text("Hello,")
	}
	return text("Hello %s,", name)
}

// VerifyAddress asks the owner of an address to verify it.
func VerifyAddress(d mail.VerifyAddressData) Letter {
	if d.Change {
		return Letter{
			Subject: "Confirm your new email address",
			Preview: "Your account keeps its current address until you confirm the new one.",
			Heading: "Confirm your new email address",
			Body: []Block{
				hello(d.Name),
				text("You asked to use this address for your Posthorn account. Confirm that it's yours:"),
				button("Use this address", d.Link),
				text("The link works once, until %s. Until you confirm, you sign in with your current address. If you didn't ask for this, ignore this email.", moment(d.Expires)),
			},
			Why: whyAccount,
		}
	}
	return Letter{
		Subject: "Confirm your email address",
		Preview: "Confirm your address to activate your account.",
		Heading: "Confirm your email address",
		Body: []Block{
			hello(d.Name),
			text("Someone, probably you, signed up at Posthorn with this address. Confirm that it's yours:"),
			button("Confirm this address", d.Link),
			text("The link works once, until %s. If this wasn't you, ignore this email. The address isn't used without your confirmation.", moment(d.Expires)),
		},
		Why: whyAccount,
	}
}

// OperatorAccess lets an operator set a password.
func OperatorAccess(d mail.OperatorAccessData) Letter {
	l := Letter{
		Subject: fmt.Sprintf("Set your password for the console of %s", d.Server),
		Preview: "A link to set your password was created for you.",
		Heading: "Set your password",
		Why:     "You're receiving this email because you operate " + d.Server + ".",
	}
	what := fmt.Sprintf("%s created a new link for you on the server %s. Set your password for the operator console:", d.By, d.Server)
	if d.New {
		l.Subject = fmt.Sprintf("You're now an operator of %s", d.Server)
		l.Preview, l.Heading = "Set your password to open the console.", l.Subject
		what = fmt.Sprintf("%s made you an operator of the Posthorn server %s. Operators see all tenants in the console. Set your password to open it:", d.By, d.Server)
	}
	l.Body = []Block{
		text("Hello,"),
		text("%s", what),
		button("Set your password", d.Link),
		text("The link works once, until %s. If you don't expect this, ignore this email, and tell whoever runs %s.", moment(d.Expires), d.Server),
	}
	return l
}

// ResetPassword lets a person set a new password.
func ResetPassword(d mail.ResetPasswordData) Letter {
	return Letter{
		Subject: "Choose a new password",
		Preview: "The link works once and expires soon.",
		Heading: "Choose a new password",
		Body: []Block{
			hello(d.Name),
			text("Someone asked to reset the password of your account. If this was you, choose a new password:"),
			button("Choose a new password", d.Link),
			facts(Fact{"Valid until", moment(d.Expires)}, Fact{"Requested from", d.Address}),
			text("If this wasn't you, ignore this email. Your password doesn't change. If you keep getting these emails, contact the operator of your Posthorn server."),
		},
		Why: whyAccount,
	}
}

// AccountExists tells a person who signs up again that they have an account, and where to create the tenant with it.
func AccountExists(d mail.AccountExistsData) Letter {
	tenant := quoted(d.Tenant)
	return Letter{
		Subject: fmt.Sprintf("Sign in to create %s", tenant),
		Preview: "You already have an account with this address.",
		Heading: "You already have an account",
		Body: []Block{
			hello(d.Name),
			text("Someone, probably you, asked to create the tenant %s with this address, which already has an account. Sign in to create the tenant:", tenant),
			button("Create "+tenant, d.Link),
			text("Forgot your password?"),
			button("Choose a new password", d.Reset),
			facts(Fact{"Requested from", d.Address}),
			text("If this wasn't you, ignore this email. Nothing was created, and your account is unchanged."),
		},
		Why: whyAccount,
	}
}

// Invitation asks a person to join a tenant.
func Invitation(d mail.InvitationData) Letter {
	tenant := quoted(d.Tenant)
	by := "A member"
	if d.By != "" {
		by = quoted(d.By)
	}
	as := ""
	if d.Role != "" {
		as = fmt.Sprintf(" You'll join as %s.", words.A(d.Role))
	}
	return Letter{
		Subject: fmt.Sprintf("Join %s on Posthorn", tenant),
		Preview: fmt.Sprintf("%s invites you.", by),
		Heading: fmt.Sprintf("Join %s", tenant),
		Body: []Block{
			text("%s invites you to %s, where webhooks are sent and monitored.%s", by, tenant, as),
			button("Accept the invitation", d.Link),
			text("The link works once, until %s. If you don't know %s, ignore this email.", moment(d.Expires), tenant),
		},
		Why: fmt.Sprintf("You're receiving this because a member of %s invited you.", tenant),
	}
}

// ConfirmContact asks the owner of an address whether a tenant's notices can be sent there.
func ConfirmContact(d mail.ConfirmContactData) Letter {
	tenant := quoted(d.Tenant)
	return Letter{
		Subject: fmt.Sprintf("Confirm that you want notices of %s", tenant),
		Preview: "Nothing is sent to you until you confirm.",
		Heading: "Do you want these notices?",
		Body: []Block{
			text("%s entered this address to receive notices about its webhooks, such as an endpoint that was disabled.", tenant),
			button("Receive notices", d.Link),
			text("If you don't know %s, ignore this email. You get no notices without your confirmation.", tenant),
		},
		Why: fmt.Sprintf("You're receiving this because %s entered this address at Posthorn.", tenant),
	}
}

// SignInAlert tells a person about a change of the account's security.
func SignInAlert(d mail.SignInAlertData) Letter {
	what, more, _ := strings.Cut(cmp.Or(d.What, "New sign-in to your account"), ". ")
	what = strings.TrimSuffix(what, ".")
	l := Letter{
		Subject: clip(what, 90),
		Preview: "If this was you, no action is needed.",
		Heading: what,
		Tone:    Careful,
		Body: []Block{
			hello(d.Name),
			text("This happened on your account:"),
			facts(Fact{"When", moment(d.At)}, Fact{"From", d.Address}, Fact{"With", mail.TenantText(d.Browser)}),
			text("If this was you, no action is needed. If not, %s", cmp.Or(d.Advice, "sign out all sessions and choose a new password now.")),
		},
		Why: "You're receiving this because it concerns the security of your account. You can't unsubscribe from security emails.",
	}
	if more != "" {
		l.Body = slices.Insert(l.Body, 1, text("%s", more))
	}
	if d.Link != "" {
		l.Body = append(l.Body, button("View sessions", d.Link))
	}
	return l
}

// OperatorAlert alerts the operators.
func OperatorAlert(d mail.OperatorAlertData) Letter {
	var table Block
	for _, f := range d.Facts {
		table.Facts = append(table.Facts, Fact{f.Name, clip(mail.Unlinked(f.Value), 300)})
	}
	l := Letter{
		Subject: clip("[operator] "+mail.Unlinked(d.What), 120),
		Preview: "For the operators of this Posthorn server.",
		Heading: clip(mail.Unlinked(d.What), 200),
		Tone:    Bad,
		Body:    []Block{table, text("Detected at %s.", moment(d.At))},
		Why:     "You're receiving this because you're an operator of this Posthorn server.",
	}
	if d.Link != "" {
		l.Body = append(l.Body, button(cmp.Or(d.LinkText, "Open console"), d.Link))
	}
	return l
}
