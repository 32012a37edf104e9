package pages

// PasskeyWay is a button that signs in with a passkey. It is shown if a script runs and the browser supports passkeys.
type PasskeyWay struct {
	Label   string
	Action  string // the form's address
	Options string // the address of the options for the browser's passkey request
	Next    string
}
