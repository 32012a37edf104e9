package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/domain/endpoint"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// authForm shows the authentication to the receiver in the form.
func authForm(s endpoint.Settings) pages.AuthForm {
	f := pages.AuthForm{ClientAuth: endpoint.ClientSecretBasic}
	a := s.Auth
	if a == nil {
		return f
	}
	f.Type, f.Username, f.Header, f.Stored = string(a.Type), a.Username, a.Header, a.SecretField()
	if c := a.Client; c != nil {
		f.TokenURL, f.ClientID, f.ClientAuth, f.KeyID, f.Claimed = c.TokenURL, c.ID, c.Auth, c.KeyID, c.Claimed
		f.Scopes, f.Audience, f.Resource = strings.Join(c.Scopes, " "), c.Audience, c.Resource
	}
	return f
}

// typedAuth is the authentication as it was sent, without its secret.
func typedAuth(in url.Values) pages.AuthForm {
	return pages.AuthForm{
		Type:       in.Get("auth_type"),
		Username:   in.Get("auth_username"),
		Header:     in.Get("auth_header"),
		TokenURL:   in.Get("auth_token_url"),
		ClientID:   in.Get("auth_client_id"),
		ClientAuth: in.Get("auth_client_auth"),
		KeyID:      in.Get("auth_key_id"),
		Claimed:    in.Get("auth_assertion_audience"),
		Scopes:     in.Get("auth_scopes"),
		Audience:   in.Get("auth_audience"),
		Resource:   in.Get("auth_resource"),
	}
}

// authJSON is the authentication of the form as the API has it. The form has the inputs of every way; those of the
// others are left out.
func authJSON(in url.Values) json.RawMessage {
	kind := endpoint.AuthType(in.Get("auth_type"))
	if kind == "" {
		return json.RawMessage("null")
	}
	out := map[string]any{"type": kind}
	for _, name := range kind.Fields(in.Get("auth_client_auth")) {
		switch text := strings.TrimSpace(in.Get("auth_" + name)); {
		case text == "":
		case name == "scopes":
			out[name] = endpoint.Split(text)
		default:
			out[name] = text
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // texts and lists of texts
	}
	return raw
}

// tlsForm shows the TLS settings in the form.
func tlsForm(s endpoint.Settings) pages.TLSForm {
	if s.TLS == nil {
		return pages.TLSForm{}
	}
	return pages.TLSForm{Certificate: s.TLS.Certificate, CA: s.TLS.CA, KeyIsStored: s.TLS.Key != "", Ends: s.TLS.Ends(), Request: s.TLS.Request}
}

// tlsJSON is the TLS settings of the form as the API has them.
func tlsJSON(in url.Values) json.RawMessage {
	out := map[string]any{}
	for _, name := range []string{"client_certificate", "private_key", "ca_certificate"} {
		if text := strings.TrimSpace(in.Get("tls_" + name)); text != "" {
			out[name] = text
		} else if name != "private_key" {
			out[name] = nil
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // texts
	}
	return raw
}

// requestCertificate creates a certificate signing request, which the settings page shows.
func (a *dashboard) requestCertificate(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	form, err := c.Form()
	if err != nil {
		return err
	}
	err = c.Tx(func(q *db.Tx) error {
		_, err := a.editor(c).Edit(c.Ctx(), q, c.Actor.Tenant, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
			s, err := s.RequestCertificate(rand.Reader, form.Get("common_name"))
			if err != nil {
				return s, err
			}
			return s.Check(a.Egress)
		})
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(endpointPath(c, endpointID)+"/settings", "Certificate signing request created. Have it signed, then install the certificate under Authentication.")
}
