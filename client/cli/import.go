package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"posthorn/client"
)

type importCommand struct {
	shared
	File   string `arg:"" help:"What to bring in, as JSON; - reads stdin."`
	DryRun bool   `help:"Say what would be done, and do nothing."`
}

// externalID is the name in an endpoint's metadata by which an import finds it again.
const externalID = "external_id"

// brought is an import's file: event types, and endpoints with the fields that the API takes to create one.
type brought struct {
	EventTypes []client.EventTypeInput `json:"event_types"`
	Endpoints  []map[string]any        `json:"endpoints"`
}

// imported is what became of one entry, as --json prints it.
type imported struct {
	Kind     string `json:"kind"`             // event_type or endpoint
	External string `json:"name"`             // the type's name, or the endpoint's external id
	Action   string `json:"action"`           // created, updated, unchanged or refused
	ID       string `json:"id,omitempty"`     // of the endpoint
	Secret   string `json:"secret,omitempty"` // that was made, where the file has none
	Error    string `json:"error,omitempty"`
}

// Run brings everything in. What is there already is changed where it differs, so a second run does nothing; an entry that
// the server refuses does not stop the others, and makes the exit code 1.
func (c importCommand) Run(ctx context.Context, e *Env) error {
	file := "@" + c.File
	if c.File == "-" {
		file = "-"
	}
	text, err := input(e, file, "")
	if err != nil {
		return err
	}
	list, err := readImport(text)
	if err != nil {
		return err
	}
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	im := importer{sdk: sdk, dry: c.DryRun, done: []imported{}}
	if err := im.all(ctx, list); err != nil {
		return err
	}
	err = c.show(e, im.done, func() { im.print(e) })
	if refused := im.count("refused"); err == nil && refused > 0 {
		return fail(ExitFailed, "%d of %d were refused.", refused, len(im.done))
	}
	return err
}

// readImport checks the whole file before anything is sent.
func readImport(text []byte) (brought, error) {
	var list brought
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return list, fail(ExitUsage, "The file is no JSON object: %v", err)
	}
	list, err := typed[brought](raw)
	if err != nil {
		return list, err
	}
	seen := map[string]bool{}
	for i, endpoint := range list.Endpoints {
		id, _ := endpoint[externalID].(string)
		if id == "" || seen[id] {
			return list, fail(ExitUsage, "endpoints[%d] needs an %s of its own: a text by which a second import finds it again.", i, externalID)
		}
		seen[id] = true
		delete(endpoint, externalID)
		metadata, ok := endpoint["metadata"].(map[string]any)
		if !ok {
			metadata = map[string]any{}
		}
		metadata[externalID] = id
		endpoint["metadata"] = metadata
		if _, err := typed[client.EndpointInput](endpoint); err != nil {
			return list, fail(ExitUsage, "endpoints[%d] (%s): %v", i, id, err)
		}
	}
	return list, nil
}

type importer struct {
	sdk  *client.Client
	dry  bool
	done []imported
}

func (im *importer) all(ctx context.Context, list brought) error {
	for _, t := range list.EventTypes {
		one := imported{Kind: "event_type", External: t.Name}
		if err := im.note(&one, im.eventType(ctx, t, &one)); err != nil {
			return err
		}
	}
	known := map[string]string{}
	for endpoint, err := range im.sdk.Endpoints(ctx, client.ListEndpointsParams{Limit: new(250)}) {
		if err != nil {
			return err
		}
		if id := endpoint.Metadata[externalID]; id != "" {
			known[id] = endpoint.ID
		}
	}
	for _, fields := range list.Endpoints {
		one := imported{Kind: "endpoint", External: fmt.Sprint(fields["metadata"].(map[string]any)[externalID])}
		one.ID = known[one.External]
		if err := im.note(&one, im.endpoint(ctx, fields, &one)); err != nil {
			return err
		}
	}
	return nil
}

// note keeps what became of an entry. Only what concerns the entry alone lets the import go on.
func (im *importer) note(one *imported, err error) error {
	if err != nil {
		line, code, _ := Explain(err)
		if code == ExitUnavailable || code == ExitRefused || line == "" {
			return err
		}
		one.Action, one.Error = "refused", line
	}
	im.done = append(im.done, *one)
	return nil
}

func (im *importer) eventType(ctx context.Context, t client.EventTypeInput, one *imported) error {
	there, err := im.sdk.GetEventType(ctx, t.Name)
	switch {
	case client.Code(err) == "not_found":
		if one.Action = "created"; !im.dry {
			_, err = im.sdk.CreateEventType(ctx, t)
			return err
		}
		return nil
	case err != nil:
		return err
	case t.Description == nil || *t.Description == there.Description:
		one.Action = "unchanged"
		return nil
	}
	if one.Action = "updated"; im.dry {
		return nil
	}
	_, err = im.sdk.UpdateEventType(ctx, t.Name, client.EventTypePatch{Description: t.Description})
	return err
}

func (im *importer) endpoint(ctx context.Context, fields map[string]any, one *imported) error {
	if one.ID == "" {
		return im.create(ctx, fields, one)
	}
	there, err := im.sdk.GetEndpoint(ctx, one.ID)
	if err != nil {
		return err
	}
	// An endpoint that is there keeps its secrets: they are rotated, not overwritten.
	wanted := maps.Clone(fields)
	delete(wanted, "secret")
	delete(wanted, "secret_type")
	if holds(there, wanted) {
		one.Action = "unchanged"
		return nil
	}
	if one.Action = "updated"; im.dry {
		return nil
	}
	patch, err := typed[client.EndpointPatch](wanted)
	if err != nil {
		return err
	}
	_, err = im.sdk.UpdateEndpoint(ctx, one.ID, patch)
	return err
}

func (im *importer) create(ctx context.Context, fields map[string]any, one *imported) error {
	if one.Action = "created"; im.dry {
		return nil
	}
	body, err := typed[client.EndpointInput](fields)
	if err != nil {
		return err
	}
	made, err := im.sdk.CreateEndpoint(ctx, body)
	if err != nil {
		return err
	}
	if one.ID = made.ID; body.Secret == nil {
		one.Secret = made.Secret
	}
	return nil
}

// holds reports whether an endpoint has all of the fields already.
func holds(there client.Endpoint, wanted map[string]any) bool {
	text, err := json.Marshal(there)
	if err != nil {
		return false
	}
	var has map[string]any
	return json.Unmarshal(text, &has) == nil && contains(has, wanted)
}

// contains compares what is wanted with what is there: of objects the wanted fields alone, and a header whose value is
// write-only (null) counts as the one that is wanted.
func contains(has, wanted any) bool {
	want, ok := wanted.(map[string]any)
	if !ok {
		return reflect.DeepEqual(has, wanted)
	}
	object, ok := has.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range want {
		at, there := object[name]
		if !there || at != nil && !contains(at, value) {
			return false
		}
		if _, isText := value.(string); at == nil && value != nil && !isText {
			return false
		}
	}
	return true
}

func (im *importer) count(action string) int {
	n := 0
	for _, one := range im.done {
		if one.Action == action {
			n++
		}
	}
	return n
}

func (im *importer) print(e *Env) {
	rows := make([][]string, len(im.done))
	for i, one := range im.done {
		rows[i] = []string{one.Action, one.Kind, one.External, one.ID, oneLine(one.Error, 200)}
	}
	e.table([]string{"DONE", "WHAT", "NAME", "ID", ""}, rows)
	if im.dry {
		e.notef("Nothing was done.\n")
	} else if slices.ContainsFunc(im.done, func(one imported) bool { return one.Secret != "" }) {
		e.notef("Endpoints without a secret in the file got a new one: --json would have shown it, `posthorn endpoints secret rotate` makes another.\n")
	}
}
