package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/transform"
	"posthorn/views/components"
)

// What a button of the form does instead of trying the chosen event.
const (
	RunAll     = "all"    // runs over the latest events
	FillPreset = "preset" // fills in the chosen preset
)

// TransformationForm is a transformation as people write it.
type TransformationForm struct {
	Kind, Preset        string
	Keep, Drop, Redact  string // a path a line
	Expression          string
	ContentType, Method string
	Headers, Variables  string // name: value a line
	Wrong               map[string]string
}

// Transformation is what the form says; nil: none.
func (f TransformationForm) Transformation() *transform.Transformation {
	t := &transform.Transformation{
		Kind:        transform.Kind(f.Kind),
		ContentType: strings.TrimSpace(f.ContentType),
		Method:      f.Method,
		Headers:     entries(f.Headers),
		Variables:   entries(f.Variables),
	}
	switch t.Kind {
	case transform.Fields:
		t.Keep, t.Drop, t.Redact = endpoint.Split(f.Keep), endpoint.Split(f.Drop), endpoint.Split(f.Redact)
	case transform.CEL:
		t.Expression = f.Expression
		// The preset is kept as the name of what is still as it says.
		p, ok := transform.PresetNamed(f.Preset)
		if typed := strings.TrimSpace(f.Expression); ok && (typed == "" || typed == strings.TrimSpace(p.Expression)) {
			t.Preset = f.Preset
		}
	case transform.Full:
		if t.ContentType == "" && t.Method == "" && len(t.Headers) == 0 {
			return nil
		}
	}
	return t
}

// Fill fills in a preset, and the variables that it needs.
func (f *TransformationForm) Fill(name string) {
	p, ok := transform.PresetNamed(name)
	if !ok {
		return
	}
	variables := entries(f.Variables)
	f.Kind, f.Preset, f.Expression, f.ContentType, f.Method, f.Headers, f.Variables = string(transform.CEL), name, p.Expression, p.ContentType, p.Method, "", ""
	headers := make([]string, 0, len(p.Headers))
	for header, expression := range p.Headers {
		headers = append(headers, header+": "+expression+"\n")
	}
	slices.Sort(headers)
	f.Headers = strings.Join(headers, "")
	for _, v := range p.Variables {
		f.Variables += v.Name + ": " + variables[v.Name] + "\n"
	}
}

// entries are the lines of a text, each a name and a value.
func entries(text string) map[string]string {
	var all map[string]string
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = strings.TrimSpace(value)
	}
	return all
}

// Malformed is the field with a line that is no entry, or a name that is there twice; empty: none is.
func (f TransformationForm) Malformed() string {
	for _, field := range []struct{ name, text string }{{"headers", f.Headers}, {"variables", f.Variables}} {
		seen := map[string]bool{}
		for line := range strings.Lines(field.text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			name, _, ok := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); !ok || name == "" || seen[name] {
				return field.name
			}
			seen[name] = true
		}
	}
	return ""
}

func (f TransformationForm) wrong(field string) string {
	if text := f.Wrong["transformation."+field]; text != "" {
		return text
	}
	for _, name := range slices.Sorted(keysOf(f.Wrong)) {
		if strings.HasPrefix(name, "transformation."+field+".") {
			return f.Wrong[name]
		}
	}
	return ""
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

func (f TransformationForm) summary() []components.Wrong {
	var out []components.Wrong
	for _, name := range slices.Sorted(keysOf(f.Wrong)) {
		field, ok := strings.CutPrefix(name, "transformation.")
		field, _, _ = strings.Cut(field, ".")
		w := components.Wrong{ID: "f-" + field, Detail: f.Wrong[name]}
		if !ok {
			w.ID = ""
		}
		out = append(out, w)
	}
	return out
}

// TransformationView is the editor of an endpoint's transformation, beside past events.
type TransformationView struct {
	EndpointHead
	Tries   bool // the actor can read payloads
	Form    TransformationForm
	Mark    string       // where an expression can't be compiled
	Events  []show.Event // to try it on, the latest first
	Event   string       // the chosen one
	Missing bool         // its data is not kept
	Tried   *TriedView
	Ran     *RunView
}

// TriedView is what an event becomes.
type TriedView struct {
	Href, Type          string
	Before, After       Excerpt
	ContentType, Method string
	Headers             []TriedHeader
	Problem, Mark       string // why it can't be applied, and where
}

// TriedHeader is a header that the transformation sets.
type TriedHeader struct{ Name, Value string }

// RunView is what became of the latest events.
type RunView struct {
	OK, Failed int
	Rows       []RunRow
}

// RunRow is one of them.
type RunRow struct {
	Event, Href, Type string
	At                time.Time
	Problem, Mark     string
}

func (v RunView) title() string {
	n := int64(v.OK + v.Failed)
	if n == 0 {
		return "No events to run it over"
	}
	return fmt.Sprintf("%s: %d fine, %d failed", components.Many(n, "past event", "past events"), v.OK, v.Failed)
}

// failed are the rows that are worth a look.
func (v RunView) failed() []RunRow {
	return slices.DeleteFunc(slices.Clone(v.Rows), func(r RunRow) bool { return r.Problem == "" })
}

func (v TransformationView) text() string {
	return "What the endpoint receives. It applies to events emitted after it was saved. A delivery that it can't be applied to waits until it is edited."
}

// fixed reports that nothing can be typed.
func (v TransformationView) fixed() bool { return v.Shell.Looks() || !v.Tries && !v.MayChange }

func (v TransformationView) kinds() []components.Option {
	return []components.Option{
		{Value: string(transform.Full), Label: "None: the whole event"},
		{Value: string(transform.Fields), Label: "Fields: a part of the data"},
		{Value: string(transform.CEL), Label: "Expression: a body of your own, or a preset such as Slack"},
	}
}

func (v TransformationView) presets() []components.Option { return PresetOptions("Choose a receiver") }

// presetHint says what the chosen preset is for, and which variables it needs.
func (v TransformationView) presetHint() string {
	p, ok := transform.PresetNamed(v.Form.Preset)
	if !ok {
		return "Fills in the expression for a well-known receiver."
	}
	hint := p.Hint
	for _, x := range p.Variables {
		hint += " Set the variable " + x.Name + ": " + strings.ToLower(x.Label[:1]) + x.Label[1:] + "."
	}
	return hint
}

func (v TransformationView) methods() []components.Option {
	out := []components.Option{{Value: "", Label: http.MethodPost}}
	for _, m := range transform.Methods()[1:] {
		out = append(out, components.Option{Value: m, Label: m})
	}
	return out
}

func (v TransformationView) events() []components.Option {
	var out []components.Option
	found := false
	for _, e := range v.Events {
		value := id.Event.Format(e.ID)
		found = found || value == v.Event
		out = append(out, components.Option{Value: value, Label: e.Type + ", " + e.ID.Time().UTC().Format("2006-01-02 15:04:05") + " UTC"})
	}
	if !found && v.Event != "" {
		out = slices.Insert(out, 0, components.Option{Value: v.Event, Label: v.Event})
	}
	return out
}

func (t TriedView) method() string { return cmp.Or(t.Method, http.MethodPost) }

// more reports whether the folded part is open: it has something, or an error.
func (v TransformationView) more() bool {
	f := v.Form
	return f.Method+f.ContentType+f.Headers+f.Variables != "" || f.wrong("method")+f.wrong("content_type")+f.wrong("headers")+f.wrong("variables") != ""
}

func (v TransformationView) paths(name, label, value, hint string) components.FieldProps {
	return components.FieldProps{
		Name:     name,
		Label:    label,
		Value:    value,
		Hint:     hint,
		Error:    v.Form.wrong(name),
		Rows:     3,
		Mono:     true,
		Optional: true,
		ReadOnly: v.fixed(),
	}
}
