package pages

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// TenantsView lists the tenants of a person.
type TenantsView struct {
	Shell   layout.Shell
	Tenants []TenantLine
	Signup  bool // anybody can create one
}

// TenantLine is one of them.
type TenantLine struct {
	ID, Name, Role string
	Suspended      bool
}

// AccountView is the page of a person's own account.
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

// secondFactor names the second factor that is on, and how many recovery codes are left.
func (v AccountView) secondFactor() string {
	text := components.Many(int64(v.RecoveryCodes), "recovery code left.", "recovery codes left.")
	if v.TOTP {
		return text
	}
	return "Your passkey. " + text
}

// SessionLine is one browser with a session of the person.
type SessionLine struct {
	ID      string
	Browser string
	Address string
	Created time.Time
	Seen    time.Time
	Own     bool // the session of this request
}

// SetupView is the setup of a second factor: a seed to scan or type.
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

// secondFactorOff is the address of the form that turns the second factor off.
func secondFactorOff(v AccountView) string {
	if v.TOTP {
		return "/account/totp/off"
	}
	return "/account/passkeys/optional"
}
