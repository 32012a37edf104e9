package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/client"
	"posthorn/domain/endpoint"
	"posthorn/domain/mcp"
	"posthorn/domain/signature"
	"posthorn/web/cli/desired"
)

// Server is what a file is compared with and applied to.
type Server struct {
	sdk      *client.Client
	platform bool          // the key is a platform key
	own      client.Tenant // of a tenant's key
	key      string        // to recognize the key itself, which is never revoked
	now      time.Time
}

// Connect learns whether the key is a platform key or a tenant's. key is the text that sdk was made with.
func Connect(ctx context.Context, sdk *client.Client, key string, now time.Time) (*Server, error) {
	s := &Server{sdk: sdk, key: key, now: now}
	own, err := sdk.GetOwnTenant(ctx)
	switch {
	case client.Code(err) == "tenant_required":
		s.platform = true
	case err != nil:
		return nil, err
	default:
		s.own = own
	}
	return s, nil
}

// within is the client that acts in a tenant.
func (s *Server) within(id string) *client.Client {
	if s.platform {
		return s.sdk.Tenant(id)
	}
	return s.sdk
}

// tenant finds the tenant of an object in the file: by its id, its external id, or its name if the object has no
// external id. It is nil if there is none yet.
func (s *Server) tenant(ctx context.Context, o desired.Object) (*client.Tenant, error) {
	external, _ := o.Fields["external_id"].(string)
	if !s.platform {
		if o.ID == s.own.ID || external != "" && value(s.own.ExternalID) == external || external == "" &&
			s.own.Name == o.Name {
			return &s.own, nil
		}
		return nil, fmt.Errorf("the API key belongs to the tenant %s (%s) and can't change %s: use a platform key, or leave that tenant out", s.own.Name, s.own.ID, o.Name)
	}
	for _, id := range []string{o.ID, external} {
		if id == "" {
			continue
		}
		t, err := s.sdk.GetTenant(ctx, id)
		if err == nil {
			return &t, nil
		}
		if !missing(err) {
			return nil, err
		}
	}
	if external != "" {
		return nil, nil
	}
	var found []client.Tenant
	for t, err := range s.sdk.Tenants(ctx, client.ListTenantsParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		if t.Name == o.Name {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no tenant named %s: give it an external_id, so that it can be created and found again", o.Name)
	case 1:
		return &found[0], nil
	}
	return nil, fmt.Errorf("%d tenants are named %s: name yours by its id or external_id", len(found), o.Name)
}

// missing reports whether an error says that there is no such object.
func missing(err error) bool {
	e := asError(err)
	return e != nil && (e.Status == http.StatusNotFound || e.Code == "id_malformed")
}

// value is a nullable text, empty for null.
func value(n client.Nullable[string]) string {
	text, _ := n.Get()
	return text
}

// plainJSON is a value of the API as JSON.
func plainJSON(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out, _ := exact(text)
	fields, _ := out.(map[string]any)
	return fields
}

// showPlatform is the platform as a file has it.
func (s *Server) showPlatform(ctx context.Context) (desired.Object, error) {
	p, err := s.sdk.GetPlatform(ctx)
	fields := plainJSON(p)
	return desired.Object{Kind: desired.Platform, Name: "settings", Fields: map[string]any{"settings": fields["settings"]}}, err
}

// shownTenant is what a file can say of a tenant itself.
var shownTenant = []string{
	"external_id", "name", "strict_types", "retention_days", "viewers_read_payloads", "health_policy", "retry_policy", "rate_limit", "metadata",
	"contacts", "digest", "muted_notices",
}

// showTenant is a tenant as a file has it. Parts of the health policy that the platform has too are not its own.
func (s *Server) showTenant(ctx context.Context, name string, t client.Tenant) (desired.Object, error) {
	fields := plainJSON(t)
	out := map[string]any{"suspended": string(t.State) == "suspended"}
	for _, field := range shownTenant {
		out[field] = fields[field]
	}
	out["retry_policy"] = shownRetries(fields["retry_policy"])
	if s.platform {
		limits, err := s.sdk.GetTenantLimits(ctx, t.ID)
		if err != nil {
			return desired.Object{}, err
		}
		out["limits"] = plainJSON(limits.Own)
		signIn, err := s.sdk.GetMCPAccess(ctx, t.ID)
		if err != nil {
			return desired.Object{}, err
		}
		out["mcp_access"] = shownSignIn(signIn)
	}
	return desired.Object{Kind: desired.Tenant, Name: name, ID: t.ID, Fields: out}, nil
}

// shownSignIn is how people sign in to a tenant's MCP server, as a file has it: an audience that is the server's own
// address is none.
func shownSignIn(a client.MCPAccess) map[string]any {
	out := plainJSON(a)
	if a.Audience == a.Resource {
		out["audience"] = nil
	}
	delete(out, "resource")
	return out
}

// shownRetries is a schedule as one writes it: a name, or delays of one's own.
func shownRetries(v any) any {
	retries, _ := v.(map[string]any)
	if retries == nil || retries["name"] == "custom" {
		if retries["spread"] == endpoint.SpreadBoth { // the default
			delete(retries, "spread")
		}
		return retries
	}
	return map[string]any{"name": retries["name"]}
}

// shownEndpoint is what a file can say of an endpoint.
var shownEndpoint = func() []string {
	names := []string{"kind"}
	for _, f := range endpoint.Fields() {
		if f.Name != "preset" { // the fields that it sets are written
			names = append(names, f.Name)
		}
	}
	return names
}()

// endpointObject is an endpoint as a file has it, without what follows from other fields.
func endpointObject(tenant, name string, e client.Endpoint) desired.Object {
	fields := plainJSON(e)
	out := map[string]any{"paused": string(e.Status) == "paused"}
	if string(e.Status) == "unverified" || string(e.Status) == "disabled" {
		out["paused"] = nil // it can be paused when it is active
	}
	if _, err := e.VerifiedAt.Get(); err == nil {
		out["assume_verified"] = true
	}
	for _, field := range shownEndpoint {
		out[field] = fields[field]
	}
	out["retry_policy"] = shownRetries(out["retry_policy"])
	format := signature.Format(e.Format)
	// A t-v1 endpoint with a given secret has another default.
	if signature.Rotation(e.RotationSignatures) == format.Rotation("") && format != signature.TV1 {
		delete(out, "rotation_signatures")
	}
	if format != signature.XWebhook {
		delete(out, "type_field")
	}
	if rate, err := e.RateLimit.Get(); err == nil {
		if burst, err := e.Burst.Get(); err == nil && burst == 2*rate {
			delete(out, "burst")
		}
	}
	if string(e.Kind) != "http" {
		delete(out, "url")
	}
	if string(e.Kind) == "inbox" {
		delete(out, "assume_verified")
	}
	trimConnection(out)
	for _, f := range endpoint.Fields() {
		if out[f.Name] == nil && f.Name != "rate_limit" { // which is null where it is unlimited
			delete(out, f.Name)
		}
	}
	return desired.Object{Kind: desired.Endpoint, Tenant: tenant, Name: name, ID: e.ID, Fields: out}
}

// trimConnection removes what follows from other fields of how an endpoint connects.
func trimConnection(out map[string]any) {
	if kafka, ok := out["kafka"].(map[string]any); ok && kafka["sasl"] == nil {
		delete(kafka, "sasl")
	}
	if auth, ok := out["auth"].(map[string]any); ok && auth["client_auth"] == endpoint.ClientSecretBasic {
		delete(auth, "client_auth") // the default
	}
	if own, ok := out["tls"].(map[string]any); ok {
		maps.DeleteFunc(own, func(name string, v any) bool {
			return name == "subject" || name == "expires_at" || name == "certificate_request" || v == nil
		})
	}
}

// ofFile reports whether an endpoint is of a kind that files have: not a listener, and not a subscription of an AI
// client, which comes and goes.
func ofFile(e client.Endpoint) bool {
	return string(e.Kind) != "listen" && e.Metadata[mcp.Metadata] == ""
}

// shownSSO is a tenant's single sign-on as a file has it, without the secret, and the end of the secret. found is false
// where the tenant has none.
func (s *Server) shownSSO(ctx context.Context, tenantID, tenant string) (
	o desired.Object,
	hint client.Nullable[string],
	found bool,
	err error,
) {
	shown, err := s.sdk.GetTenantSSO(ctx, tenantID)
	if missing(err) {
		return o, hint, false, nil
	}
	if err != nil {
		return o, hint, false, err
	}
	fields := plainJSON(shown)
	delete(fields, "client_secret_hint")
	domains := make([]any, len(shown.Domains))
	for i, d := range shown.Domains {
		domains[i] = d.Domain
	}
	fields["domains"] = domains
	return desired.Object{Kind: desired.SSO, Tenant: tenant, Name: ssoName, ID: tenantID, Fields: fields}, shown.ClientSecretHint, true, nil
}

// eventTypes are a tenant's event types as a file has them.
func eventTypes(ctx context.Context, sdk *client.Client, tenant string) (out []desired.Object, err error) {
	for t, err := range sdk.EventTypes(ctx, client.ListEventTypesParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		fields := plainJSON(t)
		delete(fields, "created_at")
		delete(fields, "updated_at")
		out = append(out, desired.Object{Kind: desired.EventType, Tenant: tenant, Name: t.Name, Fields: fields})
	}
	slices.SortFunc(out, byName)
	return out, nil
}

func byName(a, b desired.Object) int { return strings.Compare(a.Name, b.Name) }

// people are a tenant's members and open invitations. An invitation that expired counts as none.
func (s *Server) people(ctx context.Context, sdk *client.Client, tenant string) (out []desired.Object, err error) {
	members := client.Each(func(cursor *string) ([]client.Member, client.Nullable[string], error) {
		page, err := sdk.ListMembers(ctx, client.ListMembersParams{Cursor: cursor, Limit: new(250)})
		return page.Data, page.NextCursor, err
	})
	for m, err := range members {
		if err != nil {
			return nil, err
		}
		out = append(out, desired.Object{
			Kind:   desired.Member,
			Tenant: tenant,
			Name:   address(m.Email),
			ID:     m.ID,
			Fields: map[string]any{"role": string(m.Role)},
		})
	}
	invitations := client.Each(func(cursor *string) ([]client.Invitation, client.Nullable[string], error) {
		page, err := sdk.ListInvitations(ctx, client.ListInvitationsParams{Cursor: cursor, Limit: new(250)})
		return page.Data, page.NextCursor, err
	})
	for i, err := range invitations {
		if err != nil {
			return nil, err
		}
		if !i.Expired {
			out = append(out, desired.Object{
				Kind:   desired.Member,
				Tenant: tenant,
				Name:   address(i.Email),
				ID:     i.ID,
				Fields: map[string]any{"role": string(i.Role)},
			})
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}

// keys are a tenant's live API keys, each name and scopes once.
func (s *Server) keys(ctx context.Context, sdk *client.Client, tenant string) (out []desired.Object, err error) {
	for k, err := range sdk.Keys(ctx, client.ListKeysParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		expires, expiring := k.ExpiresAt.Get()
		if _, err := k.RevokedAt.Get(); err == nil || expiring == nil && !expires.After(s.now) {
			continue
		}
		fields := map[string]any{"name": k.Name, "scopes": texts(k.Scopes)}
		if expiring == nil {
			fields["expires_at"] = expires.UTC().Format(time.RFC3339)
		}
		o := desired.Object{
			Kind:   desired.Key,
			Tenant: tenant,
			Name:   keyName(k.Name, k.Scopes),
			ID:     k.ID,
			Fields: fields,
		}
		if strings.HasPrefix(s.key, k.Prefix) {
			o.ID = "" // the key of this very command
		}
		if !slices.ContainsFunc(out, func(other desired.Object) bool { return other.Name == o.Name }) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}
