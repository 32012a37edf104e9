package dashboard

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/retry"
	"posthorn/domain/show"
	"posthorn/domain/transform"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// mostTypes bounds the event types that a form lists with checkboxes. The others can be typed.
const mostTypes = 200

// knownTypes are the first names of the catalog; none behind a portal link that hides it.
func knownTypes(c *handlers.Call, q *db.Tx, limit int) (names []string, err error) {
	if !c.Actor.May(access.ReadEventTypes) {
		return nil, nil
	}
	known, err := events.Types(c.Ctx(), q, c.Actor.Tenant, show.Range{Limit: limit, Ascending: true})
	for _, t := range known.Rows {
		names = append(names, t.Name)
	}
	return names, err
}

// formOf shows settings in the form.
func formOf(s endpoint.Settings, catalogue []string) pages.EndpointForm {
	f := pages.EndpointForm{
		Kind:        string(s.Kind),
		Connection:  connectionText(s),
		Auth:        authForm(s),
		TLS:         tlsForm(s),
		URL:         s.URL,
		All:         slices.Equal(s.EventTypes, []string{"*"}),
		Filter:      filterText(s.Filter),
		Values:      map[string]string{},
		RetryPolicy: s.RetryPolicy,
		RetryJitter: strconv.FormatFloat(endpoint.DefaultJitter, 'f', -1, 64),
		SecretType:  string(endpoint.HMAC),
		Catalogue:   catalogue,
	}
	for _, row := range pages.FormFields() {
		f.Values[row.Name] = row.Text(s)
	}
	var patterns, delays []string
	for _, t := range s.EventTypes {
		if slices.Contains(catalogue, t) {
			f.Types = append(f.Types, t)
		} else if !f.All {
			patterns = append(patterns, t)
		}
	}
	if s.RetryPolicy == endpoint.Custom && len(s.RetryDelays) == 0 {
		f.RetryPolicy = retry.Once
	}
	if s.RetryJitter != nil {
		f.RetryJitter = strconv.FormatFloat(*s.RetryJitter, 'f', -1, 64)
	}
	for _, d := range s.RetryDelays {
		delays = append(delays, strconv.Itoa(d))
	}
	f.Patterns, f.RetryDelays = strings.Join(patterns, "\n"), strings.Join(delays, " ")
	return f
}

// filled is the form as it was sent, so that the person can fix it.
func filled(in url.Values, catalogue []string, cause error) (pages.EndpointForm, error) {
	f := pages.EndpointForm{
		Kind:        in.Get("kind"),
		URL:         in.Get("url"),
		Connection:  typedConnection(in, endpoint.ToEndpoint),
		Auth:        typedAuth(in),
		TLS:         pages.TLSForm{Certificate: in.Get("tls_client_certificate"), CA: in.Get("tls_ca_certificate")},
		All:         in.Get("scope") == "all",
		Types:       in["types"],
		Patterns:    in.Get("patterns"),
		Filter:      in.Get("filter"),
		Values:      map[string]string{},
		RetryPolicy: in.Get("retry_policy"),
		RetryDelays: in.Get("retry_delays"),
		RetryJitter: in.Get("retry_jitter"),
		SecretType:  in.Get("secret_type"),
		Alerts:      in.Get("for") == pages.ForAlerts,
		Preset:      in.Get("preset"),
		Variables:   map[string]string{},
		Catalogue:   catalogue,
		Wrong:       handlers.WrongFields(cause),
	}
	for _, row := range pages.FormFields() {
		f.Values[row.Name] = typedValue(in, row)
	}
	for _, p := range transform.Presets() {
		for _, v := range p.Variables {
			f.Variables[pages.PresetField(p.Name, v.Name)] = in.Get(pages.PresetField(p.Name, v.Name))
		}
	}
	return f, handlers.NotInput(cause)
}

// typedValue is what the form has for a setting. A browser sends a switch only when it is on.
func typedValue(in url.Values, row endpoint.Field) string {
	if row.Type == endpoint.Switch {
		return map[bool]string{true: "on", false: "off"}[in.Has(row.Name)]
	}
	return in.Get(row.Name)
}

// settingsOf lays the form over settings. It leaves validation to Check: an invalid number becomes one out of its
// range.
func settingsOf(in url.Values, s endpoint.Settings) (endpoint.Settings, error) {
	s = s.Clone()
	given := map[string]json.RawMessage{}
	if s.Kind.Broker() {
		given[string(s.Kind)] = connectionJSON(in, s.Kind, endpoint.ToEndpoint)
	} else {
		given["url"] = textJSON(strings.TrimSpace(in.Get("url")))
	}
	if s.Kind == endpoint.HTTP && in.Has("auth_type") {
		given["auth"], given["tls"] = authJSON(in), tlsJSON(in)
	}
	for _, row := range pages.FormFields() {
		if row.Type != endpoint.Switch && !in.Has(row.Name) || row.Name == "verification" && s.Kind.Broker() || !row.Group.Of(s.Kind) {
			continue
		}
		raw, err := row.Parse(typedValue(in, row))
		if err != nil {
			return s, err
		}
		given[row.Name] = raw
	}
	if err := s.Patch(given); err != nil {
		return s, err
	}
	s.SetFormat(s.Format) // the form has fields of every format
	s.EventTypes = typesOf(in)
	if in.Has("filter") { // the settings page leaves it to the filter's own
		s.Filter = filterJSON(in.Get("filter"))
	}
	if !endpoint.Retries.Of(s.Kind) {
		return s, nil
	}
	return s, retriesOf(in, &s)
}

// retriesOf reads the schedule.
func retriesOf(in url.Values, s *endpoint.Settings) error {
	full := s.RetryFull && s.RetryPolicy == in.Get("retry_policy") // which only the API can set
	s.RetryPolicy, s.RetryDelays, s.RetryJitter, s.RetryFull = in.Get("retry_policy"), nil, nil, full
	if s.RetryPolicy != endpoint.Custom {
		return nil
	}
	for _, text := range endpoint.Split(in.Get("retry_delays")) {
		s.RetryDelays = append(s.RetryDelays, number(text))
	}
	if len(s.RetryDelays) == 0 {
		return fault.InvalidField("retry_policy.delays", "retry_delays_count", "Enter at least one delay, or select once for a single attempt.")
	}
	if text := strings.TrimSpace(in.Get("retry_jitter")); text != "" {
		jitter, err := strconv.ParseFloat(text, 64)
		if err != nil {
			jitter = -1 // which no schedule permits
		}
		s.RetryJitter = &jitter
	}
	return nil
}

// connectionText shows the endpoint's connection in the form, and the defaults of the other kinds.
func connectionText(s endpoint.Settings) map[string]string {
	values := map[string]string{}
	for _, kind := range endpoint.Kinds() {
		var shown any
		if kind == s.Kind && s.Connection != nil {
			shown = s.Shown()[string(kind)]
		}
		maps.Copy(values, endpoint.ConnectionText(kind, endpoint.ToEndpoint, shown))
	}
	return values
}

// typedConnection is what the form has for all connections, without secrets.
func typedConnection(in url.Values, use endpoint.Use) map[string]string {
	values := map[string]string{}
	for _, row := range endpoint.ConnectionFields("", use) {
		switch {
		case row.Type == endpoint.Switch:
			values[row.Form()] = map[bool]string{true: "on", false: "off"}[in.Has(row.Form())]
		case !row.Secret:
			values[row.Form()] = in.Get(row.Form())
		}
	}
	return values
}

// connectionJSON is a connection as the API has it.
func connectionJSON(in url.Values, kind endpoint.Kind, use endpoint.Use) json.RawMessage {
	return endpoint.ConnectionJSON(kind, use, func(name string) string { return in.Get(name) })
}

// typesOf are the checked and the typed patterns.
func typesOf(in url.Values) []string {
	if in.Get("scope") == "all" {
		return []string{"*"}
	}
	return append(slices.Clone(in["types"]), endpoint.Split(in.Get("patterns"))...)
}

// number reads a number. An invalid one is -1, which no setting permits.
func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return -1
	}
	return n
}

// filterText is a filter as people write it: an expression without quotation marks, or a JSON object.
func filterText(saved string) string {
	var expression string
	if json.Unmarshal([]byte(saved), &expression) == nil {
		return expression
	}
	return saved
}

// filterJSON is a filter as it is saved: a text that starts with a brace is JSON, any other is an expression.
func filterJSON(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, "{") {
		return text
	}
	return string(textJSON(text))
}

func textJSON(text string) json.RawMessage {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text is always JSON
	}
	return out
}
