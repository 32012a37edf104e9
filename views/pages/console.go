package pages

import "posthorn/views/layout"

// ConsoleHomeView is where an operator arrives.
type ConsoleHomeView struct {
	Shell layout.Shell
	Email string
	TOTP  bool
}
