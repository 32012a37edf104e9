// Package apply reads the file of `posthorn apply`, compares it with what a server has, and changes the server. Export
// writes the same file from a server.
package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"posthorn/client"
	"posthorn/domain/compare"
	"posthorn/web/cli/desired"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line   int    `json:"line"`
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// InvalidError lists all problems of a file.
type InvalidError struct {
	Name     string // of the file
	Problems []Problem
}

// Error has a line for each problem: file, line, the path in the file, and what to do.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		at := p.Path
		if at != "" {
			at += ": "
		}
		lines[i] = fmt.Sprintf("%s:%d: %s%s", e.Name, p.Line, at, p.Detail)
	}
	return strings.Join(lines, "\n")
}

// Source is where a file comes from and what its references mean.
type Source struct {
	Name     string // in errors
	Text     []byte
	Variable func(name string) (string, bool)  // of the environment
	ReadFile func(name string) ([]byte, error) // relative to the file
	Keep     bool                              // a reference without a value keeps the stored value
}

// File is a file that was read.
type File struct {
	name    string
	objects []desired.Object
	paths   map[string]string // of an object by tenant, kind and name
	lines   map[string]int    // by path
	secret  map[string]bool   // paths with values from a reference
	lists   map[string]bool   // tenant and kind of the lists that the file has
}

// unset is a reference without a value.
type unset struct{ name string }

const (
	maxProblems = 20
	maxDepth    = 60

	// Nine lines can name a billion values by aliases, and one long name is part of the path of every value below it.
	// So the values that aliases expand to are counted, and all paths in bytes.
	maxAliased = 10_000
	maxPaths   = 256 << 20
)

type decoder struct {
	Source
	ctx      context.Context //nolint:containedctx // of one call of Decode
	file     *File
	problems []Problem
	aliased  int  // values within aliases so far
	within   int  // aliases around the value that is read
	paths    int  // bytes of all paths so far
	stopped  bool // nothing more is read
}

// Decode reads a file strictly: unknown fields, wrong types, duplicates and missing variables are an *InvalidError.
// It ends early with the context.
func Decode(ctx context.Context, from Source) (*File, error) {
	d := &decoder{
		Source: from,
		ctx:    ctx,
		file: &File{
			name:   from.Name,
			paths:  map[string]string{},
			lines:  map[string]int{},
			secret: map[string]bool{},
			lists:  map[string]bool{},
		},
	}
	documents := yaml.NewDecoder(bytes.NewReader(from.Text))
	var root, more yaml.Node
	err := documents.Decode(&root)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err != nil {
		d.refuse(lineOf(err), "", "The file is not YAML: "+plain(err)+".")
		return nil, d.err()
	}
	if documents.Decode(&more) == nil {
		d.refuse(more.Line, "", "The file has more than one document. Put all tenants under one `tenants`.")
	}
	if len(root.Content) == 0 {
		d.refuse(1, "", "The file is empty. It needs `tenants` or `platform`; `posthorn export` prints an example.")
		return nil, d.err()
	}
	top, _ := d.value(root.Content[0], "", 0).(map[string]any)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case d.stopped:
		return nil, d.err()
	case top == nil:
		d.refuse(root.Content[0].Line, "", "The file must be a mapping with `tenants` or `platform`.")
		return nil, d.err()
	}
	d.top(top)
	return d.file, d.err()
}

func (d *decoder) refuse(line int, path, detail string) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{Line: line, Path: path, Detail: detail})
	}
}

// problem adds a problem at a path of the file.
func (d *decoder) problem(path, detail string) { d.refuse(d.file.line(path), path, detail) }

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return a.Line - b.Line })
	return &InvalidError{Name: d.Name, Problems: d.problems}
}

// line is the line of a path, or of its nearest parent with one.
func (f *File) line(path string) int {
	for path != "" {
		if line := f.lines[path]; line > 0 {
			return line
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return max(f.lines[""], 1)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func lineOf(err error) int {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1
}

// plain is a message of the YAML library without its name and line.
func plain(err error) string {
	return yamlLine.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
}

// value turns a node into JSON and remembers its lines.
func (d *decoder) value(n *yaml.Node, path string, depth int) any {
	if depth > maxDepth {
		d.refuse(n.Line, path, "This is nested too deeply.")
		return nil
	}
	if d.tooMuch(n, path) {
		return nil
	}
	d.file.lines[path] = n.Line
	switch n.Kind {
	case yaml.AliasNode:
		d.within++
		defer func() { d.within-- }()
		return d.value(n.Alias, path, depth+1)
	case yaml.MappingNode:
		return d.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if d.stopped {
				return nil
			}
			list[i] = d.value(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
		return list
	default:
		return d.scalar(n, path)
	}
}

// tooMuch reports whether reading ends here: at a bound, or because the context is done.
func (d *decoder) tooMuch(n *yaml.Node, path string) bool {
	d.paths += len(path)
	if d.within > 0 {
		d.aliased++
	}
	switch {
	case d.stopped:
	case d.ctx.Err() != nil:
		d.stopped = true
	case d.aliased > maxAliased:
		d.stopped = true
		d.refuse(n.Line, "", fmt.Sprintf("The file's aliases (*name) repeat more than %d values. Write the values out, or use fewer aliases.", maxAliased))
	case d.paths > maxPaths:
		d.stopped = true
		d.refuse(n.Line, "", "The names of the file are too long for so many values.")
	}
	return d.stopped
}

func (d *decoder) mapping(n *yaml.Node, path string, depth int) any {
	out := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.stopped; i += 2 {
		name := n.Content[i].Value
		at := join(path, name)
		if n.Content[i].Kind != yaml.ScalarNode || n.Content[i].Tag == "!!merge" {
			d.refuse(n.Content[i].Line, path, "Names must be texts; `<<` is not supported.")
			continue
		}
		from, isReference := strings.CutSuffix(name, "_from")
		isReference = isReference && references[from] && !freeNames.MatchString(path)
		if isReference {
			name, at = from, join(path, from)
		}
		if _, twice := out[name]; twice {
			d.refuse(n.Content[i].Line, at, "This name appears twice in the mapping.")
			continue
		}
		if isReference {
			d.file.lines[at] = n.Content[i].Line
			out[name] = d.reference(n.Content[i+1], at, from)
			continue
		}
		out[name] = d.value(n.Content[i+1], at, depth+1)
		d.file.lines[at] = n.Content[i].Line
	}
	return out
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Below these names the file's own names begin, and below a schema and an example even texts are literal.
var (
	freeNames = regexp.MustCompile(`\.(schema|example|custom_headers|metadata|filter|sso\.roles)(\.|\[|$)`)
	freeTexts = regexp.MustCompile(`\.(schema|example)(\.|\[|$)`)
)

// references are the fields with a value that can come from a variable: secret_from, schema_from, ... The value is
// whether the text is JSON.
var (
	references   = map[string]bool{"secret": true, "client_secret": true, "secret_access_key": true, "password": true, "token": true, "key": true, "private_key": true, "url": true, "schema": true, "example": true, "ca_certificate": true, "client_certificate": true}
	asJSON       = map[string]bool{"schema": true, "example": true}
	variable     = regexp.MustCompile(`\$?\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reference is the value that env:NAME or file:PATH names.
func (d *decoder) reference(n *yaml.Node, path, field string) any {
	kind, name, _ := strings.Cut(n.Value, ":")
	switch {
	case n.Kind != yaml.ScalarNode || name == "" || kind != "env" && kind != "file":
		d.refuse(n.Line, path+"_from", "A reference is env:NAME or file:PATH.")
		return nil
	case kind == "env":
		d.file.secret[path] = true
		return d.variable(name, path)
	}
	text, err := d.ReadFile(name)
	if err != nil {
		d.refuse(n.Line, path+"_from", fmt.Sprintf("The file %s can't be read: %v.", name, err))
		return nil
	}
	if !asJSON[field] {
		d.file.secret[path] = true
		return strings.TrimRight(string(text), "\r\n")
	}
	v, err := exact(text)
	if err != nil {
		d.refuse(n.Line, path+"_from", fmt.Sprintf("The file %s is not JSON: %v.", name, err))
	}
	return v
}

// exact reads JSON and keeps numbers as they are written.
func exact(text []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err = dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("there is more after the value")
	}
	return v, nil
}

func (d *decoder) variable(name, path string) any {
	if !variableName.MatchString(name) {
		d.problem(path, fmt.Sprintf("${%s} is not the name of a variable. Write $${ for a plain ${.", name))
		return nil
	}
	if text, ok := d.Variable(name); ok {
		return text
	}
	if d.Keep {
		return unset{name}
	}
	d.problem(path, fmt.Sprintf("The variable %s is not set. Set it, or keep what the server has with --keep-secrets.", name))
	return nil
}

func (d *decoder) scalar(n *yaml.Node, path string) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		_ = n.Decode(&b) // the tag says that it is one
		return b
	case "!!int", "!!float":
		var number any
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		if err := n.Decode(&number); err == nil {
			if text, err := json.Marshal(number); err == nil {
				return json.Number(text)
			}
		}
		d.refuse(n.Line, path, fmt.Sprintf("%s is not a number that JSON has.", n.Value))
		return nil
	case "!!str", "!!timestamp":
		return d.text(n, path)
	}
	d.refuse(n.Line, path, fmt.Sprintf("A value of the type %s is not supported. Quote it if it is a text.", n.Tag))
	return nil
}

// text replaces ${NAME}. $${ is a plain ${.
func (d *decoder) text(n *yaml.Node, path string) any {
	if freeTexts.MatchString(path) {
		return n.Value
	}
	var missing *unset
	out := variable.ReplaceAllStringFunc(n.Value, func(match string) string {
		if strings.HasPrefix(match, "$$") {
			return match[1:]
		}
		d.file.secret[path] = true
		switch v := d.variable(match[2:len(match)-1], path).(type) {
		case unset:
			missing = &v
		case string:
			return v
		}
		return ""
	})
	if missing != nil {
		return *missing
	}
	return out
}

// fieldsOf are the JSON names of a struct's fields.
func fieldsOf[T any](more ...string) []string {
	return jsonNames(reflect.TypeFor[T](), more...)
}

// jsonNames are those of a struct's fields, and more, sorted.
func jsonNames(t reflect.Type, more ...string) []string {
	names := slices.Clone(more)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var (
	topFields       = []string{"platform", "tenants", "version"}
	platformFields  = []string{"settings"}
	tenantFields    = fieldsOf[client.TenantPatch]("endpoints", "event_types", "id", "keys", "limits", "mcp_access", "members", "sources", "sso", "suspended")
	sourceFields    = fieldsOf[client.SourceInput]("paused")
	endpointFields  = fieldsOf[client.EndpointInput]("answer", "id", "paused")
	eventTypeFields = fieldsOf[client.EventTypeInput]()
	memberFields    = []string{"email", "role"}
	keyFields       = fieldsOf[client.KeyInput]()
	ssoFields       = fieldsOf[client.SSOPatch]()
)

// rejectUnknown refuses the fields of a mapping that are not in a list.
func (d *decoder) rejectUnknown(fields map[string]any, path string, list []string) {
	for name := range fields {
		if slices.Contains(list, name) {
			continue
		}
		d.unknown(join(path, name), name, list)
		delete(fields, name)
	}
}

// unknown adds a problem for a field with a name outside of a list.
func (d *decoder) unknown(path, name string, list []string) {
	detail := "Unknown field. The fields are " + strings.Join(list, ", ") + "."
	if near := nearest(name, list); near != "" {
		detail = fmt.Sprintf("Unknown field. Did you mean %s?", near)
	}
	d.problem(path, detail)
}

// nearest is the name that a mistyped one was probably meant to be, or empty.
func nearest(name string, list []string) (best string) {
	least := 2 + len(name)/5
	for _, candidate := range list {
		if n := compare.Distance(name, candidate); n < least {
			best, least = candidate, n
		}
	}
	return best
}
