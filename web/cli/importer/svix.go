package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"posthorn/client"
)

// Svix is a Svix server, hosted or open source. Its applications become tenants, by their uid. A white-label server
// sends the headers webhook-id, webhook-timestamp and webhook-signature in place of svix-*.
func Svix(url, token string, whiteLabel bool) Sender {
	preset := "svix"
	if whiteLabel {
		preset = "standard-webhooks"
	}
	return &svixSender{source: newSource("Svix", url, token), preset: preset, rates: map[string]int{}}
}

type svixSender struct {
	*source
	preset string         // of every endpoint
	rates  map[string]int // of the applications that have one, by id
}

// The objects of Svix's API, as far as they are copied. Fields that were renamed have both names.
type (
	svixApplication struct {
		ID           string            `json:"id"`
		UID          *string           `json:"uid"`
		Name         string            `json:"name"`
		RateLimit    *int              `json:"rateLimit"`
		ThrottleRate *int              `json:"throttleRate"`
		Metadata     map[string]string `json:"metadata"`
	}
	svixEndpoint struct {
		ID           string            `json:"id"`
		UID          *string           `json:"uid"`
		URL          string            `json:"url"`
		Description  string            `json:"description"`
		Disabled     bool              `json:"disabled"`
		FilterTypes  []string          `json:"filterTypes"`
		EventTypes   []string          `json:"eventTypes"`
		Channels     []string          `json:"channels"`
		RateLimit    *int              `json:"rateLimit"`
		ThrottleRate *int              `json:"throttleRate"`
		Metadata     map[string]string `json:"metadata"`
	}
	svixEventType struct {
		Name        string                     `json:"name"`
		Description string                     `json:"description"`
		Deprecated  bool                       `json:"deprecated"`
		Archived    bool                       `json:"archived"`
		Schemas     map[string]json.RawMessage `json:"schemas"`
	}
	svixHeaders struct {
		Headers   map[string]string `json:"headers"`
		Sensitive []string          `json:"sensitive"`
	}
)

// uidOr is the uid of an object, or its id where it has none.
func uidOr(uid *string, id string) string {
	if uid != nil && *uid != "" {
		return *uid
	}
	return id
}

func (s *svixSender) tenants(ctx context.Context) ([]tenant, error) {
	apps, err := svixPages[svixApplication](ctx, s.source, "/api/v1/app")
	out := make([]tenant, len(apps))
	for i, a := range apps {
		out[i] = tenant{id: a.ID, external: uidOr(a.UID, a.ID), title: a.Name}
		if len(a.Metadata) > 0 {
			out[i].settings.Metadata = &a.Metadata
		}
		if rate := cmp.Or(a.ThrottleRate, a.RateLimit); rate != nil {
			out[i].settings.RateLimit = client.Value(*rate)
			s.rates[a.ID] = *rate
		}
	}
	return out, err
}

func (s *svixSender) endpoints(ctx context.Context, t tenant) ([]endpoint, error) {
	there, err := svixPages[svixEndpoint](ctx, s.source, "/api/v1/app/"+url.PathEscape(t.id)+"/endpoint")
	out := make([]endpoint, len(there))
	for i := 0; i < len(there) && err == nil; i++ {
		out[i], err = s.endpoint(ctx, t, there[i])
	}
	return out, err
}

// eventTypes are Svix's, which belong to all applications. A schema describes, as in Svix, and checks nothing.
func (s *svixSender) eventTypes(ctx context.Context) ([]client.EventTypeInput, error) {
	found, err := svixPages[svixEventType](ctx, s.source, "/api/v1/event-type?with_content=true&include_archived=true")
	out := make([]client.EventTypeInput, len(found))
	for i, t := range found {
		deprecated := t.Deprecated || t.Archived
		out[i] = client.EventTypeInput{Name: t.Name, Description: &t.Description, Deprecated: &deprecated}
		newest := ""
		for version := range t.Schemas {
			if len(version) > len(newest) || len(version) == len(newest) && version > newest {
				newest = version
			}
		}
		if newest != "" {
			off := client.SchemaCheck("off")
			out[i].Schema, out[i].SchemaCheck = client.Value(t.Schemas[newest]), &off
		}
	}
	return out, err
}

// endpoint reads an endpoint with its secret and its headers.
func (s *svixSender) endpoint(ctx context.Context, t tenant, x svixEndpoint) (endpoint, error) {
	path := svixEndpointPath(t, x.ID)
	out := endpoint{id: x.ID, external: uidOr(x.UID, x.ID), disabled: x.Disabled}
	var secret struct {
		Key string `json:"key"`
	}
	if err := s.get(ctx, path+"/secret", &secret); err != nil {
		return out, err
	}
	var headers svixHeaders
	if err := s.get(ctx, path+"/headers", &headers); err != nil {
		return out, err
	}
	out.secret = secret.Key
	if strings.HasPrefix(secret.Key, "whpk_") { // of an ed25519 key Svix shows the public half
		out.secret, out.public = "", secret.Key
	}
	out.fields, out.hidden = x.fields(headers), headers.Sensitive
	out.fields["preset"] = s.preset
	if most, limited := s.rates[t.id]; limited {
		if own, ok := out.fields["rate_limit"].(*int); !ok || own == nil || *own > most {
			out.fields["rate_limit"] = &most
		}
	}
	return out, nil
}

// fields is an endpoint as Posthorn imports it: rendered, signed and retried as by Svix.
func (x svixEndpoint) fields(headers svixHeaders) map[string]any {
	in := settings(x.URL, []string{"*"}, delays(5, 300, 1800, 7200, 18000, 36000, 36000))
	in["description"], in["rate_limit"] = x.Description, cmp.Or(x.ThrottleRate, x.RateLimit)
	for _, types := range [][]string{x.FilterTypes, x.EventTypes} {
		if len(types) > 0 {
			in["event_types"] = types
		}
	}
	if in["channels"] = x.Channels; x.Channels == nil {
		in["channels"] = []string{}
	}
	return with(in, headers.Headers, x.Metadata)
}

func svixEndpointPath(t tenant, endpoint string) string {
	return "/api/v1/app/" + url.PathEscape(t.id) + "/endpoint/" + url.PathEscape(endpoint)
}

func (s *svixSender) enable(ctx context.Context, t tenant, endpoint string, on bool) error {
	return s.do(ctx, http.MethodPatch, svixEndpointPath(t, endpoint), map[string]bool{"disabled": !on}, nil)
}

// svixPages reads every page of a list.
func svixPages[T any](ctx context.Context, s *source, path string) ([]T, error) {
	return pages(s, path, func(iterator string) ([]T, string, error) {
		query := url.Values{"limit": {"250"}}
		if iterator != "" {
			query.Set("iterator", iterator)
		}
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		var page struct {
			Data     []T     `json:"data"`
			Iterator *string `json:"iterator"`
			Done     bool    `json:"done"`
		}
		err := s.get(ctx, path+join+query.Encode(), &page)
		if err != nil || page.Done || page.Iterator == nil {
			return page.Data, "", err
		}
		return page.Data, *page.Iterator, nil
	})
}
