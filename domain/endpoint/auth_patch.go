package endpoint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"posthorn/domain/fault"
)

// authJSON is Auth as the API and files have it.
type authJSON struct {
	Type       AuthType `json:"type"`
	Token      string   `json:"token,omitempty"`
	Username   string   `json:"username,omitempty"`
	Password   string   `json:"password,omitempty"`
	Header     string   `json:"header,omitempty"`
	Key        string   `json:"key,omitempty"`
	TokenURL   string   `json:"token_url,omitempty"`
	ClientID   string   `json:"client_id,omitempty"`
	ClientAuth string   `json:"client_auth,omitempty"`
	Secret     string   `json:"client_secret,omitempty"`
	PrivateKey string   `json:"private_key,omitempty"`
	KeyID      string   `json:"key_id,omitempty"`
	Claimed    string   `json:"assertion_audience,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
	Audience   string   `json:"audience,omitempty"`
	Resource   string   `json:"resource,omitempty"`
}

// auth is what was asked for. An empty secret is one to keep.
func (in authJSON) auth() *Auth {
	a := &Auth{Type: in.Type}
	switch in.Type {
	case Bearer:
		a.Secret = in.Token
	case Basic:
		a.Username, a.Secret = in.Username, in.Password
	case APIKey:
		a.Header, a.Secret = in.Header, in.Key
	case OAuth2:
		a.Client = &OAuthClient{
			TokenURL: in.TokenURL,
			ID:       in.ClientID,
			Auth:     in.ClientAuth,
			Scopes:   slices.Clone(in.Scopes),
			Audience: in.Audience,
			Resource: in.Resource,
		}
		if a.Client.Auth == "" {
			a.Client.Auth = ClientSecretBasic
		}
		switch a.Client.Auth {
		case PrivateKeyJWT:
			a.Secret, a.Client.KeyID, a.Client.Claimed = in.PrivateKey, in.KeyID, in.Claimed
		case TLSClientAuth:
		default:
			a.Secret = in.Secret
		}
	}
	return a
}

// shown is the authentication as the API shows it: without its secret.
func (a Auth) shown() authJSON {
	out := authJSON{Type: a.Type, Username: a.Username, Header: a.Header}
	if c := a.Client; c != nil {
		out.TokenURL, out.ClientID, out.ClientAuth, out.KeyID, out.Claimed = c.TokenURL, c.ID, c.Auth, c.KeyID, c.Claimed
		out.Scopes, out.Audience, out.Resource = c.Scopes, c.Audience, c.Resource
	}
	return out
}

// setAuth replaces the authentication; null removes it. A secret that is left out is kept by keepSecret.
func setAuth(s *Settings, raw json.RawMessage) error {
	var in *authJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return fault.InvalidField("auth", "body_malformed", "auth has another shape.")
	}
	if in == nil {
		s.Auth = nil
		return nil
	}
	if !slices.Contains(AuthTypes(), in.Type) {
		return fault.InvalidField("auth.type", "auth_type_unknown", "auth.type must be "+either(texts(AuthTypes()))+".")
	}
	s.Auth = in.auth()
	return unwantedIn(*in, *s.Auth)
}

// unwantedIn refuses fields that another way to authenticate has.
func unwantedIn(in authJSON, a Auth) error {
	given := reflect.ValueOf(in)
	for i := range given.NumField() {
		name, _, _ := strings.Cut(given.Type().Field(i).Tag.Get("json"), ",")
		if name != "type" && !given.Field(i).IsZero() && !slices.Contains(a.Type.Fields(a.clientAuth()), name) {
			way := string(a.Type)
			if a.Client != nil {
				way += " with " + a.Client.Auth
			}
			return fault.InvalidField("auth."+name, "auth_field_unwanted", fmt.Sprintf("auth of the type %s has no %s. Leave it out.", way, name))
		}
	}
	return nil
}

// showAuth is the authentication without its secret.
func showAuth(s Settings) any {
	if s.Auth == nil {
		return nil
	}
	return s.Auth.shown()
}

// keepSecret takes over the stored secret where none is given, as long as it goes to whom it was given for, under the
// same name: who can change an endpoint must not learn its secret by sending it elsewhere. given: the change has a new
// authentication.
func (s *Settings) keepSecret(before Settings, given bool) error {
	if s.Auth == nil || s.Auth.SecretField() == "" || before.Auth == nil || given && s.Auth.Secret != "" && s.Auth.Secret != Marker {
		return nil // Check asks for a secret that was never given
	}
	same, field := s.Auth.Clone(), s.Auth.SecretField()
	if same.Secret = before.Auth.Secret; !same.equal(before.Auth) || origin(s.URL) != origin(before.URL) {
		return fault.InvalidField("auth."+field, "auth_secret_needed",
			"Send "+field+" again. The stored one is kept only if the URL's host and who authenticates stay the same.")
	}
	s.Auth.Secret = before.Auth.Secret
	return nil
}

// equal reports whether a secret goes to the same place for the same one. Which tokens are asked for can differ.
func (a *Auth) equal(other *Auth) bool {
	x, y := a.Clone(), other.Clone()
	for _, c := range []*OAuthClient{x.Client, y.Client} {
		if c != nil {
			c.KeyID, c.Claimed, c.Scopes, c.Audience, c.Resource = "", "", nil, "", ""
		}
	}
	return reflect.DeepEqual(x, y)
}

// origin is the scheme, host and port of a URL; the text itself if it is none.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}
