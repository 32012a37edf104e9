// Package pages holds the pages, each beside its view model.
package pages

// SignInView is the form to sign in.
type SignInView struct {
	Shell  Frame
	Email  string // as it was typed
	Next   string // where to go afterwards
	Wrong  string // why it was refused; empty at first
	Signup bool   // anybody may create a tenant
}

// SignUpView is the form to create a tenant.
type SignUpView struct {
	Shell               Frame
	Email, Name, Tenant string // as they were typed
	Wrong               map[string]string
}

// SentView says that a mail is under way, whether there is an account or not.
type SentView struct {
	Shell        Frame
	MailIsLogged bool // mails go to the server's log
}

// SetPasswordView is the form behind a link in a mail.
type SetPasswordView struct {
	Shell  Frame
	Action string // where the form goes
	Token  string // of the link
	Email  string
	Tenant string // what is about to be made or joined; may be empty
	Name   string // as typed, where AskName
	Wrong  map[string]string
}
