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

// ssoProviders are the steps at the providers that most members use, and the form of their issuers.
var ssoProviders = []struct {
	Name, Issuer string
	Steps        []string
}{
	{"Okta", "https://YOUR-ORG.okta.com", []string{
		"In the Admin Console, open Applications, Create App Integration. Select OIDC and Web Application.",
		"Enter the redirect URI above as the Sign-in redirect URI. Leave the grant type Authorization Code.",
		"Under Assignments, select who can sign in.",
		"Copy the Client ID and the client secret. The issuer is the address of your organization.",
		"For roles: on the tab Sign On, edit the OpenID Connect ID Token, and add a groups claim filter with the name groups.",
	}},
	{"Microsoft Entra ID", "https://login.microsoftonline.com/TENANT-ID/v2.0", []string{
		"In the Entra admin center, open App registrations, New registration. Select the platform Web, and enter the redirect URI above.",
		"Copy the Application (client) ID and the Directory (tenant) ID. The issuer has the directory's id.",
		"Under Certificates & secrets, create a client secret, and copy its value.",
		"Under Token configuration, add the optional claim email to the ID token. For roles, add a groups claim.",
		"Entra doesn't send email_verified: check Accept addresses without it below.",
	}},
	{"Google Workspace", "https://accounts.google.com", []string{
		"In the Google Cloud console, open Google Auth Platform, and set the audience to Internal.",
		"Under Clients, create an OAuth client of the type Web application, and enter the redirect URI above.",
		"Copy the client ID and the client secret.",
		"Google sends no groups: select the role of everyone else below, and change roles in Posthorn.",
	}},
}
