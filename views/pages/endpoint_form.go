package pages

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/endpoint"
	"posthorn/domain/retry"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// EndpointForm holds the fields of an endpoint's form, as typed.
type EndpointForm struct {
	Kind        string
	Choose      bool // the kind can be chosen
	URL         string
	Connection  map[string]string // by the names of fields in forms
	Auth        AuthForm
	TLS         TLSForm
	All         bool // subscribes to every event type
	Types       []string
	Patterns    string // further patterns, one per line
	Filter      string
	Values      map[string]string // of FormFields, by name
	RetryPolicy string
	RetryDelays string            // seconds, with spaces or commas between
	RetryJitter string            // 0 to 1
	SecretType  string            // for a new endpoint
	Alerts      bool              // a new alert channel, which can have a preset
	Preset      string            // of its transformation; empty: none
	Variables   map[string]string // of the presets, by PresetField
	Catalogue   []string          // the tenant's event types
	Wrong       map[string]string // errors by the field's name in the API; "" is the whole form
}

// FormFields are the settings that the form has by their rows of the table. The others have parts of their own.
func FormFields() []endpoint.Field {
	return slices.DeleteFunc(slices.Clone(endpoint.Fields()), func(f endpoint.Field) bool {
		return f.Label == "" || f.Type == endpoint.Special || f.Name == "filter"
	})
}

// props are the properties of a setting's input.
func (f EndpointForm) props(row endpoint.Field) components.FieldProps {
	p := components.FieldProps{
		Name:  row.Name,
		Label: row.Label,
		Value: f.Values[row.Name],
		Error: f.wrong(row.Name),
		Hint:  row.Hint,
		Unit:  row.Unit,
	}
	switch row.Type {
	case endpoint.Number:
		p.Type, p.Min, p.Max = "number", strconv.Itoa(row.Low), strconv.Itoa(row.High)
	case endpoint.Text, endpoint.List:
		p.Optional, p.Mono, p.MaxLength = row.Name != "prefix", row.Name != "description", row.High
	case endpoint.Pairs:
		p.Optional, p.Mono, p.Rows, p.Placeholder = true, true, 3, row.Placeholder
	}
	return p
}

// choices are the options of a setting. An endpoint with a custom signature, which only the API can set, has an option
// of its own.
func (f EndpointForm) choices(row endpoint.Field) (out []components.Option) {
	for _, o := range row.Options {
		if row.Name == "public_signature" && !f.Choose && !endpoint.PublicSignature(o.Value).Fits(endpoint.Kind(f.Kind)) {
			continue
		}
		out = append(out, components.Option{Value: o.Value, Label: o.Label, Hint: o.Hint})
	}
	if f.Values[row.Name] == string(signature.Templated) {
		out = append(out, components.Option{Label: "Own template (template)", Value: string(signature.Templated)})
	}
	return out
}

// NewEndpointView is the form of a new endpoint.
type NewEndpointView struct {
	Shell   layout.Shell
	Root    string // of the endpoints' pages
	Inboxes string // the address of the test inbox form
	Form    EndpointForm
}

// ForAlerts says that a new endpoint is an alert channel.
const ForAlerts = "alerts"

// PresetField is the name of the field for a variable of a preset.
func PresetField(preset, variable string) string { return preset + "_" + variable }

func (v NewEndpointView) text() string {
	if v.Form.Alerts {
		return "An endpoint that gets the tenant's notices: a chat, a pager, or your own server."
	}
	return "Choose a destination and its events. Delivery starts once the endpoint is verified."
}

// PresetOptions are the presets of transformations. none is what no preset is called.
func PresetOptions(none string) []components.Option {
	out := []components.Option{{Value: "", Label: none}}
	for _, p := range transform.Presets() {
		out = append(out, components.Option{Value: p.Name, Label: p.Label})
	}
	return out
}

// wrong is the error of a field; entries of maps and lists ("custom_headers.X-A") count as their field.
func (f EndpointForm) wrong(field string) string {
	if text := f.Wrong[field]; text != "" {
		return text
	}
	for name, text := range f.Wrong {
		if strings.HasPrefix(name, field+".") {
			return text
		}
	}
	return ""
}

// summary lists all errors, for the head of the form.
func (f EndpointForm) summary() []components.Wrong {
	var out []components.Wrong
	for name, text := range f.Wrong {
		field, part, _ := strings.Cut(name, ".")
		id := "f-" + field
		switch own := fieldIDs[name]; {
		case name == "":
			id = ""
		case own != "":
			id = own
		case endpoint.ConnectionForm(name) != "":
			id = "f-" + endpoint.ConnectionForm(name)
		case field == "auth":
			id = "f-auth_" + cmp.Or(part, "type")
		case field == "tls":
			id = "f-tls_" + cmp.Or(part, "client_certificate")
		}
		out = append(out, components.Wrong{ID: id, Detail: text})
	}
	slices.SortFunc(out, func(a, b components.Wrong) int { return cmp.Compare(a.ID+a.Detail, b.ID+b.Detail) })
	return out
}

// fieldIDs are the ids of fields whose names differ from the API's.
var fieldIDs = map[string]string{
	"retry_policy.delays": "f-retry_delays",
	"retry_policy.jitter": "f-retry_jitter",
}

func kindOptions() []components.Option {
	return []components.Option{
		{Label: "HTTP", Value: string(endpoint.HTTP), Hint: "A signed POST to your URL."},
		{Label: "Kafka", Value: string(endpoint.Kafka), Hint: "A signed record in your topic."},
		{Label: "RabbitMQ", Value: string(endpoint.RabbitMQ), Hint: "A signed message to your exchange."},
		{Label: "Amazon SQS", Value: string(endpoint.SQS), Hint: "A signed message to your queue."},
		{Label: "Amazon S3", Value: string(endpoint.S3), Hint: "A signed object in your bucket, of many events."},
		{Label: "Feed", Value: string(endpoint.Feed), Hint: "Your program reads the events itself, without a public address."},
	}
}

// when names the kind for which a part of the form is shown; without a choice all parts are shown.
func when(choose bool, kind endpoint.Kind) templ.Attributes {
	if !choose {
		return nil
	}
	return templ.Attributes{"data-when": "kind=" + string(kind)}
}

// whenChosen names the choice with which a part of the form is shown; empty: always.
func whenChosen(choice string) templ.Attributes {
	if choice == "" {
		return nil
	}
	return templ.Attributes{"data-when": choice}
}

func (f EndpointForm) connection() ConnectionForm {
	return ConnectionForm{Use: endpoint.ToEndpoint, Values: f.Connection, Wrong: f.Wrong}
}

func passwordHint(onRecord bool) string {
	if onRecord {
		return "Leave empty to keep the current one."
	}
	return "Stored encrypted and never shown."
}

func (f EndpointForm) typeOptions() []components.Option {
	out := make([]components.Option, len(f.Catalogue))
	for i, name := range f.Catalogue {
		out[i] = components.Option{Label: name, Value: name, Selected: slices.Contains(f.Types, name)}
	}
	return out
}

func (f EndpointForm) scope() string {
	if f.All {
		return "all"
	}
	return "some"
}

// FormatOptions are the formats to choose.
func FormatOptions() []components.Option {
	return EndpointForm{}.choices(endpoint.FieldNamed("format"))
}

func retryOptions() []components.Option {
	var out []components.Option
	for _, name := range retry.Names() {
		s, _ := retry.Named(name)
		var total time.Duration
		for _, d := range s.Delays {
			total += d
		}
		out = append(out, components.Option{Label: name + ": " + over(s.Attempts(), total), Value: name})
	}
	return append(out, components.Option{Label: "custom: your own delays", Value: endpoint.Custom})
}

// DefaultRetryOptions are the schedules that a tenant can select for new endpoints. own: it has custom delays, which
// only the API can set.
func DefaultRetryOptions(own bool) []components.Option {
	options := retryOptions()
	options = options[:len(options)-1]
	if own {
		options = append(options, components.Option{Label: "custom: set by the API or the command line", Value: endpoint.Custom})
	}
	return append([]components.Option{{Label: "Platform default", Value: ""}}, options...)
}

func over(attempts int, total time.Duration) string {
	if attempts == 1 {
		return "a single attempt"
	}
	return components.Many(int64(attempts), "attempt", "attempts") + " over " + components.Duration(total)
}

// severalSignatures is the choice for a format with room for more than one signature.
func severalSignatures() string {
	var out []string
	for _, f := range signature.Formats() {
		if !f.OneSlot() {
			out = append(out, string(f))
		}
	}
	return "format=" + strings.Join(out, "|")
}

func patternsLabel(f EndpointForm) string {
	if len(f.Catalogue) > 0 {
		return "More patterns"
	}
	return "Event types"
}

// groups are the groups of settings of the endpoint's kind, or of all kinds if none is selected yet.
func (f EndpointForm) groups() []endpoint.Group {
	return slices.DeleteFunc(endpoint.Groups(), func(g endpoint.Group) bool { return !f.Choose && !g.Of(endpoint.Kind(f.Kind)) })
}

// line is the values of a group in one line.
func (f EndpointForm) line(g endpoint.Group) string {
	var parts []string
	for _, row := range g.Fields() {
		text := row.Line(f.Values[row.Name])
		switch row.Name {
		case "retry_policy":
			text, _, _ = strings.Cut(label(retryOptions(), f.RetryPolicy), " over ")
		case "auth":
			text = f.Auth.line()
		case "tls":
			text = f.TLS.line()
		}
		if text != "" && f.has(row) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " · ")
}

func label(options []components.Option, value string) string {
	for _, o := range options {
		if o.Value == value {
			return o.Label
		}
	}
	return value
}

// has reports whether the endpoint's kind has a setting.
func (f EndpointForm) has(row endpoint.Field) bool {
	kind := endpoint.Kind(f.Kind)
	switch row.Name {
	case "verification":
		return f.Choose || !kind.Broker() && !kind.Pulls()
	case "auth", "tls":
		return f.Choose || kind == endpoint.HTTP
	case "public_signature":
		return f.Choose || kind == endpoint.HTTP || kind.Pulls()
	}
	return true
}

// groupWhen names the kind with which a group is shown.
func (f EndpointForm) groupWhen(g endpoint.Group) templ.Attributes {
	if g == endpoint.Access {
		return when(f.Choose, endpoint.HTTP)
	}
	return nil
}

// settingWhen names the choice with which a setting is shown.
func (f EndpointForm) settingWhen(name string) templ.Attributes {
	switch {
	case name == "type_field":
		return templ.Attributes{"data-when": "format=" + string(signature.XWebhook)}
	case name == "rotation_signatures":
		return templ.Attributes{"data-when": severalSignatures()}
	case name == "public_signature" && f.Choose:
		return templ.Attributes{"data-when": "kind=" + string(endpoint.HTTP) + "|" + string(endpoint.Feed)}
	case name == "verification" && f.Choose:
		return when(true, endpoint.HTTP)
	}
	return nil
}

// faulty reports whether a group of the form has an error, so that it is open.
func (f EndpointForm) faulty(g endpoint.Group) bool {
	return slices.ContainsFunc(g.Fields(), func(row endpoint.Field) bool { return f.wrong(row.Name) != "" }) ||
		g == endpoint.Signing && f.wrong("secret")+f.wrong("secret_type") != ""
}

func secretTypeOptions() []components.Option {
	return []components.Option{
		{Label: "HMAC: one shared secret", Value: string(endpoint.HMAC)},
		{Label: "ed25519: a key pair; receivers get the public key", Value: string(endpoint.Ed25519)},
	}
}
