package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"posthorn/client"
	"posthorn/domain/catalogue"
	"posthorn/web/cli/codegen"
	"posthorn/web/cli/compat"
)

type catalogueCommands struct {
	Export catalogueExportCommand `cmd:"" help:"Print the event types as OpenAPI, AsyncAPI, or JSON Schema."`
	Diff   catalogueDiffCommand   `cmd:"" help:"Compare two catalogs; exit with code 6 where a receiver of the old one can fail."`
}

type catalogueExportCommand struct {
	shared
	Format string `enum:"openapi,asyncapi,json-schema" default:"openapi" help:"${enum}."`
	Out    string `short:"o" placeholder:"FILE" help:"Write to this file instead of stdout."`
}

// Run prints the document, which is JSON.
func (c catalogueExportCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	format := client.ExportCatalogueParamsFormat(c.Format)
	document, err := sdk.ExportCatalogue(ctx, client.ExportCatalogueParams{Format: &format})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, document, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return e.write(c.Out, out.Bytes())
}

// write writes to a file, or to stdout without one.
func (e *Env) write(name string, text []byte) error {
	if name == "" {
		return e.file(text)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // G306: nothing in it is secret
		return fail(ExitFailed, "%s", fileText(err))
	}
	return nil
}

// live is the word for the catalogue of the server.
const live = "live"

type catalogueDiffCommand struct {
	shared
	Old string `arg:"" help:"The catalog that receivers know: an OpenAPI 3.1 document (JSON or YAML), a list of event types as the API returns it, or live for the server's."`
	New string `arg:"" help:"The catalog that is to be, likewise."`
}

// Run prints the differences.
func (c catalogueDiffCommand) Run(ctx context.Context, e *Env) error {
	old, err := c.entries(ctx, e, c.Old)
	if err != nil {
		return err
	}
	current, err := c.entries(ctx, e, c.New)
	if err != nil {
		return err
	}
	found := compat.Compare(old, current)
	if found == nil {
		found = []compat.Finding{}
	}
	err = c.show(e, found, func() {
		for _, f := range found {
			sign := "  "
			if f.Breaking {
				sign = "! "
			}
			at := f.Type
			if f.Version != "" {
				at += " version " + f.Version
			}
			if f.Path != "" {
				at += " " + f.Path
			}
			e.printf("%s%s: %s\n", sign, oneLine(at, 200), oneLine(f.Detail, 300))
		}
		if len(found) == 0 {
			e.printf("No differences.\n")
		}
	})
	if err == nil && compat.Incompatible(found) {
		return fail(ExitDiffers, "The change is incompatible: receivers that were written for the old catalog can fail. A new payload version keeps them working.")
	}
	return err
}

func (s shared) entries(ctx context.Context, e *Env, from string) ([]catalogue.Entry, error) {
	if from == live {
		return s.live(ctx, e)
	}
	text, err := input(ctx, e, "@"+from, nothing)
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			return nil, fail(ExitUsage, "%s is neither JSON nor YAML: %v", from, err)
		}
		if text, err = json.Marshal(v); err != nil {
			return nil, fail(ExitUsage, "%s can't be read as JSON: %v", from, err)
		}
	}
	var is struct {
		OpenAPI  any               `json:"openapi"`
		AsyncAPI any               `json:"asyncapi"`
		Data     []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &is); err != nil || is.OpenAPI == nil && is.Data == nil {
		return nil, fail(ExitUsage, "%s is no catalog: it must be an OpenAPI 3.1 document, as `posthorn catalog export` prints it, or a list of event types under `data`.", from)
	}
	if is.OpenAPI != nil {
		entries, err := catalogue.FromOpenAPI(text)
		if err != nil {
			return nil, fail(ExitUsage, "%s: %v", from, err)
		}
		return entries, nil
	}
	entries := make([]catalogue.Entry, len(is.Data))
	for i, one := range is.Data {
		if entries[i], err = entryOf(one); err != nil || entries[i].Name == "" {
			return nil, fail(ExitUsage, "%s: entry %d is no event type with a name.", from, i+1)
		}
	}
	return entries, nil
}

// live reads the event types of the server.
func (s shared) live(ctx context.Context, e *Env) (entries []catalogue.Entry, err error) {
	sdk, err := s.ProvideClient(e)
	if err != nil {
		return nil, err
	}
	for t, err := range sdk.EventTypes(ctx, client.ListEventTypesParams{Limit: new(250)}) {
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		one, err := entryOf(text)
		if err != nil {
			return nil, err
		}
		entries = append(entries, one)
	}
	return entries, nil
}

// entryOf reads an event type as the API shows it.
func entryOf(text []byte) (catalogue.Entry, error) {
	var t struct {
		Name, Description, Group string
		Schema, Example          json.RawMessage
		Deprecated               bool
		Versions                 map[string]catalogue.Version
	}
	err := json.Unmarshal(text, &t)
	present := func(v json.RawMessage) json.RawMessage {
		if string(v) == "null" {
			return nil
		}
		return v
	}
	for name, v := range t.Versions {
		t.Versions[name] = catalogue.Version{Schema: present(v.Schema), Example: present(v.Example)}
	}
	return catalogue.Entry{
		Name:        t.Name,
		Description: t.Description,
		Group:       t.Group,
		Schema:      present(t.Schema),
		Example:     present(t.Example),
		Deprecated:  t.Deprecated,
		Versions:    t.Versions,
	}, err
}

type typesCommand struct {
	shared
	Lang    string `required:"" enum:"ts,go,python" help:"${enum}."`
	From    string `default:"live" placeholder:"FILE" help:"A catalog in a file, as for catalog diff; the server's by default."`
	Package string `placeholder:"NAME" help:"The package of Go. Default: the folder of --out, or events."`
	Out     string `short:"o" placeholder:"FILE" help:"Write to this file instead of stdout."`
}

// Run prints the types.
func (c typesCommand) Run(ctx context.Context, e *Env) error {
	pkg := c.packageName()
	if !token.IsIdentifier(pkg) {
		return fail(ExitUsage, "%q is not a valid name for a Go package. Give one with --package.", pkg)
	}
	entries, err := c.entries(ctx, e, c.From)
	if err != nil {
		return err
	}
	out, err := codegen.Generate(codegen.Language(c.Lang), pkg, entries)
	if err != nil {
		return fail(ExitFailed, "%v", err)
	}
	return e.write(c.Out, out)
}

// packageName is the package that the file of Go is in.
func (c typesCommand) packageName() string {
	if c.Package != "" {
		return c.Package
	}
	if dir := filepath.Base(filepath.Dir(c.Out)); c.Out != "" && token.IsIdentifier(strings.ToLower(dir)) {
		return strings.ToLower(dir)
	}
	return "events"
}
