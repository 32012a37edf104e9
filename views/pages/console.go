package pages

import (
	"posthorn/views/components"
	"posthorn/views/layout"
)

// ConsoleHomeView is the page of an operator's own account.
type ConsoleHomeView struct {
	Shell layout.Shell
	Email string
	TOTP  bool

	Passkeys      []PasskeyLine
	PasskeyName   components.FieldProps
	MayAddPasskey bool // the server has a host name
}
