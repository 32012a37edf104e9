package importer

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

	"posthorn/client"
)

// Outpost is an Outpost server, managed or self-hosted, of which webhook destinations are copied. How it signs is a
// setting of the whole server: environ is its environment, NAME=value a line; nil reads it from the API of a managed
// one.
func Outpost(ctx context.Context, server, token string, environ []byte, only []string) (Sender, error) {
	s := &outpostSender{source: newSource("Outpost", server, token), only: only}
	config, err := s.config(ctx, environ)
	if err != nil {
		return nil, err
	}
	s.prefix, s.retries = outpostPrefix(config), outpostRetries(config)
	s.wire, err = outpostWire(config)
	return s, err
}

type outpostSender struct {
	*source
	only    []string
	wire    map[string]any // format and wire of every endpoint
	prefix  string         // of its headers
	retries map[string]any
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

// config is the server's configuration by Outpost's own names.
func (s *outpostSender) config(ctx context.Context, environ []byte) (map[string]string, error) {
	config := map[string]string{}
	if environ == nil {
		err := s.get(ctx, "/config", &config)
		if hasStatus(err, http.StatusNotFound) || hasStatus(err, http.StatusNotImplemented) ||
			hasStatus(err, http.StatusMethodNotAllowed) {
			err = nil // self-hosted
		}
		return config, err
	}
	for line := range strings.Lines(string(environ)) {
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

func (s *outpostSender) tenants(ctx context.Context) ([]tenant, error) {
	out, err := pages(s.source, "/tenants", func(next string) (out []tenant, more string, err error) {
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
	case hasStatus(err, http.StatusNotImplemented) && len(s.only) > 0:
		return s.named(ctx)
	case hasStatus(err, http.StatusNotImplemented):
		return nil, failf("This Outpost can't list its tenants: its Redis lacks RediSearch. Name them, each with --only ID.")
	}
	return out, err
}

// named reads the tenants that --only names.
func (s *outpostSender) named(ctx context.Context) ([]tenant, error) {
	out := make([]tenant, len(s.only))
	for i, tenant := range s.only {
		var t outpostTenant
		if err := s.get(ctx, "/tenants/"+url.PathEscape(tenant), &t); err != nil {
			return nil, err
		}
		out[i] = t.tenant()
	}
	return out, nil
}

func (t outpostTenant) tenant() tenant {
	out := tenant{id: t.ID, external: t.ID, title: t.ID}
	if len(t.Metadata) > 0 {
		out.settings.Metadata = &t.Metadata
	}
	if name := t.Metadata["name"]; name != "" {
		out.title = name
	}
	return out
}

func (s *outpostSender) eventTypes(ctx context.Context) (types []client.EventTypeInput, err error) {
	var topics []string
	err = s.get(ctx, "/topics", &topics)
	for _, name := range topics {
		if name != "*" {
			types = append(types, client.EventTypeInput{Name: name})
		}
	}
	return types, err
}

func (s *outpostSender) endpoints(ctx context.Context, t tenant) ([]endpoint, error) {
	var there []outpostDestination
	err := s.get(ctx, "/tenants/"+url.PathEscape(t.id)+"/destinations", &there)
	out := make([]endpoint, len(there))
	for i, d := range there {
		out[i] = s.endpoint(d)
	}
	return out, err
}

// endpoint is a destination as Posthorn imports it.
func (s *outpostSender) endpoint(d outpostDestination) endpoint {
	out := endpoint{id: d.ID, external: d.ID, disabled: d.DisabledAt != nil, secret: d.Credentials["secret"]}
	leave := func(format string, args ...any) endpoint {
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
	fields := with(settings(d.Config["url"], d.Topics, s.retries), headers, d.Metadata)
	maps.Copy(fields, s.wire)
	if fields["filter"] = filter; filter == "" {
		fields["filter"] = nil
	}
	out.fields = fields
	return out
}

func (s *outpostSender) enable(ctx context.Context, t tenant, endpoint string, on bool) error {
	action := "/disable"
	if on {
		action = "/enable"
	}
	return s.do(ctx, http.MethodPut, "/tenants/"+url.PathEscape(t.id)+"/destinations/"+url.PathEscape(endpoint)+action, nil, nil)
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
