package pages

import (
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// SSOView is the settings of a tenant's single sign-on.
type SSOView struct {
	Shell    layout.Shell
	Root     string // the page itself
	Settings string // the page of the tenant's settings
	On       bool   // a provider is set up
	Wrong    string // why nothing was saved, if no field is the cause
	Issuer   components.FieldProps
	ClientID components.FieldProps
	Secret   components.FieldProps
	Claim    components.FieldProps
	Roles    components.FieldProps
	Default  components.FieldProps
	Session  components.FieldProps
	Glass    components.FieldProps // the break-glass account
	Owners   []components.Option   // the owners who can be it
	Join     bool
	Trust    bool // addresses without email_verified count as verified
	Only     bool
	Callback string // the address that the provider requires
	Logout   string
	SignIn   string
	Domain   components.FieldProps
	Domains  []show.Domain
}

// SSORoles are the roles that a provider can give by default.
func SSORoles() []components.Option {
	return []components.Option{
		{Value: "", Label: "No role: reject them"}, {Value: "viewer", Label: "Viewer"}, {Value: "developer", Label: "Developer"}, {Value: "admin", Label: "Admin"},
	}
}

func (v SSOView) wrongs() map[string]string {
	wrong := map[string]string{"": v.Wrong}
	for _, f := range []components.FieldProps{
		v.Issuer, v.ClientID, v.Secret, v.Claim, v.Roles, v.Default, v.Session,
		v.Glass, v.Domain,
	} {
		if f.Error != "" {
			wrong[f.Name] = f.Error
		}
	}
	return wrong
}

// ssoFields are the fields in the order of the page.
var ssoFields = []string{"issuer", "client_id", "client_secret", "session_hours", "role_claim", "role_map", "default_role", "break_glass", "domain"}
