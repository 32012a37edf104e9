package pages

import "time"

// PasskeyWay is a button that signs in with a passkey. It is shown where a script runs and the browser has passkeys.
type PasskeyWay struct {
	Label   string
	Action  string // where the form goes
	Options string // where the script asks what to ask the browser for
	Next    string
}

// PasskeyLine is a passkey of an account.
type PasskeyLine struct {
	ID, Name string
	Created  time.Time
	Used     *time.Time
}
