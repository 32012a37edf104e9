package pages

import (
	"strings"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/views/components"
)

// AuthForm holds the fields of an endpoint's authentication, as typed. Secrets are not shown again.
type AuthForm struct {
	Type       string // empty: none
	Username   string
	Header     string
	TokenURL   string
	ClientID   string
	ClientAuth string
	KeyID      string
	Claimed    string
	Scopes     string // with spaces between
	Audience   string
	Resource   string
	Stored     string // the name of the secret that is stored; empty: none
}

// TLSForm holds the fields of an endpoint's TLS settings, as typed. The key is not shown again.
type TLSForm struct {
	Certificate string
	CA          string
	KeyIsStored bool
	Ends        time.Time // when the stored certificate expires; zero: there is none
	Request     string    // a certificate signing request whose certificate is not installed yet
}

// line is the TLS settings in the line of their group.
func (t TLSForm) line() string {
	var parts []string
	if t.Certificate != "" {
		parts = append(parts, "client certificate")
	}
	if t.CA != "" {
		parts = append(parts, "own authority")
	}
	return strings.Join(parts, " · ")
}

// tlsText are the properties of the input of a text in PEM.
func (f EndpointForm) tlsText(name, label, value, hint string) components.FieldProps {
	return components.FieldProps{
		Name:        "tls_" + name,
		Label:       label,
		Value:       value,
		Optional:    true,
		Mono:        true,
		Rows:        3,
		Placeholder: "-----BEGIN CERTIFICATE-----",
		Error:       f.Wrong["tls."+name],
		Hint:        hint,
	}
}

// clientCertificate are the properties of the input of the client certificate.
func (f EndpointForm) clientCertificate() components.FieldProps {
	hint := "In PEM, with its intermediates. For receivers that ask for a certificate (mTLS)."
	if !f.TLS.Ends.IsZero() {
		hint += " This one expires on " + f.TLS.Ends.UTC().Format("2 January 2006") + "."
	}
	return f.tlsText("client_certificate", "Client certificate", f.TLS.Certificate, hint)
}

// clientKey are the properties of the input of the certificate's key.
func (f EndpointForm) clientKey() components.FieldProps {
	hint := "Stored encrypted and never shown."
	if f.TLS.KeyIsStored {
		hint = "Leave empty to keep the current one."
	}
	p := f.tlsText("private_key", "Private key of the certificate", "", hint)
	p.Placeholder = "-----BEGIN PRIVATE KEY-----"
	return p
}

func authTypeOptions() []components.Option {
	out := []components.Option{{Label: "None: requests are only signed", Value: ""}}
	for _, way := range endpoint.AuthTypes() {
		out = append(out, components.Option{Label: way.Label(), Value: string(way)})
	}
	return out
}

func clientAuthOptions() []components.Option {
	words := map[string]string{
		endpoint.ClientSecretBasic: "Client secret in the Authorization header",
		endpoint.ClientSecretPost:  "Client secret in the request's body",
		endpoint.PrivateKeyJWT:     "Private key (signed JWT)",
		endpoint.TLSClientAuth:     "Client certificate below",
	}
	var out []components.Option
	for _, way := range endpoint.ClientAuths() {
		out = append(out, components.Option{Label: words[way] + " (" + way + ")", Value: way})
	}
	return out
}

// line is the authentication in the line of its group.
func (a AuthForm) line() string {
	switch endpoint.AuthType(a.Type) {
	case endpoint.Bearer:
		return "bearer token"
	case endpoint.Basic:
		return "user name and password"
	case endpoint.APIKey:
		return "API key in a header"
	case endpoint.OAuth2:
		return "OAuth 2.0"
	}
	return "signature only"
}

// secret are the properties of the input of a secret.
func (f EndpointForm) secret(name, label string) components.FieldProps {
	p := components.FieldProps{
		Name:     "auth_" + name,
		Label:    label,
		Type:     "password",
		Complete: "new-password",
		Mono:     true,
		Error:    f.Wrong["auth."+name],
		Hint:     "Stored encrypted and never shown.",
	}
	if f.Auth.Stored == name {
		p.Hint = "Leave empty to keep the current one."
	}
	return p
}

// authText are the properties of the input of a text that everybody can see.
func (f EndpointForm) authText(name, label, value, hint string) components.FieldProps {
	return components.FieldProps{
		Name:  "auth_" + name,
		Label: label,
		Value: value,
		Mono:  true,
		Error: f.Wrong["auth."+name],
		Hint:  hint,
	}
}

// authMore are the properties of the input of a text that can be left out.
func (f EndpointForm) authMore(name, label, value, hint string) components.FieldProps {
	p := f.authText(name, label, value, hint)
	p.Optional = true
	return p
}

// privateKey are the properties of the input of a private key, which has several lines.
func (f EndpointForm) privateKey() components.FieldProps {
	p := f.secret("private_key", "Private key")
	p.Type, p.Rows, p.Placeholder = "", 4, "-----BEGIN PRIVATE KEY-----"
	p.Hint = "In PEM: RSA, ECDSA, or Ed25519. " + p.Hint
	return p
}

// wrongAuth is the error of the authentication that no other input shows.
func (f EndpointForm) wrongAuth() string {
	if text := f.Wrong["auth.type"]; text != "" {
		return text
	}
	return f.Wrong["auth"]
}
