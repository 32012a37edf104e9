package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"posthorn/client"
)

// importOutpostCommand copies what an Outpost server holds.
type importOutpostCommand struct {
	moveFlags
	URL    string   `required:"" placeholder:"URL" help:"The base of its API, such as http://outpost:3333/api/v1."`
	Token  string   `required:"" env:"OUTPOST_API_KEY" placeholder:"KEY" help:"Its admin API key (or OUTPOST_API_KEY)."`
	Only   []string `name:"only" placeholder:"ID" help:"Only these tenants."`
	Config string   `placeholder:"FILE" help:"Its environment variables, NAME=value a line. Left out, they are read from its API, which self-hosted servers don't have: then the defaults count."`
}

// Run copies tenants and their webhook destinations.
func (c importOutpostCommand) Run(ctx context.Context, e *Env) error {
	from := &outpostSender{source: newSource("Outpost", c.URL, c.Token), only: c.Only}
	config, err := from.config(ctx, c.Config)
	if err != nil {
		return err
	}
	if from.wire, err = outpostWire(config); err != nil {
		return err
	}
	from.prefix = outpostPrefix(config)
	from.retries = outpostRetries(config)
	return c.run(ctx, e, from, c.Only)
}

// outpostSender is an Outpost server, managed or self-hosted. How it signs is a setting of the whole server.
type outpostSender struct {
	*source
	only    []string
	wire    map[string]any // format and wire of every endpoint
	prefix  string         // of its headers
	retries map[string]any
	once    sync.Once
	types   []client.EventTypeInput
	err     error
}

// The objects of Outpost's API, as far as they are copied.
type (
	outpostTenant struct {
		ID       string            `json:"id"`
		Metadata map[string]string `json:"metadata"`
	}
	outpostDestination struct {
		ID               string            `json:"id"`
		Type             string            `json:"type"`
		Topics           outpostTopics     `json:"topics"`
		Filter           map[string]any    `json:"filter"`
		DisabledAt       *string           `json:"disabled_at"`
		Config           map[string]string `json:"config"`
		Credentials      map[string]string `json:"credentials"`
		DeliveryMetadata map[string]string `json:"delivery_metadata"`
		Metadata         map[string]string `json:"metadata"`
	}
)

// outpostTopics are the topics of a destination: a list, or the text "*".
type outpostTopics []string

// UnmarshalJSON reads both.
func (t *outpostTopics) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = outpostTopics{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// config is the server's configuration by Outpost's own names: of a file, or what the API of a managed server shows.
func (s *outpostSender) config(ctx context.Context, file string) (map[string]string, error) {
	config := map[string]string{}
	if file == "" {
		err := s.get(ctx, "/config", &config)
		if answeredWith(err, http.StatusNotFound) || answeredWith(err, http.StatusNotImplemented) ||
			answeredWith(err, http.StatusMethodNotAllowed) {
			err = nil // self-hosted
		}
		return config, err
	}
	text, err := readFile(ctx, file)
	if err != nil {
		return nil, fail(ExitUsage, "The file of --config can't be read: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, found := strings.Cut(line, "=")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		if unquoted, err := strconv.Unquote(value); err == nil {
			value = unquoted
		}
		config[strings.TrimSpace(name)] = strings.Trim(value, "'")
	}
	return config, nil
}

func (s *outpostSender) tenants(ctx context.Context) ([]foreignTenant, error) {
	out, err := pages(s.source, "/tenants", func(next string) (out []foreignTenant, more string, err error) {
		query := url.Values{"limit": {"100"}, "dir": {"asc"}}
		if next != "" {
			query.Set("next", next)
		}
		var page struct {
			Models     []outpostTenant `json:"models"`
			Pagination struct {
				Next *string `json:"next"`
			} `json:"pagination"`
		}
		if err := s.get(ctx, "/tenants?"+query.Encode(), &page); err != nil {
			return nil, "", err
		}
		for _, t := range page.Models {
			out = append(out, t.tenant())
		}
		if page.Pagination.Next != nil {
			more = *page.Pagination.Next
		}
		return out, more, nil
	})
	switch {
	case answeredWith(err, http.StatusNotImplemented) && len(s.only) > 0:
		return s.named(ctx)
	case answeredWith(err, http.StatusNotImplemented):
		return nil, fail(ExitFailed, "This Outpost can't list its tenants: its Redis lacks RediSearch. Name them, each with --only ID.")
	}
	return out, err
}

// named reads the tenants that --only names.
func (s *outpostSender) named(ctx context.Context) ([]foreignTenant, error) {
	out := make([]foreignTenant, len(s.only))
	for i, tenant := range s.only {
		var t outpostTenant
		if err := s.get(ctx, "/tenants/"+url.PathEscape(tenant), &t); err != nil {
			return nil, err
		}
		out[i] = t.tenant()
	}
	return out, nil
}

func (t outpostTenant) tenant() foreignTenant {
	out := foreignTenant{id: t.ID, external: t.ID, title: t.ID}
	if name := t.Metadata["name"]; name != "" {
		out.title = name
	}
	return out
}

func (s *outpostSender) contents(ctx context.Context, t foreignTenant) (out contents, err error) {
	s.once.Do(func() {
		var topics []string
		if s.err = s.get(ctx, "/topics", &topics); s.err != nil {
			return
		}
		for _, name := range topics {
			if name != "*" {
				s.types = append(s.types, client.EventTypeInput{Name: name})
			}
		}
	})
	if s.err != nil {
		return out, s.err
	}
	out.types = s.types
	var there []outpostDestination
	if err := s.get(ctx, "/tenants/"+url.PathEscape(t.id)+"/destinations", &there); err != nil {
		return out, err
	}
	for _, d := range there {
		out.endpoints = append(out.endpoints, s.endpoint(d))
	}
	return out, nil
}

// endpoint is a destination as Posthorn imports it.
func (s *outpostSender) endpoint(d outpostDestination) foreignEndpoint {
	out := foreignEndpoint{id: d.ID, external: d.ID, disabled: d.DisabledAt != nil, secret: d.Credentials["secret"]}
	leave := func(format string, args ...any) foreignEndpoint {
		out.notes = append(out.notes, fmt.Sprintf(format, args...))
		return out
	}
	if d.Type != "webhook" {
		return leave("Destinations of the type %s are not copied. For Kafka create an endpoint of the kind kafka by hand.", d.Type)
	}
	if until := d.Credentials["previous_secret_invalid_at"]; d.Credentials["previous_secret"] != "" && s.wire["format"] == "template" {
		out.notes = append(out.notes, "Its secret is being rotated until "+until+". Here the new one signs alone: cut over after that time, or when its receiver has the new secret.")
	}
	filter, ok := outpostFilter(d.Filter)
	if !ok {
		return leave("Its filter has no equivalent. Add the endpoint with `posthorn import FILE` and a filter in CEL, under this external_id.")
	}
	headers := map[string]string{}
	if text := d.Config["custom_headers"]; text != "" && json.Unmarshal([]byte(text), &headers) != nil {
		return leave("Its custom headers are not a JSON object.")
	}
	for name, value := range d.DeliveryMetadata {
		headers[s.prefix+name] = value
	}
	fields := maps.Clone(s.wire)
	fields["url"], fields["event_types"] = d.Config["url"], []string(d.Topics)
	fields["verification"], fields["retry_client_errors"], fields["retry_policy"] = "simple", true, s.retries
	if len(headers) > 0 {
		fields["custom_headers"] = headers
	}
	if len(d.Metadata) > 0 {
		fields["metadata"] = d.Metadata
	}
	if filter != "" {
		fields["filter"] = filter
	}
	out.fields = fields
	return out
}

func (s *outpostSender) enable(ctx context.Context, t foreignTenant, endpoint string, on bool) error {
	action := "/disable"
	if on {
		action = "/enable"
	}
	return s.put(ctx, "/tenants/"+url.PathEscape(t.id)+"/destinations/"+url.PathEscape(endpoint)+action)
}

// outpostOperators are the operators of Outpost's filters that have one in CEL.
var outpostOperators = map[string]string{"$eq": "==", "$neq": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in"}

// outpostFilter is a filter in CEL; empty for none. ok is false where it asks for something else than the data, or by
// an operator without an equivalent.
func outpostFilter(filter map[string]any) (text string, ok bool) {
	var terms []string
	var walk func(path string, value any) bool
	walk = func(path string, value any) bool {
		fields, nested := value.(map[string]any)
		if !nested {
			literal, err := json.Marshal(value)
			terms = append(terms, path+" == "+string(literal))
			return err == nil
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if operator, known := outpostOperators[name]; known {
				literal, err := json.Marshal(fields[name])
				if err != nil {
					return false
				}
				terms = append(terms, path+" "+operator+" "+string(literal))
				continue
			}
			quoted, err := json.Marshal(name)
			if err != nil || strings.HasPrefix(name, "$") || !walk(path+"["+string(quoted)+"]", fields[name]) {
				return false
			}
		}
		return true
	}
	for name, value := range filter {
		if name != "data" || !walk("data", value) {
			return "", false
		}
	}
	return strings.Join(terms, " && "), true
}

// outpostRetries is the schedule of a server's configuration.
func outpostRetries(config map[string]string) map[string]any {
	var pauses []int
	for text := range strings.SplitSeq(config["RETRY_SCHEDULE"], ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			pauses = append(pauses, n)
		}
	}
	if len(pauses) > 0 {
		return delays(pauses...)
	}
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(config[name]); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	return doubling(number("RETRY_INTERVAL_SECONDS", 30), number("MAX_RETRY_LIMIT", 10), 86400)
}

// doubling is a retry policy whose pauses double up to a longest one, in seconds.
func doubling(first, times, longest int) map[string]any {
	var pauses []int
	for pause := max(first, 1); len(pauses) < min(times, 20); pause = min(2*pause, longest) {
		pauses = append(pauses, min(pause, longest))
	}
	return delays(pauses...)
}
