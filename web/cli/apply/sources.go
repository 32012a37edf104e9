package apply

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"posthorn/client"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/source"
	"posthorn/web/cli/desired"
)

// connections are the fields of a source that a kind has alone.
var connections = []string{"kafka", "rabbitmq", "sqs"}

func (d *decoder) source(fields map[string]any, path string) (o desired.Object, ok bool) {
	d.rejectUnknown(fields, path, sourceFields)
	fits[client.SourceInput](d, fields, path, "paused")
	if paused, ok := fields["paused"]; ok {
		if _, is := paused.(bool); !is {
			d.problem(join(path, "paused"), "This must be true or false.")
		}
	}
	normalizeSource(fields)
	o.Fields = fields
	o.Name, ok = d.nameOf(fields, path, "name", "A source needs a name, by which it is found again, such as orders.")
	return o, ok
}

// normalizeSource writes a connection as the server shows it. One that the server rejects stays as it is.
func normalizeSource(fields map[string]any) {
	kind, _ := fields["kind"].(string)
	given, ok := fields[kind].(map[string]any)
	if !ok {
		return
	}
	text, err := json.Marshal(given)
	if err != nil {
		return
	}
	s := source.Settings{Name: "a", Kind: endpoint.Kind(kind)}
	if s.Patch(map[string]json.RawMessage{kind: text}) != nil {
		return
	}
	anywhere, err := egress.ParseAllow("0.0.0.0/0, ::/0")
	if err != nil {
		return
	}
	if s, err = s.Check(anywhere); err != nil {
		return
	}
	shown := plainJSON(s.Shown())
	for name := range given {
		if _, text := given[name].(string); text && shown[name] != nil {
			given[name] = shown[name]
		}
	}
}

// sourceObject is a source as a file has it.
func sourceObject(tenant string, s client.Source) desired.Object {
	fields := plainJSON(s)
	out := map[string]any{"paused": string(s.Status) == "paused"}
	for _, name := range append([]string{"name", "kind", "start", "mapping"}, connections...) {
		if fields[name] != nil {
			out[name] = fields[name]
		}
	}
	for _, name := range connections {
		if connection, ok := out[name].(map[string]any); ok {
			maps.DeleteFunc(connection, func(_ string, v any) bool { return v == nil })
		}
	}
	return desired.Object{Kind: desired.Source, Tenant: tenant, Name: s.Name, ID: s.ID, Fields: out}
}

func sourcesOf(ctx context.Context, sdk *client.Client, tenant string) (out []desired.Object, err error) {
	for s, err := range sdk.Sources(ctx, client.ListSourcesParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		out = append(out, sourceObject(tenant, s))
	}
	slices.SortFunc(out, byName)
	return out, nil
}

// sourceKinds are the sources whose kind would change, which it can't.
func (p *Plan) sourceKinds(wanted, present []desired.Object) (problems []Problem) {
	kinds := map[string]any{}
	for _, o := range present {
		if o.Kind == desired.Source {
			kinds[objectName(o)] = o.Fields["kind"]
		}
	}
	for _, o := range wanted {
		if kind, there := kinds[objectName(o)]; there && o.Fields["kind"] != nil && o.Fields["kind"] != kind {
			problems = append(problems, p.file.problem(o, "kind", "The kind of a source can't be changed. Use another name for a new source."))
		}
	}
	return problems
}

func (p *Plan) doSource(ctx context.Context, sdk *client.Client, c desired.Change) (err error) {
	if c.Action == desired.Delete {
		return sdk.DeleteSource(ctx, c.ID)
	}
	fields := maps.Clone(c.Wanted.Fields)
	paused, given := fields["paused"].(bool)
	delete(fields, "paused")
	sourceID := c.ID
	if c.Action == desired.Create {
		body, err := typed[client.SourceInput](fields)
		if err != nil {
			return err
		}
		made, err := sdk.CreateSource(ctx, body)
		if err != nil || !paused {
			return err
		}
		sourceID = made.ID
	} else {
		delete(fields, "kind")
		body, err := typed[client.SourcePatch](fields)
		if err != nil {
			return err
		}
		if _, err := sdk.UpdateSource(ctx, sourceID, body); err != nil || !given || !differs(c, "paused") {
			return err
		}
	}
	if paused {
		_, err = sdk.PauseSource(ctx, sourceID)
	} else {
		_, err = sdk.ResumeSource(ctx, sourceID)
	}
	return err
}

// sources are a tenant's sources as an export has them.
func (x *exporter) sources(ctx context.Context, sdk *client.Client, tenant string) ([]any, error) {
	present, err := sourcesOf(ctx, sdk, tenant)
	return each(present, func(o desired.Object) map[string]any {
		x.connection(tenant, o.Name, o.Fields)
		if o.Fields["paused"] != true {
			delete(o.Fields, "paused")
		}
		return o.Fields
	}), err
}
