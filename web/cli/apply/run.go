package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"posthorn/client"
	"posthorn/web/cli/desired"
)

// Made is a secret that the server made. It is shown this once.
type Made struct {
	Tenant string `json:"tenant"`
	Kind   string `json:"kind"` // endpoint or key
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

// NewKeys are the keys that a plan creates: their texts have to go somewhere.
func (p *Plan) NewKeys() (names []string) {
	for _, c := range p.Changes {
		if c.Kind == desired.Key && c.Action == desired.Create {
			names = append(names, c.Tenant+"/"+c.Name)
		}
	}
	return names
}

// Run does the changes of the plan in their order. It stops at the first that the server rejects; what was done before
// stays, and the next plan has the rest. done is called after each change, made for each secret that the server made.
func (p *Plan) Run(ctx context.Context, done func(desired.Change), made func(Made) error) error {
	for _, c := range p.Changes {
		if err := p.do(ctx, c, made); err != nil {
			return p.explain(c, err)
		}
		done(c)
	}
	return nil
}

// explain says which object of the file an error is about.
func (p *Plan) explain(c desired.Change, err error) error {
	e := asError(err)
	if e == nil {
		return err
	}
	at, known := p.file.paths[objectName(c.Wanted)]
	if !known {
		return fmt.Errorf("%s %s %s: %w", c.Action, c.Kind, c.Name, err)
	}
	var problems []Problem
	for _, f := range e.Fields {
		path := join(at, f.Field)
		problems = append(problems, Problem{Line: p.file.line(path), Path: path, Detail: f.Detail})
	}
	if len(problems) == 0 {
		problems = append(problems, Problem{Line: p.file.line(at), Path: at, Detail: e.Detail})
	}
	return &InvalidError{Name: p.file.name, Problems: problems}
}

func (p *Plan) do(ctx context.Context, c desired.Change, made func(Made) error) error {
	if c.Kind == desired.Platform {
		body, err := typed[client.PlatformPatch](c.Wanted.Fields)
		if err == nil {
			_, err = p.server.sdk.UpdatePlatform(ctx, body)
		}
		return err
	}
	if c.Kind == desired.Tenant {
		return p.doTenant(ctx, c)
	}
	id := p.tenants[c.Tenant]
	sdk := p.server.within(id)
	switch c.Kind {
	case desired.EventType:
		if c.Action == desired.Delete {
			return sdk.DeleteEventType(ctx, c.Name)
		}
		_, err := p.imported(ctx, sdk, c)
		return err
	case desired.Endpoint:
		return p.doEndpoint(ctx, sdk, c, made)
	case desired.Source:
		return p.doSource(ctx, sdk, c)
	case desired.Member:
		return p.doMember(ctx, sdk, c)
	case desired.SSO:
		return p.doSSO(ctx, id, c)
	}
	if c.Action == desired.Delete {
		return sdk.RevokeKey(ctx, c.ID)
	}
	body, err := typed[client.KeyInput](c.Wanted.Fields)
	if err != nil {
		return err
	}
	key, err := sdk.CreateKey(ctx, body)
	if err != nil {
		return err
	}
	return made(Made{Tenant: c.Tenant, Kind: "key", Name: key.Name, Secret: key.APIKey})
}

func (p *Plan) doSSO(ctx context.Context, tenantID string, c desired.Change) error {
	if !p.server.platform {
		return errSSOByPlatform
	}
	if c.Action == desired.Delete {
		return p.server.sdk.RemoveTenantSSO(ctx, c.ID)
	}
	body, err := typed[client.SSOPatch](c.Wanted.Fields)
	if err == nil {
		_, err = p.server.sdk.UpdateTenantSSO(ctx, tenantID, body)
	}
	return err
}

// part changes a part of a tenant that has an operation of its own; nil: the file does not have it.
func part[P, T any](ctx context.Context, change func(context.Context, string, P) (T, error), tenant string, fields map[string]any) error {
	if fields == nil {
		return nil
	}
	patch, err := typed[P](fields)
	if err == nil {
		_, err = change(ctx, tenant, patch)
	}
	return err
}

func (p *Plan) doTenant(ctx context.Context, c desired.Change) error {
	s := p.server
	if c.Action == desired.Delete {
		return s.sdk.DeleteTenant(ctx, c.ID)
	}
	fields := maps.Clone(c.Wanted.Fields)
	limits, _ := fields["limits"].(map[string]any)
	signIn, _ := fields["mcp_access"].(map[string]any)
	suspended, state := fields["suspended"].(bool)
	external, _ := fields["external_id"].(string)
	delete(fields, "limits")
	delete(fields, "mcp_access")
	delete(fields, "suspended")
	if !s.platform || c.ID == "" {
		delete(fields, "external_id") // in the path
	}
	if !s.platform && (limits != nil || signIn != nil || state) {
		return fmt.Errorf("limits, mcp_access, and suspended of the tenant %s need a platform key", c.Name)
	}
	body, err := typed[client.TenantPatch](fields)
	if err != nil {
		return err
	}
	var t client.Tenant
	switch {
	case !s.platform:
		t, err = s.sdk.UpdateOwnTenant(ctx, body)
	case c.ID == "":
		t, err = s.sdk.PutTenant(ctx, external, body)
	default:
		t, err = s.sdk.UpdateTenant(ctx, c.ID, body)
	}
	if err != nil {
		return err
	}
	p.tenants[c.Name] = t.ID
	if err := part(ctx, s.sdk.UpdateTenantLimits, t.ID, limits); err != nil {
		return err
	}
	if err := part(ctx, s.sdk.UpdateMCPAccess, t.ID, signIn); err != nil {
		return err
	}
	if is := string(t.State) == "suspended"; state && is != suspended {
		reason := client.ReasonInput{Reason: new("posthorn apply")}
		if suspended {
			_, err = s.sdk.SuspendTenant(ctx, t.ID, reason)
		} else {
			_, err = s.sdk.ResumeTenant(ctx, t.ID, reason)
		}
	}
	return err
}

// imported does one entry the way the dry run tried it.
func (p *Plan) imported(ctx context.Context, sdk *client.Client, c desired.Change) (client.ImportResult, error) {
	did, err := sdk.ImportAll(ctx, importOf([]desired.Object{c.Wanted}, false))
	if err != nil {
		return client.ImportResult{}, err
	}
	r := did.Results[0]
	if r.Problem != nil {
		return r, &InvalidError{Name: p.file.name, Problems: p.rejected(c.Wanted, *r.Problem)}
	}
	return r, nil
}

func (p *Plan) doEndpoint(ctx context.Context, sdk *client.Client, c desired.Change, made func(Made) error) error {
	if c.Action == desired.Delete {
		return sdk.DeleteEndpoint(ctx, c.ID)
	}
	if c.Wanted.ID != "" && c.Wanted.ID == c.ID { // found by its id: from now on by its external id
		_, err := sdk.UpdateEndpoint(ctx, c.ID, client.EndpointPatch{ExternalID: client.Value(c.Name)})
		if err != nil {
			return err
		}
	}
	r, err := p.imported(ctx, sdk, c)
	if err != nil {
		return err
	}
	if r.Secret != nil {
		if err := made(Made{Tenant: c.Tenant, Kind: "endpoint", Name: c.Name, Secret: *r.Secret}); err != nil {
			return err
		}
	}
	if secret, _ := c.Wanted.Fields["secret"].(string); p.rotate[objectName(c.Wanted)] {
		if _, err := sdk.RotateSecret(ctx, *r.ID, client.RotateInput{Secret: &secret}); err != nil {
			return err
		}
	}
	if answer, given := c.Wanted.Fields["answer"].(string); given && (c.Action == desired.Create || differs(c, "answer")) {
		if _, err := sdk.UpdateInbox(ctx, *r.ID, client.InboxPatch{Answer: client.InboxAnswer(answer)}); err != nil {
			return err
		}
	}
	paused, given := c.Wanted.Fields["paused"].(bool)
	active := c.Action == desired.Update || c.Wanted.Fields["assume_verified"] == true
	switch {
	case !active, c.Action == desired.Create && !paused, !given, c.Action == desired.Update && !differs(c, "paused"):
	case paused:
		_, err = sdk.PauseEndpoint(ctx, *r.ID, client.EndpointPauseInput{})
	default:
		_, err = sdk.ResumeEndpoint(ctx, *r.ID, client.ResumeInput{})
	}
	return err
}

func differs(c desired.Change, field string) bool {
	for _, d := range c.Fields {
		if d.Field == field {
			return true
		}
	}
	return false
}

// doMember invites, changes the role of a member, or removes one. An invitation with another role is sent again.
func (p *Plan) doMember(ctx context.Context, sdk *client.Client, c desired.Change) error {
	invited := strings.HasPrefix(c.ID, "inv_")
	switch {
	case c.Action == desired.Delete && invited:
		return sdk.RevokeInvitation(ctx, c.ID)
	case c.Action == desired.Delete:
		return sdk.RemoveMember(ctx, c.ID)
	case c.Action == desired.Update && !invited:
		body, err := typed[client.MemberPatch](c.Wanted.Fields)
		if err == nil {
			_, err = sdk.UpdateMember(ctx, c.ID, body)
		}
		return err
	}
	body, err := typed[client.InvitationInput](map[string]any{"email": c.Name, "role": c.Wanted.Fields["role"]})
	if err == nil {
		_, err = sdk.CreateInvitation(ctx, body)
	}
	return err
}

// typed is a mapping as a type of the API. The file was checked against it.
func typed[T any](fields map[string]any) (into T, err error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return into, err
	}
	return into, json.Unmarshal(text, &into)
}
