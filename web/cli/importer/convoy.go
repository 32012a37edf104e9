package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"posthorn/client"
)

// Convoy is a project of a Convoy server. Endpoints with an owner_id belong to a tenant of that name, the others to a
// tenant with the project's id.
func Convoy(server, token, project string, now time.Time) Sender {
	return &convoySender{
		source:  newSource("Convoy", server, token),
		root:    "/api/v1/projects/" + url.PathEscape(project),
		project: project,
		now:     now,
	}
}

type convoySender struct {
	*source
	root, project string
	now           time.Time
	config        convoyConfig
	owners        map[string][]convoyEndpoint
	subscriptions map[string][]convoySubscription // by endpoint
}

// The objects of Convoy's API, as far as they are copied.
type (
	convoyConfig struct {
		IDHeader  string `json:"request_id_header"`
		Signature struct {
			Header   string `json:"header"`
			Versions []struct {
				Hash     string `json:"hash"`
				Encoding string `json:"encoding"`
			} `json:"versions"`
		} `json:"signature"`
		Strategy struct {
			Type       string `json:"type"`
			Duration   int    `json:"duration"` // seconds
			RetryCount int    `json:"retry_count"`
		} `json:"strategy"`
	}
	convoyEndpoint struct {
		UID         string `json:"uid"`
		Owner       string `json:"owner_id"`
		URL         string `json:"url"`
		Name        string `json:"name"`
		Description string `json:"description"`
		Secrets     []struct {
			Value     string     `json:"value"`
			ExpiresAt *time.Time `json:"expires_at"`
		} `json:"secrets"`
		Advanced          bool            `json:"advanced_signatures"`
		Status            string          `json:"status"`
		Timeout           int             `json:"http_timeout"` // seconds
		RateLimit         int             `json:"rate_limit"`
		RateLimitDuration int             `json:"rate_limit_duration"` // seconds
		ContentType       string          `json:"content_type"`
		ClientCertificate json.RawMessage `json:"mtls_client_cert"`
		Authentication    *struct {
			Type   string `json:"type"`
			APIKey *struct {
				Name  string `json:"header_name"`
				Value string `json:"header_value"`
			} `json:"api_key"`
		} `json:"authentication"`
	}
	convoySubscription struct {
		Function string `json:"function"`
		Endpoint *struct {
			UID string `json:"uid"`
		} `json:"endpoint_metadata"`
		Filter *struct {
			EventTypes []string                   `json:"event_types"`
			Filter     map[string]json.RawMessage `json:"filter"`
		} `json:"filter_config"`
	}
)

// convoyRead reads the data of a response.
func convoyRead[T any](ctx context.Context, s *convoySender, path string) (T, error) {
	var page struct {
		Data T `json:"data"`
	}
	err := s.get(ctx, s.root+path, &page)
	return page.Data, err
}

// convoyPages reads every page of a list.
func convoyPages[T any](ctx context.Context, s *convoySender, path string) ([]T, error) {
	return pages(s.source, s.root+path, func(cursor string) ([]T, string, error) {
		query := url.Values{"perPage": {"100"}, "direction": {"next"}, "sort": {"ASC"}}
		if cursor != "" {
			query.Set("next_page_cursor", cursor)
		}
		type page struct {
			Content    []T `json:"content"`
			Pagination struct {
				More bool   `json:"has_next_page"`
				Next string `json:"next_page_cursor"`
			} `json:"pagination"`
		}
		p, err := convoyRead[page](ctx, s, path+"?"+query.Encode())
		if !p.Pagination.More {
			p.Pagination.Next = ""
		}
		return p.Content, p.Pagination.Next, err
	})
}

// tenants reads the whole project: Convoy lists endpoints, not their owners.
func (s *convoySender) tenants(ctx context.Context) ([]tenant, error) {
	project, err := convoyRead[struct {
		Name   string       `json:"name"`
		Config convoyConfig `json:"config"`
	}](ctx, s, "")
	if err != nil {
		return nil, err
	}
	s.config = project.Config
	endpoints, err := convoyPages[convoyEndpoint](ctx, s, "/endpoints")
	if err != nil {
		return nil, err
	}
	subscriptions, err := convoyPages[convoySubscription](ctx, s, "/subscriptions")
	if err != nil {
		return nil, err
	}
	s.owners, s.subscriptions = map[string][]convoyEndpoint{}, map[string][]convoySubscription{}
	for _, x := range subscriptions {
		if x.Endpoint != nil {
			s.subscriptions[x.Endpoint.UID] = append(s.subscriptions[x.Endpoint.UID], x)
		}
	}
	var out []tenant
	for _, x := range endpoints {
		owner, title := x.Owner, x.Owner
		if owner == "" {
			owner, title = s.project, cmp.Or(project.Name, s.project)
		}
		if s.owners[owner] == nil {
			out = append(out, tenant{id: owner, external: owner, title: title})
		}
		s.owners[owner] = append(s.owners[owner], x)
	}
	return out, nil
}

func (s *convoySender) eventTypes(ctx context.Context) (types []client.EventTypeInput, err error) {
	found, err := convoyRead[[]struct {
		Name        string  `json:"name"`
		Description string  `json:"description"`
		Deprecated  *string `json:"deprecated_at"`
	}](ctx, s, "/event-types")
	for _, t := range found {
		if t.Name != "*" { // all types
			types = append(types, client.EventTypeInput{Name: t.Name, Description: &t.Description, Deprecated: new(t.Deprecated != nil)})
		}
	}
	return types, err
}

func (s *convoySender) endpoints(_ context.Context, t tenant) (out []endpoint, err error) {
	for _, x := range s.owners[t.id] {
		out = append(out, s.endpoint(x))
	}
	return out, nil
}

// endpoint is an endpoint with its subscriptions, as Posthorn imports it.
func (s *convoySender) endpoint(x convoyEndpoint) endpoint {
	out := endpoint{id: x.UID, external: x.UID, disabled: x.Status != "active"}
	for _, secret := range x.Secrets {
		if secret.ExpiresAt == nil || secret.ExpiresAt.IsZero() || secret.ExpiresAt.After(s.now) {
			out.secret = secret.Value // the last is the one that it signs with
		}
	}
	types, note := s.receives(x)
	if note == "" {
		note = x.unknown()
	}
	if note != "" {
		out.notes = append(out.notes, note)
		return out
	}
	wire, err := s.wire(x.Advanced)
	if err != nil {
		out.notes = append(out.notes, err.Error())
		return out
	}
	out.fields = settings(x.URL, types, s.retries())
	out.fields["description"], out.fields["rate_limit"] = cmp.Or(x.Description, x.Name), nil
	out.fields["format"], out.fields["prefix"], out.fields["wire"] = "template", "Convoy", wire
	if x.Timeout > 0 {
		out.fields["timeout_seconds"] = min(x.Timeout, 30)
	}
	if x.RateLimit > 0 {
		out.fields["rate_limit"] = max(1, x.RateLimit/max(x.RateLimitDuration, 1))
	}
	out.fields["custom_headers"], out.fields["sensitive_headers"] = map[string]string{}, []string{}
	if a := x.Authentication; a != nil && a.APIKey != nil {
		out.fields["custom_headers"] = map[string]string{a.APIKey.Name: a.APIKey.Value}
		out.fields["sensitive_headers"] = []string{a.APIKey.Name}
	}
	return out
}

// unknown says what of an endpoint has no equivalent, or is not shown.
func (x convoyEndpoint) unknown() string {
	byHand := " Add the endpoint with `posthorn import FILE` under this external_id"
	switch a := x.Authentication; {
	case a != nil && a.Type == "basic_auth":
		return "Convoy does not show the password of its basic authentication." + byHand + ", with its Authorization header in custom_headers."
	case a != nil && a.Type == "oauth2":
		return "It authenticates with OAuth 2, which Posthorn does not." + byHand + " once its receiver accepts the signature alone."
	case len(x.ClientCertificate) > 0 && string(x.ClientCertificate) != "null":
		return "It has a client certificate, which Posthorn does not send." + byHand + " once its receiver accepts the signature alone."
	case x.ContentType != "" && x.ContentType != "application/json":
		return fmt.Sprintf("Its bodies are %s, and Posthorn sends JSON.%s once its receiver accepts it.", x.ContentType, byHand)
	}
	return ""
}

// receives are the event types of all subscriptions of an endpoint. note says what of them has no equivalent.
func (s *convoySender) receives(x convoyEndpoint) (types []string, note string) {
	for _, sub := range s.subscriptions[x.UID] {
		if sub.Function != "" {
			return nil, "A subscription of it transforms what it is sent, which Posthorn does not. Emit what its receiver expects, and add it with `posthorn import FILE`."
		}
		if sub.Filter == nil {
			types = append(types, "*")
			continue
		}
		for name, rule := range sub.Filter.Filter {
			if text := strings.TrimSpace(string(rule)); name != "is_flattened" && text != "null" && text != "{}" {
				return nil, "A subscription of it has a filter. Add it with `posthorn import FILE` and a filter in CEL, under this external_id."
			}
		}
		types = append(types, sub.Filter.EventTypes...)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	switch {
	case len(types) == 0:
		return nil, "It has no subscription, so it receives nothing."
	case slices.Contains(types, "*"):
		types = []string{"*"}
	}
	return types, ""
}

// wire is how the project signs: the newest version of its signature, as endpoints with one secret get it.
func (s *convoySender) wire(advanced bool) (map[string]any, error) {
	versions := s.config.Signature.Versions
	if len(versions) == 0 {
		return nil, fmt.Errorf("the project %s has no signature version", s.project)
	}
	newest := versions[len(versions)-1]
	signature := map[string]string{"value": "{" + cmp.Or(newest.Encoding, "hex") + "}", "content": "{body}", "algorithm": "hmac-" + strings.ToLower(newest.Hash)}
	if advanced {
		signature["value"] = fmt.Sprintf("t={ts},v%d=%s", len(versions), signature["value"])
		signature["content"] = "{ts},{body}"
	}
	return map[string]any{
		"body":      "payload",
		"signature": signature,
		"header_names": map[string]string{
			"signature": cmp.Or(s.config.Signature.Header, "X-Convoy-Signature"),
			"id":        cmp.Or(s.config.IDHeader, "X-Convoy-Idempotency-Key"),
			"event":     "",
			"delivery":  "",
			"timestamp": "",
		},
	}, nil
}

func (s *convoySender) retries() map[string]any {
	seconds, times := max(s.config.Strategy.Duration, 1), max(s.config.Strategy.RetryCount, 1)
	if s.config.Strategy.Type == "exponential" {
		return doubling(seconds, times, 7200)
	}
	return doubling(seconds, times, seconds)
}

// enable pauses an endpoint or takes the pause back: Convoy has one call for both, so it is asked first.
func (s *convoySender) enable(ctx context.Context, _ tenant, endpoint string, on bool) error {
	path := "/endpoints/" + url.PathEscape(endpoint)
	x, err := convoyRead[convoyEndpoint](ctx, s, path)
	if err != nil || (x.Status == "active") == on {
		return err
	}
	return s.do(ctx, http.MethodPut, s.root+path+"/pause", nil, nil)
}
