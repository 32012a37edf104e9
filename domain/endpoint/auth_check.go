package endpoint

import (
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/words"
)

// The bounds of credentials, in bytes.
const (
	maxCredential = 8192
	maxUsername   = 255
	maxScopes     = 20
	maxParameter  = 500
)

// auth checks the authentication to the receiver. own are the headers of the endpoint's format.
func (c *collector) auth(s *Settings, own []string, policy egress.Policy) {
	a := s.Auth
	if a == nil {
		return
	}
	if s.Kind != HTTP {
		c.refuse("auth", "auth_unwanted", fmt.Sprintf("An endpoint of the kind %s has no auth. Leave it out.", s.Kind))
		return
	}
	if a.Type == Basic {
		c.credential("auth.username", a.Username, maxUsername)
		if strings.Contains(a.Username, ":") {
			c.refuse("auth.username", "auth_malformed", "A user name can't contain a colon, which ends it in the header.")
		}
	}
	switch field := a.SecretField(); field {
	case "":
		if s.TLS == nil || s.TLS.Certificate == "" {
			c.refuse("auth.client_auth", "auth_malformed", "tls_client_auth needs a client certificate. Send tls.client_certificate and tls.private_key.")
		}
	case "private_key":
		c.privateKey("auth."+field, &a.Secret)
	default:
		if c.credential("auth."+field, a.Secret, maxCredential) && a.Type == Bearer && strings.ContainsFunc(a.Secret, invisible) {
			c.refuse("auth.token", "auth_malformed", "A token has visible ASCII characters without spaces. Leave out the word Bearer, which is added.")
		}
	}
	if a.Client != nil {
		c.oauthClient(a.Client, policy)
	}
	c.authHeader(*s, own)
}

func invisible(r rune) bool { return r <= ' ' || r >= 0x7f }

// authHeader checks the header that carries the authentication, and that nothing else sets it.
func (c *collector) authHeader(s Settings, own []string) {
	name := s.Auth.HeaderName()
	if s.Auth.Type == APIKey {
		if f := fault.As(egress.CheckHeaders(map[string]string{name: s.Auth.Secret}, own...)); f != nil {
			c.refuse("auth.header", "auth_malformed", f.Fields[0].Detail)
			return
		}
	}
	for _, custom := range s.Headers.Names() {
		if strings.EqualFold(custom, name) {
			c.refuse(
				"custom_headers."+printable(custom),
				"custom_header_refused",
				fmt.Sprintf("The header %s is set by this endpoint's auth. Remove one of them.", printable(custom)),
			)
		}
	}
}

// credential checks a text that goes into a header or a form, and reports whether it is fit for one.
func (c *collector) credential(field, text string, most int) bool {
	if text == "" || text == Marker || len(text) > most || !clean(text) || strings.ContainsAny(text, "\r\n\t") {
		c.refuse(field, "auth_malformed", fmt.Sprintf("%s must have 1 to %s bytes of UTF-8, without control characters.", field, words.Number(most)))
		return false
	}
	return true
}

// oauthClient checks what is asked of an authorization server, and where. Its address is judged like a receiver's.
func (c *collector) oauthClient(o *OAuthClient, policy egress.Policy) {
	u, err := policy.CheckURL(o.TokenURL)
	switch f := fault.As(err); {
	case f != nil:
		c.refuse("auth.token_url", "auth_token_url_refused", strings.ReplaceAll(f.Fields[0].Detail, "The URL", "The token URL"))
	case err == nil:
		o.TokenURL = u.String()
	}
	c.credential("auth.client_id", o.ID, maxUsername)
	if !slices.Contains(ClientAuths(), o.Auth) {
		c.refuse("auth.client_auth", "auth_client_auth_unknown", "auth.client_auth must be "+either(ClientAuths())+".")
	}
	if o.Scopes = once(o.Scopes); len(o.Scopes) == 0 {
		o.Scopes = nil // as it is stored
	}
	if len(o.Scopes) > maxScopes || slices.ContainsFunc(o.Scopes, func(s string) bool {
		return s == "" || len(s) > maxParameter || strings.ContainsFunc(s, invisible) || strings.ContainsAny(s, `"\`)
	}) {
		c.refuse("auth.scopes", "auth_malformed", fmt.Sprintf(
			"There can be up to %d scopes, each of visible ASCII characters without spaces, quotation marks, and backslashes.", maxScopes))
	}
	for _, p := range []struct{ field, text string }{
		{"auth.key_id", o.KeyID},
		{"auth.assertion_audience", o.Claimed},
		{"auth.audience", o.Audience},
		{"auth.resource", o.Resource},
	} {
		if p.text != "" {
			c.credential(p.field, p.text, maxParameter)
		}
	}
}

// privateKey checks a private key, and leaves it in the form in which it is stored.
func (c *collector) privateKey(field string, text *string) {
	_, tidy, refusal := PrivateKey(*text)
	if refusal != "" {
		c.refuse(field, "private_key_refused", refusal)
		return
	}
	*text = tidy
}

// CheckConnection refuses a test of the connection of an endpoint that is sent to in another way than by HTTP.
func (s Settings) CheckConnection() error {
	if s.Kind == HTTP {
		return nil
	}
	return fault.New(fault.Conflict, "connection_test_unwanted",
		fmt.Sprintf("The connection of an endpoint of the kind %s can't be tested. Send a test event instead.", s.Kind))
}
