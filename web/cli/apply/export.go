package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"posthorn/client"
	"posthorn/domain/endpoint"
	"posthorn/domain/inbox"
	"posthorn/domain/retry"
	"posthorn/web/cli/desired"
)

// Exported is a file that was made from a server.
type Exported struct {
	Text      []byte
	Variables []string // the references in it, which need values before it is applied
}

// Export writes what a server has as a file: all tenants, or those that are named by id or external id. A tenant's key
// exports its own tenant.
func (s *Server) Export(ctx context.Context, only []string) (Exported, error) {
	x := &exporter{seen: map[string]bool{}, platform: s.platform}
	root := map[string]any{"version": json.Number("1")}
	if s.platform && len(only) == 0 {
		o, err := s.showPlatform(ctx)
		if err != nil {
			return Exported{}, err
		}
		if settings, _ := o.Fields["settings"].(map[string]any); len(settings) > 0 {
			root["platform"] = o.Fields
		}
	}
	tenants, err := s.tenants(ctx, only)
	if err != nil {
		return Exported{}, err
	}
	list := make([]any, 0, len(tenants))
	for _, t := range tenants {
		fields, err := x.tenant(ctx, s, t)
		if err != nil {
			return Exported{}, err
		}
		list = append(list, fields)
	}
	root["tenants"] = list
	text, err := yaml.Marshal(node(root, ""))
	return Exported{Text: text, Variables: x.variables}, err
}

// tenants are those to export, in the order of their names in the file.
func (s *Server) tenants(ctx context.Context, only []string) (out []client.Tenant, err error) {
	if !s.platform {
		return []client.Tenant{s.own}, nil
	}
	for _, id := range only {
		t, err := s.sdk.GetTenant(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	if len(only) == 0 {
		for t, err := range s.sdk.Tenants(ctx, client.ListTenantsParams{Limit: new(250)}) {
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b client.Tenant) int { return strings.Compare(tenantName(a), tenantName(b)) })
	return out, nil
}

type exporter struct {
	platform  bool // the key can say that an endpoint was verified elsewhere
	variables []string
	seen      map[string]bool
	inherited map[string]any // the platform's health policy
	retries   string         // the platform's schedule of new endpoints
}

// assigned is the external id that the file gives to what has none: its own id can't be one.
func assigned(id string) string { return "exported-" + id[strings.IndexByte(id, '_')+1:] }

func (x *exporter) tenant(ctx context.Context, s *Server, t client.Tenant) (map[string]any, error) {
	o, err := s.showTenant(ctx, tenantName(t), t)
	if err != nil {
		return nil, err
	}
	fields := o.Fields
	if fields["external_id"] == nil {
		fields["id"], fields["external_id"] = t.ID, assigned(t.ID)
	}
	name, _ := fields["external_id"].(string)
	if fields["suspended"] == false {
		delete(fields, "suspended")
	}
	if err := x.own(ctx, s, fields); err != nil {
		return nil, err
	}
	sdk := s.within(t.ID)
	types, err := eventTypes(ctx, sdk, name)
	if err != nil {
		return nil, err
	}
	endpoints, err := x.endpoints(ctx, sdk, name)
	if err != nil {
		return nil, err
	}
	queues, err := x.sources(ctx, sdk, name)
	if err != nil {
		return nil, err
	}
	people, err := s.people(ctx, sdk, name)
	if err != nil {
		return nil, err
	}
	keys, err := s.keys(ctx, sdk, name)
	if err != nil {
		return nil, err
	}
	if err := x.sso(ctx, s, t.ID, name, fields); err != nil {
		return nil, err
	}
	fields["event_types"] = each(types, func(o desired.Object) map[string]any { return compact(o.Fields) })
	fields["endpoints"] = endpoints
	if len(queues) > 0 {
		fields["sources"] = queues
	}
	fields["members"] = each(people, func(o desired.Object) map[string]any {
		return map[string]any{"email": o.Name, "role": o.Fields["role"]}
	})
	fields["keys"] = each(keys, func(o desired.Object) map[string]any { return o.Fields })
	return fields, nil
}

// sso adds the tenant's single sign-on, which only a platform key can read.
func (x *exporter) sso(ctx context.Context, s *Server, id, tenant string, fields map[string]any) error {
	if !s.platform {
		return nil
	}
	o, hint, found, err := s.shownSSO(ctx, id, tenant)
	if err != nil || !found {
		return err
	}
	if _, err := hint.Get(); err == nil {
		o.Fields["client_secret"] = x.variable(tenant, "sso", "client_secret")
	}
	none := o.Fields["default_role"] == nil
	if fields["sso"] = compact(o.Fields); none {
		fields["sso"].(map[string]any)["default_role"] = nil // viewer is the default
	}
	fields["sso"].(map[string]any)["join_members"] = o.Fields["join_members"] // true is the default
	return nil
}

func each(objects []desired.Object, show func(desired.Object) map[string]any) []any {
	out := make([]any, len(objects))
	for i, o := range objects {
		out[i] = show(o)
	}
	return out
}

// compact leaves out empty values.
func compact(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	maps.DeleteFunc(out, func(_ string, v any) bool {
		text, isText := v.(string)
		parts, isMapping := v.(map[string]any)
		list, isList := v.([]any)
		return v == nil || v == false || isText && text == "" || isMapping && len(parts) == 0 || isList && len(list) == 0
	})
	return out
}

// own keeps what the tenant says itself: parts of the health policy that are the platform's, the platform's default
// schedule and limits that were not set for it are left out.
func (x *exporter) own(ctx context.Context, s *Server, fields map[string]any) error {
	for _, name := range []string{"limits", "mcp_access"} {
		if part, ok := fields[name].(map[string]any); ok {
			maps.DeleteFunc(part, func(_ string, v any) bool {
				list, isList := v.([]any)
				return v == nil || isList && len(list) == 0
			})
			if len(part) == 0 {
				delete(fields, name)
			}
		}
	}
	if !s.platform {
		delete(fields, "health_policy") // which parts are its own is not known
		delete(fields, "retry_policy")
		return nil
	}
	if x.inherited == nil {
		p, err := s.sdk.GetPlatform(ctx)
		if err != nil {
			return err
		}
		x.inherited, x.retries = plainJSON(p.HealthPolicy), retry.Default
		if name, set := p.Settings["endpoints.retry_policy"]; set {
			x.retries = name
		}
	}
	if retries, ok := fields["retry_policy"].(map[string]any); ok && retries["name"] == x.retries {
		delete(fields, "retry_policy")
	}
	if policy, ok := fields["health_policy"].(map[string]any); ok {
		maps.DeleteFunc(policy, func(part string, v any) bool { return desired.Equal(v, x.inherited[part]) })
		if len(policy) == 0 {
			delete(fields, "health_policy")
		}
	}
	return nil
}

func (x *exporter) endpoints(ctx context.Context, sdk *client.Client, tenant string) ([]any, error) {
	present, err := endpointsOf(ctx, sdk, tenant, nil)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, o := range present {
		fields := o.Fields
		if fields["external_id"] == nil {
			fields["id"], fields["external_id"] = o.ID, assigned(o.ID)
		}
		name := fmt.Sprint(fields["external_id"])
		if headers, ok := fields["custom_headers"].(map[string]any); ok {
			for header, v := range headers {
				if v == nil {
					headers[header] = x.variable(tenant, name, header)
				}
			}
		}
		x.connection(tenant, name, fields)
		if auth, ok := fields["auth"].(map[string]any); ok {
			way, _ := auth["client_auth"].(string)
			if secret := endpoint.AuthType(fmt.Sprint(auth["type"])).SecretField(way); secret != "" {
				auth[secret] = x.variable(tenant, name, secret)
			}
		}
		if own, ok := fields["transformation"].(map[string]any); ok {
			variables, _ := own["variables"].(map[string]any)
			for variable := range variables {
				variables[variable] = x.variable(tenant, name, "transformation_"+variable)
			}
		}
		if own, ok := fields["tls"].(map[string]any); ok && own["client_certificate"] != nil {
			own["private_key"] = x.variable(tenant, name, "tls_private_key")
		}
		if also, secret := secondSignature(fields); secret {
			also["secret"] = x.variable(tenant, name, "also_sign_secret")
		}
		if fields["kind"] != "inbox" {
			fields["secret"] = x.variable(tenant, name, "secret")
		}
		if fields["answer"] == string(inbox.OK) {
			delete(fields, "answer")
		}
		if fields["paused"] != true {
			delete(fields, "paused")
		}
		if !x.platform {
			delete(fields, "assume_verified")
		}
		out = append(out, compactEndpoint(fields))
	}
	return out, nil
}

// connection names variables for the credentials of a connection to a broker.
func (x *exporter) connection(tenant, name string, fields map[string]any) {
	for _, f := range endpoint.ConnectionFields("", endpoint.ToEndpoint) {
		into, ok := fields[string(f.Kind)].(map[string]any)
		object, field, in := strings.Cut(f.Name, ".")
		if in {
			into, ok = into[object].(map[string]any)
		} else {
			field = f.Name
		}
		if f.Secret && ok {
			into[field] = x.variable(tenant, name, field)
		}
	}
}

// secondSignature is the second signature of an endpoint, and whether it has its own secret.
func secondSignature(fields map[string]any) (also map[string]any, secret bool) {
	wire, _ := fields["wire"].(map[string]any)
	also, _ = wire["also_sign"].(map[string]any)
	secret, _ = also["own_secret"].(bool)
	delete(also, "own_secret")
	return also, secret
}

// compactEndpoint leaves out empty lists and texts, which are the defaults. A rate of null is unlimited, and stays.
func compactEndpoint(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	for _, f := range endpoint.Fields() {
		if f.EmptyIsNone && len(compact(map[string]any{f.Name: out[f.Name]})) == 0 {
			delete(out, f.Name)
		}
	}
	return out
}

// variable is a reference to an environment variable that is named for what it holds, each name once.
func (x *exporter) variable(parts ...string) ref {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, "POSTHORN_"+strings.Join(parts, "_"))
	unique := name
	for i := 2; x.seen[unique]; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	x.seen[unique] = true
	x.variables = append(x.variables, unique)
	return ref("${" + unique + "}")
}

// ref is a reference that the exporter wrote.
type ref string

// first are the fields that a mapping begins with; the others follow by name.
var first = []string{"version", "platform", "external_id", "id", "name", "email", "role", "kind", "url", "event_types", "endpoints", "sources", "members", "keys", "issuer", "client_id", "client_secret"}

// node is a value as YAML, the fields in an order that reads well. Texts with ${ in them are escaped.
func node(v any, path string) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return strings.Compare(rank(a, v[a]), rank(b, v[b]))
		})
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range names {
			key := &yaml.Node{}
			key.SetString(name)
			n.Content = append(n.Content, key, node(v[name], join(path, name)))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			n.Content = append(n.Content, node(item, path+"[]"))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(string(v), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: string(v)}
	case ref:
		n := &yaml.Node{}
		n.SetString(string(v))
		return n
	case string:
		n := &yaml.Node{}
		n.SetString(escaped(v, path))
		return n
	}
	n := &yaml.Node{}
	_ = n.Encode(v) // null, true or false
	return n
}

// rank sorts names and short values to the front, lists of objects to the end.
func rank(name string, v any) string {
	place := slices.Index(first, name)
	_, isList := v.([]any)
	switch {
	case place >= 0 && (!isList || name == "event_types" && isTexts(v)):
		return fmt.Sprintf("0%02d", place)
	case place >= 0:
		return fmt.Sprintf("2%02d", place)
	}
	return "1" + name
}

func isTexts(v any) bool {
	list, _ := v.([]any)
	_, ok := append(list, nil)[0].(string)
	return ok
}

var reference = strings.NewReplacer("${", "$${")

// escaped keeps a text that has ${ in it from being a reference.
func escaped(text, path string) string {
	if freeTexts.MatchString(path) {
		return text
	}
	return reference.Replace(text)
}
