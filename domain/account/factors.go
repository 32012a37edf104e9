package account

// Factors are what a person has to sign in with beside a password.
type Factors struct {
	App      bool // an authenticator app is set up
	Passkeys int
	Required bool // the person wants a passkey after the password
}

// SecondFactor reports whether a password needs a second factor after it. An app is always asked for; a passkey is
// asked for where the person wants that: it is in one device, and another browser may have none.
func (f Factors) SecondFactor() bool { return f.App || f.RequiresPasskey() }

// RequiresPasskey reports whether the person's own wish asks for a second factor. Without a passkey it can't.
func (f Factors) RequiresPasskey() bool { return f.Required && f.Passkeys > 0 }

// CanRequire reports whether the person can choose that a passkey is asked for.
func (f Factors) CanRequire() bool { return f.Passkeys > 0 && !f.Required && !f.App }

// Security is what protects an account besides its password.
type Security struct {
	Passkeys      []Passkey
	Factors       Factors
	RecoveryCodes int // how many are left
}
