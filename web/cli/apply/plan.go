package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"posthorn/client"
	"posthorn/domain/endpoint"
	"posthorn/web/cli/desired"
)

// Options are how a plan is made.
type Options struct {
	Prune        bool // delete what a list of the file leaves out
	PruneTenants bool // delete the tenants that the file leaves out
}

// Plan is what has to be done for a server to be as a file says.
type Plan struct {
	Changes []desired.Change

	file    *File
	server  *Server
	tenants map[string]string                  // Posthorn's id by the name in the file; empty: not created yet
	rotate  map[string]bool                    // endpoints with another secret
	idle    map[string]bool                    // endpoints that are not active, and can't be paused
	hints   map[string]client.Nullable[string] // the ends of the client secrets of single sign-on, by tenant

	// Notes are the parts of the file that wait for a person.
	Notes []string
}

// comparison is how the fields of each kind are compared.
var comparison = desired.Rules{
	Parts:     map[desired.Kind][]string{desired.Platform: {"settings"}, desired.Tenant: {"health_policy", "limits", "mcp_access"}, desired.Source: connections},
	Unordered: map[desired.Kind][]string{desired.Tenant: {"contacts", "muted_notices"}, desired.SSO: {"domains"}},
	Ignored: map[desired.Kind][]string{
		desired.Tenant:   {"external_id"},
		desired.Endpoint: {"preset", "secret_type", "assume_verified", "send_verification"},
		desired.Key:      {"name", "scopes", "expires_at"},
	},
}

// Plan compares a file with the server. It changes nothing. What the server would reject in it is an *InvalidError with
// lines; other errors are the client's.
func (s *Server) Plan(ctx context.Context, f *File, with Options) (*Plan, error) {
	p := &Plan{
		file:    f,
		server:  s,
		tenants: map[string]string{},
		rotate:  map[string]bool{},
		idle:    map[string]bool{},
		hints:   map[string]client.Nullable[string]{},
	}
	wanted := slices.Clone(f.objects)
	var present []desired.Object
	verdicts := map[string]bool{} // by object name: the server says that it is the same
	var problems []Problem
	for _, o := range wanted {
		var more []desired.Object
		var err error
		switch o.Kind {
		case desired.Platform:
			var shown desired.Object
			shown, err = s.showPlatform(ctx)
			more = append(more, shown)
		case desired.Tenant:
			more, err = p.tenant(ctx, o, wanted)
			if err != nil && asError(err) == nil && !errors.Is(err, context.Canceled) {
				problems = append(problems, f.problem(o, "", err.Error()))
				continue
			}
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		present = append(present, more...)
	}
	wanted, unresolved := p.resolve(wanted, present)
	problems = append(problems, unresolved...)
	wanted, err := p.awaitBreakGlass(ctx, wanted)
	if err != nil {
		return nil, err
	}
	rejected, err := p.dryRun(ctx, wanted, present, verdicts)
	if err != nil {
		return nil, err
	}
	problems = append(problems, p.sourceKinds(wanted, present)...)
	if problems = append(problems, rejected...); len(problems) > 0 {
		return nil, &InvalidError{Name: f.name, Problems: problems}
	}
	if with.PruneTenants && s.platform && f.lists[listName("", desired.Tenant)] {
		if present, err = p.otherTenants(ctx, present); err != nil {
			return nil, err
		}
	}
	rules := comparison
	rules.Same = func(o desired.Object, field string) (bool, bool) { return p.same(o, field, verdicts) }
	rules.Secret = func(o desired.Object, field string) bool { return f.hides(o, field) }
	rules.Prune = func(o desired.Object) bool {
		switch {
		case o.Kind == desired.Tenant:
			return with.PruneTenants
		case o.Kind == desired.Key && o.ID == "":
			return false
		}
		return with.Prune && f.lists[listName(o.Tenant, o.Kind)]
	}
	showWriteOnly(wanted, present)
	p.Changes = desired.Plan(wanted, present, rules)
	return p, nil
}

// showWriteOnly gives present endpoints the write-only values that the file has for them: the server compared these.
func showWriteOnly(wanted, present []desired.Object) {
	by := map[string]desired.Object{}
	for _, o := range wanted {
		by[objectName(o)] = o
	}
	for _, o := range present {
		secondSignature(o.Fields) // own_secret is shown, and not written
		if w, ok := by[objectName(o)]; ok && (o.Kind == desired.Endpoint || o.Kind == desired.Source) {
			for _, field := range []string{"auth", "custom_headers", "kafka", "rabbitmq", "s3", "sqs", "tls", "transformation", "wire"} {
				o.Fields[field] = filled(o.Fields[field], w.Fields[field], field != "custom_headers")
			}
		}
	}
}

// filled returns a mapping with its secrets replaced by those of another. named: fields are secrets by their names,
// too; the names of headers are the tenant's.
func filled(shown, from any, named bool) any {
	there, ok := shown.(map[string]any)
	given, both := from.(map[string]any)
	if !ok || !both {
		return shown
	}
	out := maps.Clone(there)
	for name, v := range given {
		own, has := there[name]
		switch {
		case has && own == nil, has && own == endpoint.Marker, !has && named && endpoint.WriteOnly(name):
			out[name] = v
		default:
			if has {
				out[name] = filled(own, v, named)
			}
		}
	}
	return out
}

// same is the server's comparison of a field of an event type or an endpoint.
func (p *Plan) same(o desired.Object, field string, verdicts map[string]bool) (same, known bool) {
	verdict, compared := verdicts[objectName(o)]
	switch {
	case field == "paused" && p.idle[objectName(o)]:
		return true, true
	case o.Kind == desired.SSO && field == "client_secret":
		return p.sameClientSecret(o), true
	case !compared || field == "paused" || field == "answer":
		return false, false
	case o.Kind == desired.EventType: // a schema with its members in another order is the same
		return verdict, verdict
	case field == "secret":
		return !p.rotate[objectName(o)], true
	case verdict || field == "":
		return verdict, true
	}
	return false, false // the differences are in the fields
}

// hides reports whether a field's value came from a reference, in part or whole, or is a secret.
func (f *File) hides(o desired.Object, field string) bool {
	at := join(f.paths[objectName(o)], field)
	if o.Kind == desired.Endpoint && (field == "secret" || field == "custom_headers") || field == "client_secret" {
		return true
	}
	for path := range f.secret {
		if path == at || strings.HasPrefix(path, at+".") || strings.HasPrefix(path, at+"[") {
			return true
		}
	}
	return false
}

// problem is something wrong with an object or one of its fields.
func (f *File) problem(o desired.Object, field, detail string) Problem {
	at := f.paths[objectName(o)]
	path := at
	if field != "" {
		path = join(at, field)
	}
	return Problem{Line: f.line(path), Path: path, Detail: detail}
}

// tenant reads a tenant and the lists of it that the file has.
func (p *Plan) tenant(ctx context.Context, o desired.Object, wanted []desired.Object) (present []desired.Object, err error) {
	t, err := p.server.tenant(ctx, o)
	if err != nil {
		return nil, err
	}
	if t == nil {
		p.tenants[o.Name] = ""
		return nil, nil
	}
	p.tenants[o.Name] = t.ID
	shown, err := p.server.showTenant(ctx, o.Name, *t)
	if err != nil {
		return nil, err
	}
	present = append(present, shown)
	sdk := p.server.within(t.ID)
	for _, list := range []struct {
		kind desired.Kind
		read func() ([]desired.Object, error)
	}{
		{desired.EventType, func() ([]desired.Object, error) { return eventTypes(ctx, sdk, o.Name) }},
		{desired.Endpoint, func() ([]desired.Object, error) { return endpointsOf(ctx, sdk, o.Name, wanted) }},
		{desired.Source, func() ([]desired.Object, error) { return sourcesOf(ctx, sdk, o.Name) }},
		{desired.Member, func() ([]desired.Object, error) { return p.server.people(ctx, sdk, o.Name) }},
		{desired.Key, func() ([]desired.Object, error) { return p.server.keys(ctx, sdk, o.Name) }},
		{desired.SSO, func() ([]desired.Object, error) { return p.sso(ctx, t.ID, o.Name) }},
	} {
		if !p.file.lists[listName(o.Name, list.kind)] {
			continue
		}
		some, err := list.read()
		if err != nil {
			return nil, err
		}
		present = append(present, some...)
	}
	return present, nil
}

// errSSOByPlatform says that a tenant's key can't decide who enters the tenant.
var errSSOByPlatform = errors.New("single sign-on needs a platform key, or an owner in the dashboard: leave sso out")

// sso reads a tenant's single sign-on.
func (p *Plan) sso(ctx context.Context, id, tenant string) ([]desired.Object, error) {
	if !p.server.platform {
		return nil, errSSOByPlatform
	}
	o, hint, found, err := p.server.shownSSO(ctx, id, tenant)
	if err != nil || !found {
		return nil, err
	}
	p.hints[tenant] = hint
	return []desired.Object{o}, nil
}

// sameClientSecret compares a client secret by its end. The end of a short one is not shown: that counts as the same.
func (p *Plan) sameClientSecret(o desired.Object) bool {
	hint, err := p.hints[o.Tenant].Get()
	secret, given := o.Fields["client_secret"].(string)
	if err != nil || !given {
		return err != nil && !given
	}
	return strings.HasSuffix(secret, hint)
}

// awaitBreakGlass leaves out the break-glass account, and that single sign-on is required, until that person is a
// member: an invitation has to be accepted first.
func (p *Plan) awaitBreakGlass(ctx context.Context, wanted []desired.Object) ([]desired.Object, error) {
	for i, o := range wanted {
		email, named := o.Fields["break_glass"].(string)
		if o.Kind != desired.SSO || !named {
			continue
		}
		is := false
		if id := p.tenants[o.Tenant]; id != "" {
			people, err := p.server.people(ctx, p.server.within(id), o.Tenant)
			if err != nil {
				return nil, err
			}
			is = slices.ContainsFunc(people, func(m desired.Object) bool {
				return strings.EqualFold(m.Name, email) && !strings.HasPrefix(m.ID, "inv_")
			})
		}
		if !is {
			o.Fields = maps.Clone(o.Fields)
			delete(o.Fields, "break_glass")
			delete(o.Fields, "required")
			wanted[i] = o
			p.Notes = append(p.Notes, fmt.Sprintf("%s: break_glass and required are applied once %s is a member. Run apply again then.", o.Tenant, email))
		}
	}
	return wanted, nil
}

// endpointsOf are a tenant's endpoints under the names that the file has for them: by external id, or by the id that an
// entry gives. One that the file does not name has its external id or id as its name.
func endpointsOf(ctx context.Context, sdk *client.Client, tenant string, wanted []desired.Object) (out []desired.Object, err error) {
	names := map[string]string{} // by id
	for _, w := range wanted {
		if w.Kind == desired.Endpoint && w.Tenant == tenant && w.ID != "" {
			names[w.ID] = w.Name
		}
	}
	for e, err := range sdk.Endpoints(ctx, client.ListEndpointsParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		if !ofFile(e) {
			continue
		}
		name := value(e.ExternalID)
		if by, ok := names[e.ID]; ok && name == "" {
			name = by
		}
		if name == "" {
			name = e.ID
		}
		if strings.Contains(e.URL, "?") { // a list masks the values of a URL's query
			if e, err = sdk.GetEndpoint(ctx, e.ID); err != nil {
				return nil, err
			}
		}
		o := endpointObject(tenant, name, e)
		if string(e.Kind) == "inbox" {
			box, err := sdk.GetInbox(ctx, e.ID)
			if err != nil {
				return nil, err
			}
			o.Fields["answer"] = string(box.Answer)
		}
		out = append(out, o)
	}
	slices.SortFunc(out, byName)
	return out, nil
}

// otherTenants adds the tenants that the file does not name.
func (p *Plan) otherTenants(ctx context.Context, present []desired.Object) ([]desired.Object, error) {
	named := slices.Collect(maps.Values(p.tenants))
	for t, err := range p.server.sdk.Tenants(ctx, client.ListTenantsParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(named, t.ID) {
			continue
		}
		present = append(present, desired.Object{Kind: desired.Tenant, Name: tenantName(t), ID: t.ID})
	}
	return present, nil
}

func tenantName(t client.Tenant) string {
	if external := value(t.ExternalID); external != "" {
		return external
	}
	return t.ID
}

// resolve deals with references that have no value: a present object keeps what it has, another needs the value.
func (p *Plan) resolve(wanted, present []desired.Object) (out []desired.Object, problems []Problem) {
	there := map[string]bool{}
	for _, o := range present {
		there[objectName(o)] = true
	}
	for _, o := range wanted {
		kept := map[string]any{}
		for field, v := range o.Fields {
			left, name := keep(v)
			if name != "" && !there[objectName(o)] {
				problems = append(problems, p.file.problem(o, field, fmt.Sprintf("The variable %s is not set, and there is nothing to keep: this will be created.", name)))
			}
			if _, whole := v.(unset); !whole {
				kept[field] = left
			}
		}
		o.Fields = kept
		out = append(out, o)
	}
	return out, problems
}

// keep is a value without its unset references, and the name of one of them. Headers keep their value by ***.
func keep(v any) (left any, name string) {
	switch v := v.(type) {
	case unset:
		return "***", v.name
	case map[string]any:
		out := make(map[string]any, len(v))
		for field, part := range v {
			kept, missing := keep(part)
			if missing != "" {
				name = missing
			}
			if _, whole := part.(unset); whole && endpoint.WriteOnly(field) {
				continue
			}
			out[field] = kept
		}
		return out, name
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			kept, missing := keep(part)
			if missing != "" {
				name = missing
			}
			out[i] = kept
		}
		return out, name
	}
	return v, ""
}

// dryRunSize is how many entries go in one dry run.
const dryRunSize = 100

// dryRun compares event types and endpoints on the server: it sees write-only values, knows the settings that follow
// from others, and rejects invalid ones.
func (p *Plan) dryRun(ctx context.Context, wanted, present []desired.Object, verdicts map[string]bool) (problems []Problem, err error) {
	there := map[string]desired.Object{}
	for _, o := range present {
		there[objectName(o)] = o
	}
	for tenant, id := range p.tenants {
		if id == "" {
			continue
		}
		sdk := p.server.within(id)
		var some []desired.Object
		for _, o := range wanted {
			if o.Tenant == tenant && (o.Kind == desired.EventType || o.Kind == desired.Endpoint) {
				some = append(some, o)
			}
		}
		for part := range slices.Chunk(some, dryRunSize) {
			for _, o := range part {
				rejected, err := p.endpoint(ctx, sdk, o, there[objectName(o)])
				if err != nil {
					return nil, err
				}
				problems = append(problems, rejected...)
			}
			did, err := sdk.ImportAll(ctx, importOf(part, true))
			if err != nil {
				return nil, err
			}
			for _, r := range did.Results {
				o := part[slices.IndexFunc(part, func(o desired.Object) bool {
					return string(o.Kind) == string(r.Kind) && o.Name == r.Name
				})]
				if r.Problem != nil {
					problems = append(problems, p.rejected(o, *r.Problem)...)
					continue
				}
				if r.Action != "created" {
					verdicts[objectName(o)] = r.Action == "unchanged"
				}
			}
		}
	}
	return problems, nil
}

// endpoint compares what an import does not: the kind, which can't change, and the secret, by its last characters.
func (p *Plan) endpoint(ctx context.Context, sdk *client.Client, o, there desired.Object) (problems []Problem, err error) {
	if o.Kind != desired.Endpoint || there.ID == "" {
		return nil, nil
	}
	p.idle[objectName(o)] = there.Fields["paused"] == nil
	if kind, given := o.Fields["kind"]; given && kind != there.Fields["kind"] {
		problems = append(problems, p.file.problem(o, "kind", fmt.Sprintf("The endpoint is of the kind %v, which can't be changed. Use another external_id for a new endpoint.", there.Fields["kind"])))
	}
	secret, ok := o.Fields["secret"].(string)
	if !ok {
		return problems, nil
	}
	page, err := sdk.ListSecrets(ctx, there.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range page.Data {
		if _, overlap := s.ExpiresAt.Get(); overlap != nil && !endpoint.CanBe(secret, s.Hint) {
			p.rotate[objectName(o)] = true
		}
	}
	return problems, nil
}

// importOf is the import of event types and endpoints.
func importOf(objects []desired.Object, dry bool) client.ImportInput {
	in := client.ImportInput{DryRun: &dry}
	for _, o := range objects {
		fields := maps.Clone(o.Fields)
		delete(fields, "paused")
		delete(fields, "answer")
		text, err := json.Marshal(fields)
		if err != nil {
			continue
		}
		if o.Kind == desired.Endpoint {
			in.Endpoints = append(in.Endpoints, text)
			continue
		}
		var t client.EventTypeInput
		if json.Unmarshal(text, &t) == nil { // checked when the file was read
			in.EventTypes = append(in.EventTypes, t)
		}
	}
	return in
}

// rejected has the lines of what the server rejects.
func (p *Plan) rejected(o desired.Object, with client.ImportProblem) (problems []Problem) {
	for _, f := range with.Errors {
		problems = append(problems, p.file.problem(o, f.Field, f.Detail))
	}
	if len(problems) == 0 {
		problems = append(problems, p.file.problem(o, "", with.Detail))
	}
	return problems
}

// asError is the server's error in a chain, or nil.
func asError(err error) *client.Error {
	var e *client.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
