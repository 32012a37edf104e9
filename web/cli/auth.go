package cli

import (
	"context"

	"posthorn/client"
	"posthorn/domain/endpoint"
)

// access are the flags of how requests authenticate to the receiver.
type access struct {
	Auth      string   `placeholder:"TYPE" help:"How requests authenticate to the receiver, beside their signature: bearer, basic, api_key, or oauth2; none removes it."`
	Secret    *string  `name:"auth-secret" placeholder:"@FILE" help:"The token, password, key, client secret, or private key of --auth: @FILE or - for stdin."`
	User      string   `name:"auth-user" placeholder:"NAME" help:"The user name of --auth basic."`
	Header    string   `name:"auth-header" placeholder:"NAME" help:"The header of --auth api_key."`
	TokenURL  string   `name:"auth-token-url" placeholder:"URL" help:"The token endpoint of --auth oauth2."`
	ClientID  string   `name:"auth-client-id" placeholder:"ID" help:"The client id of --auth oauth2."`
	ClientWay string   `name:"auth-client-auth" placeholder:"HOW" help:"How the client authenticates to the token endpoint: client_secret_basic, client_secret_post, private_key_jwt, or tls_client_auth."`
	KeyID     string   `name:"auth-key-id" placeholder:"ID" help:"The kid of the assertion of private_key_jwt."`
	Claimed   string   `name:"auth-assertion-audience" placeholder:"AUD" help:"The aud of the assertion of private_key_jwt. Default: the token URL."`
	Scopes    []string `name:"auth-scopes" placeholder:"SCOPE" help:"The scopes to request."`
	Audience  string   `name:"auth-audience" placeholder:"AUD" help:"The parameter audience of the request for a token."`
	Resource  string   `name:"auth-resource" placeholder:"URI" help:"The parameter resource of the request for a token."`
	Own       *string  `name:"client-certificate" placeholder:"@FILE" help:"The client certificate that the receiver asks for, in PEM: @FILE or - for stdin; none removes it."`
	OwnKey    *string  `name:"client-key" placeholder:"@FILE" help:"The private key of --client-certificate: @FILE or - for stdin."`
	Authority *string  `name:"receiver-ca" placeholder:"@FILE" help:"Trust only these certificate authorities for the receiver, in PEM: @FILE or - for stdin; none removes them."`
}

// setTLS writes the flags over a body's TLS settings.
func (a access) setTLS(ctx context.Context, e *Env, fields map[string]any) error {
	given := map[string]any{}
	for name, flag := range map[string]*string{"client_certificate": a.Own, "private_key": a.OwnKey, "ca_certificate": a.Authority} {
		switch {
		case flag == nil:
		case *flag == "none" && name != "private_key":
			given[name] = nil
		default:
			text, err := input(ctx, e, *flag, nothing)
			if err != nil {
				return err
			}
			given[name] = string(text)
		}
	}
	if len(given) > 0 {
		fields["tls"] = given
	}
	return nil
}

// Run tests the connection to an endpoint's receiver.
func (c connectionCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	tested, err := sdk.TestConnection(ctx, c.ID, client.EndpointPatch{})
	if err := of(tested, err).print(c.shared, e, func(v client.ConnectionTest) {
		for _, s := range v.Steps {
			Fprintf(e.Stdout, "%-8s %-8s %8.1f ms  %s\n", string(s.Name), string(s.State), float64(s.DurationMs), s.Detail)
		}
	}); err != nil {
		return err
	}
	if !tested.OK {
		return fail(ExitFailed, "The connection failed.")
	}
	return nil
}

// Run creates a certificate signing request and prints it.
func (c certificateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var in client.CertificateRequestInput
	if c.CommonName != "" {
		in.CommonName = &c.CommonName
	}
	return of(sdk.RequestCertificate(ctx, c.ID, in)).print(c.shared, e, func(v client.Endpoint) {
		if own, err := v.TLS.Get(); err == nil {
			Fprintf(e.Stdout, "%s", optional(own.CertificateRequest))
		}
		e.notef("Have it signed, then run `posthorn endpoints update %s --client-certificate @FILE`.\n", v.ID)
	})
}

// set writes the flags over a body's authentication.
func (a access) set(ctx context.Context, e *Env, fields map[string]any) error {
	if err := a.setTLS(ctx, e, fields); err != nil {
		return err
	}
	given := map[string]any{}
	for name, text := range map[string]string{
		"username":           a.User,
		"header":             a.Header,
		"token_url":          a.TokenURL,
		"client_id":          a.ClientID,
		"client_auth":        a.ClientWay,
		"key_id":             a.KeyID,
		"assertion_audience": a.Claimed,
		"audience":           a.Audience,
		"resource":           a.Resource,
	} {
		if text != "" {
			given[name] = text
		}
	}
	if len(a.Scopes) > 0 {
		given["scopes"] = a.Scopes
	}
	switch {
	case a.Auth == "" && a.Secret == nil && len(given) == 0:
		return nil
	case a.Auth == "none":
		fields["auth"] = nil
		return nil
	case a.Auth == "":
		return fail(ExitUsage, "The flags of an authentication need its type: --auth bearer, basic, api_key, or oauth2.")
	}
	given["type"] = a.Auth
	if field := endpoint.AuthType(a.Auth).SecretField(a.ClientWay); a.Secret != nil && field != "" {
		text, err := input(ctx, e, *a.Secret, nothing)
		if err != nil {
			return err
		}
		given[field] = string(text)
	}
	fields["auth"] = given
	return nil
}
