package pages

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// TenantsView is the tenants that a person belongs to.
type TenantsView struct {
	Shell   layout.Shell
	Tenants []TenantLine
	Signup  bool // anybody may create one
}

// TenantLine is one of them.
type TenantLine struct {
	ID, Name, Role string
	Suspended      bool
}

// AccountView is a person's own page.
type AccountView struct {
	Shell         layout.Shell
	Name, Email   components.FieldProps
	Password      components.FieldProps
	TOTP          bool
	RecoveryCodes int // how many are left
	Sessions      []SessionLine
	Passkeys      []PasskeyLine
	PasskeyName   components.FieldProps
	MayAddPasskey bool // the server has a host name

	PasskeyRequired   bool // after the password
	MayRequirePasskey bool
}

// SessionLine is one browser in which the person is signed in.
type SessionLine struct {
	ID      string
	Browser string
	Address string
	Created time.Time
	Seen    time.Time
	Own     bool // the one that asks
}

// SetupView is the second factor about to be set up: a seed to be scanned or typed.
type SetupView struct {
	Shell  layout.Shell
	Action string
	Secret string // in groups of four
	QR     QR
	Code   components.FieldProps
}

// QR is a QR code: a square of Size modules, the dark ones as an SVG path.
type QR struct {
	Size int
	Path string
}

// CodesView shows recovery codes, once.
type CodesView struct {
	Shell layout.Shell
	Codes string // one a line
	Next  string
}

// secondFactorOff is where the form goes that turns the second factor off.
func secondFactorOff(v AccountView) string {
	if v.TOTP {
		return "/account/totp/off"
	}
	return "/account/passkeys/optional"
}
