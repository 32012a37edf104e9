package emails

import (
	"cmp"
	"fmt"
	"strings"

	"posthorn/domain/mail"
)

const whyAccount = "You get this mail because somebody gave this address to Posthorn."

// hello begins a letter to a person whose name may not be known.
func hello(name string) Block {
	if name = clip(name, 80); name == "" {
		return text("Hello,")
	}
	return text("Hello %s,", name)
}

// VerifyAddress asks whether an address is its owner's.
func VerifyAddress(d mail.VerifyAddressData) Letter {
	if d.Change {
		return Letter{
			Subject: "Confirm your new e-mail address",
			Preview: "Your account keeps its old address until you confirm this one.",
			Heading: "Confirm your new e-mail address",
			Body: []Block{
				hello(d.Name),
				text("you asked to use this address for your Posthorn account. Confirm that it is yours:"),
				button("Use this address", d.Link),
				text("The link works once, until %s. Until then you sign in with your old address. If you did not ask for this, do nothing.", moment(d.Expires)),
			},
			Why: whyAccount,
		}
	}
	return Letter{
		Subject: "Confirm your e-mail address",
		Preview: "One click, and your account is ready.",
		Heading: "Confirm your e-mail address",
		Body: []Block{
			hello(d.Name),
			text("somebody, we think you, has given this address to Posthorn. Confirm that it is yours:"),
			button("Confirm this address", d.Link),
			text("The link works once, until %s. If it was not you, do nothing: without the confirmation the address is not used.", moment(d.Expires)),
		},
		Why: whyAccount,
	}
}

// ResetPassword lets a person choose a new password.
func ResetPassword(d mail.ResetPasswordData) Letter {
	return Letter{
		Subject: "Choose a new password",
		Preview: "The link works once and for a short time.",
		Heading: "Choose a new password",
		Body: []Block{
			hello(d.Name),
			text("somebody has asked for a new password for your account. If it was you, choose one here:"),
			button("Choose a new password", d.Link),
			facts(Fact{"Works until", moment(d.Expires)}, Fact{"Asked for from", d.Address}),
			text("If it was not you, do nothing: your password stays as it is. If such mails keep coming, tell the people who run your Posthorn."),
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
			text("somebody, probably you, asked to create the tenant %s with this address. This address already has an account. Sign in to create the tenant:", tenant),
			button("Create "+tenant, d.Link),
			text("Forgot your password? Ask for a new one: %s", d.Reset),
			facts(Fact{"Asked for from", d.Address}),
			text("If it was not you, do nothing: nothing was created, and your account is unchanged."),
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
		as = fmt.Sprintf(" Your role would be %s.", d.Role)
	}
	return Letter{
		Subject: fmt.Sprintf("Join %s on Posthorn", tenant),
		Preview: fmt.Sprintf("%s invites you.", by),
		Heading: fmt.Sprintf("Join %s", tenant),
		Body: []Block{
			text("%s invites you to %s, where webhooks are sent and monitored.%s", by, tenant, as),
			button("Accept the invitation", d.Link),
			text("The link works once, until %s. If you do not know %s, do nothing.", moment(d.Expires), tenant),
		},
		Why: fmt.Sprintf("You get this mail because a member of %s wrote your address into an invitation.", tenant),
	}
}

// SignInAlert tells a person of something about the account.
func SignInAlert(d mail.SignInAlertData) Letter {
	what := strings.TrimSuffix(cmp.Or(d.What, "There was a new sign-in to your account"), ".")
	l := Letter{
		Subject: clip(what, 90),
		Preview: "If it was you, there is nothing to do.",
		Heading: what,
		Tone:    Careful,
		Body: []Block{
			hello(d.Name),
			text("this happened to your account:"),
			facts(Fact{"When", moment(d.At)}, Fact{"From", d.Address}, Fact{"With", clip(d.Browser, 120)}),
			text("If it was you, there is nothing to do. If not, %s", cmp.Or(d.Advice, "end all sessions and choose a new password now.")),
		},
		Why: "You get this mail because it is about the safety of your account. It can't be declined.",
	}
	if d.Link != "" {
		l.Body = append(l.Body, button("See my sessions", d.Link))
	}
	return l
}

// OperatorAlert tells the people who run Posthorn of what needs them.
func OperatorAlert(d mail.OperatorAlertData) Letter {
	var table Block
	for _, f := range d.Facts {
		table.Facts = append(table.Facts, Fact{f.Name, clip(f.Value, 300)})
	}
	l := Letter{
		Subject: clip("[operator] "+d.What, 120),
		Preview: "For the people who run this Posthorn.",
		Heading: clip(d.What, 200),
		Tone:    Bad,
		Body:    []Block{table, text("This was seen at %s.", moment(d.At))},
		Why:     "You get this mail because you are an operator of this Posthorn.",
	}
	if d.Link != "" {
		l.Body = append(l.Body, button(cmp.Or(d.LinkText, "Open the console"), d.Link))
	}
	return l
}
