package pages

import (
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// TenantsView lists the tenants of a person.
type TenantsView struct {
	Shell   layout.Shell
	Tenants []account.Membership
	Signup  bool // anybody can create one
}

// AccountView is the page of a user's own account.
type AccountView struct {
	Shell         layout.Shell
	User          account.User
	Session       id.UUID // of this request
	Name, Email   components.FieldProps
	Password      components.FieldProps
	PasskeyName   components.FieldProps
	MayAddPasskey bool // the server has a host name
	Sessions      []account.Session

	account.Security
}

// secondFactor names the second factor that is on, and how many recovery codes are left.
func (v AccountView) secondFactor() string {
	text := components.Many(int64(v.RecoveryCodes), "recovery code left.", "recovery codes left.")
	if v.Factors.App {
		return text
	}
	return "Your passkey. " + text
}

// root is the beginning of the paths of the account's forms.
func (v AccountView) root() string {
	if v.User.Kind == account.Operator {
		return "/console/account"
	}
	return "/account"
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
	if v.Factors.App {
		return "/account/totp/off"
	}
	return "/account/passkeys/optional"
}
