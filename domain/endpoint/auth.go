package endpoint

import (
	"encoding/base64"
	"fmt"
	"slices"
)

// AuthType is a way to authenticate requests to a receiver, beside their signature.
type AuthType string

// The ways.
const (
	Bearer AuthType = "bearer"  // a fixed token (RFC 6750)
	Basic  AuthType = "basic"   // a user name and a password (RFC 7617)
	APIKey AuthType = "api_key" // a key in a header of the receiver's choice
	OAuth2 AuthType = "oauth2"  // tokens of the receiver's authorization server, by client credentials (RFC 6749)
)

// AuthTypes are the ways, the simplest first.
func AuthTypes() []AuthType { return []AuthType{Bearer, Basic, APIKey, OAuth2} }

// The ways to authenticate to a token endpoint, under the names of the IANA registry.
const (
	ClientSecretBasic = "client_secret_basic" // the default
	ClientSecretPost  = "client_secret_post"
	PrivateKeyJWT     = "private_key_jwt" // RFC 7523
	TLSClientAuth     = "tls_client_auth" // RFC 8705: the endpoint's client certificate
)

// ClientAuths are the ways to authenticate to a token endpoint, the default first.
func ClientAuths() []string {
	return []string{ClientSecretBasic, ClientSecretPost, PrivateKeyJWT, TLSClientAuth}
}

// authorization is the header of every way but that of a key.
const authorization = "Authorization"

// Auth is with what requests authenticate to the receiver. It is stored sealed, as its JSON.
type Auth struct {
	Type     AuthType     `json:"type"`
	Username string       `json:"username,omitempty"` // of Basic
	Header   string       `json:"header,omitempty"`   // of APIKey
	Client   *OAuthClient `json:"client,omitempty"`   // of OAuth2
	Secret   string       `json:"secret,omitempty"`   // write-only; the API has it under SecretField
}

// OAuthClient is what Posthorn is to an authorization server, and which tokens it asks for.
type OAuthClient struct {
	TokenURL string   `json:"token_url"`
	ID       string   `json:"id"`
	Auth     string   `json:"auth"`
	KeyID    string   `json:"key_id,omitempty"`   // of PrivateKeyJWT, where the server has several keys
	Claimed  string   `json:"aud,omitempty"`      // of PrivateKeyJWT: for whom the assertion is; empty: the token endpoint
	Scopes   []string `json:"scopes,omitempty"`   // separated by spaces on the wire
	Audience string   `json:"audience,omitempty"` // a parameter of some servers
	Resource string   `json:"resource,omitempty"` // RFC 8707
}

// Fields are the API's names of what a way to authenticate has, beside its type. clientAuth is the way to authenticate
// to a token endpoint.
func (t AuthType) Fields(clientAuth string) []string {
	switch t {
	case Bearer:
		return []string{"token"}
	case Basic:
		return []string{"username", "password"}
	case APIKey:
		return []string{"header", "key"}
	case OAuth2:
		own := []string{"token_url", "client_id", "client_auth", "scopes", "audience", "resource"}
		switch clientAuth {
		case PrivateKeyJWT:
			return append(own, "key_id", "assertion_audience", "private_key")
		case TLSClientAuth:
			return own
		}
		return append(own, "client_secret")
	}
	return nil
}

// WriteOnly reports whether a field of an endpoint's connection or authentication is a secret, by its name in the API.
func WriteOnly(name string) bool {
	switch name {
	case "password", "secret", "token", "key", "client_secret", "private_key", "secret_access_key":
		return true
	}
	return false
}

// Format keeps the secret out of logs whatever the verb.
func (a Auth) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(a.Type + " redacted")) }

// Clone is a copy that shares nothing with a.
func (a *Auth) Clone() *Auth {
	if a == nil {
		return nil
	}
	c := *a
	if c.Client = clonePointer(a.Client); c.Client != nil {
		c.Client.Scopes = slices.Clone(c.Client.Scopes)
	}
	return &c
}

// SecretField is the API's name of the secret of a way to authenticate; empty where it has none.
func (t AuthType) SecretField(clientAuth string) string {
	if own := t.Fields(clientAuth); len(own) > 0 && WriteOnly(own[len(own)-1]) {
		return own[len(own)-1]
	}
	return ""
}

// SecretField is the API's name of the secret; empty where the way has none.
func (a Auth) SecretField() string { return a.Type.SecretField(a.clientAuth()) }

func (a Auth) clientAuth() string {
	if a.Client == nil {
		return ""
	}
	return a.Client.Auth
}

// Tokens reports whether requests need a token of an authorization server.
func (a *Auth) Tokens() bool { return a != nil && a.Type == OAuth2 }

// HeaderName is the header that carries the proof.
func (a Auth) HeaderName() string {
	if a.Type == APIKey {
		return a.Header
	}
	return authorization
}

// HeaderValue is the header's value where the secret is sent itself.
func (a Auth) HeaderValue() string {
	switch a.Type {
	case Basic:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Secret))
	case APIKey:
		return a.Secret
	}
	return "Bearer " + a.Secret
}

// HeaderShown is the header's value for people.
func (a Auth) HeaderShown() string {
	switch a.Type {
	case Basic:
		return "Basic " + Marker
	case APIKey:
		return Marker
	}
	return "Bearer " + Marker
}

// Label is the way for people; empty for an unknown one.
func (t AuthType) Label() string {
	switch t {
	case Bearer:
		return "Bearer token"
	case Basic:
		return "User name and password"
	case APIKey:
		return "API key in a header"
	case OAuth2:
		return "OAuth 2.0 client credentials"
	}
	return ""
}

// Authenticates lists with what requests authenticate to the receiver beside their signature, for people: "OAuth 2.0
// client credentials", "client certificate until 2 January 2027". It is empty for an endpoint that has none.
func (s Settings) Authenticates() (ways []string) {
	if s.Auth != nil {
		ways = append(ways, s.Auth.Type.Label())
	}
	if ends := s.TLS.Ends(); !ends.IsZero() {
		ways = append(ways, "client certificate until "+ends.UTC().Format("2 January 2006"))
	}
	return ways
}
