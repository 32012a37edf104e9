package movetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Convoy is a Convoy server with a project of the given number of owners of endpoints. Every third endpoint has a
// subscription with a filter. The second signs in Convoy's advanced way.
func Convoy(owners int) *Server {
	s := &Server{Tenants: Tenants(owners)}
	s.routes = s.convoy
	return s
}

func (s *Server) convoy(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1/projects/proj_1")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	data := func(v any) { answer(w, map[string]any{"status": true, "message": "fetched", "data": v}) }
	switch {
	case path == r.URL.Path:
		w.WriteHeader(http.StatusNotFound)
	case path == "":
		data(map[string]any{
			"uid":  "proj_1",
			"name": "Hooks",
			"type": "outgoing",
			"config": map[string]any{
				"request_id_header": "X-Convoy-Idempotency-Key",
				"strategy":          map[string]any{"type": "linear", "duration": 10, "retry_count": 3},
				"signature":         map[string]any{"header": "X-Convoy-Signature", "versions": []any{map[string]any{"uid": "v", "hash": "SHA256", "encoding": "hex"}}},
			},
		})
	case parts[0] == "event-types":
		data([]any{map[string]any{"uid": "1", "name": "*"}, map[string]any{"uid": "2", "name": "type.n0", "description": "A type"}, map[string]any{"uid": "3", "name": "type.n1"}})
	case parts[0] == "subscriptions":
		s.convoyPage(w, r, s.subscription)
	case parts[0] == "endpoints" && len(parts) == 1:
		s.convoyPage(w, r, s.convoyEndpoint)
	case parts[0] == "endpoints" && len(parts) == 2:
		data(s.convoyEndpoint(tenantOf(parts[1]), number(parts[1])))
	case parts[0] == "endpoints" && r.Method == http.MethodPut && parts[2] == "pause": // one call for both
		s.Disable(parts[1], !s.Disabled(parts[1]))
		data(s.convoyEndpoint(tenantOf(parts[1]), number(parts[1])))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// convoyPage returns a page of one object per endpoint. A cursor is the name of the first row of its page.
func (s *Server) convoyPage(w http.ResponseWriter, r *http.Request, one func(owner, i int) any) {
	from, _ := strconv.Atoi(r.URL.Query().Get("next_page_cursor"))
	size, _ := strconv.Atoi(r.URL.Query().Get("perPage"))
	content, at, more := []any{}, 0, false
	for owner := range int(s.Tenants) {
		for i := range PerTenant(owner) {
			switch {
			case at >= from && at < from+size:
				content = append(content, one(owner, i))
			case at >= from+size:
				more = true
			}
			at++
		}
	}
	answer(w, map[string]any{
		"status":  true,
		"message": "fetched",
		"data": map[string]any{
			"content": content,
			"pagination": map[string]any{
				"per_page":         size,
				"has_next_page":    more,
				"has_prev_page":    from > 0,
				"prev_page_cursor": strconv.Itoa(from),
				"next_page_cursor": strconv.Itoa(from + size),
			},
		},
	})
}

func (s *Server) convoyEndpoint(owner, i int) any {
	id := fmt.Sprintf("end_%d_%d", owner, i)
	status := "active"
	if s.Disabled(id) {
		status = "paused"
	}
	secrets := []any{
		map[string]any{"uid": "old", "value": "the old one", "expires_at": "2020-01-01T00:00:00Z"}, map[string]any{"uid": "new", "value": s.Secret(id), "expires_at": nil},
	}
	if s.Hidden {
		secrets = nil
	}
	rate, authentication := 50, map[string]any{"type": "api_key", "api_key": map[string]string{"header_name": "X-Key", "header_value": "k-" + id}}
	if s.Bare {
		rate, authentication = 0, nil
	}
	return map[string]any{
		"uid":                 id,
		"project_id":          "proj_1",
		"owner_id":            fmt.Sprintf("owner_%d", owner),
		"url":                 s.url(owner, i),
		"name":                "Endpoint " + id,
		"secrets":             secrets,
		"advanced_signatures": i == 1,
		"description":         "",
		"status":              status,
		"http_timeout":        10,
		"rate_limit":          rate,
		"rate_limit_duration": 10,
		"authentication":      authentication,
		"content_type":        "application/json",
	}
}

func (s *Server) subscription(owner, i int) any {
	filter := map[string]any{"body": map[string]any{}, "headers": nil}
	if i == 2 {
		filter["body"] = map[string]any{"amount": map[string]any{"$gte": 100}}
	}
	return map[string]any{
		"uid":               fmt.Sprintf("sub_%d_%d", owner, i),
		"type":              "api",
		"endpoint_metadata": s.convoyEndpoint(owner, i),
		"filter_config":     map[string]any{"event_types": s.types(i), "filter": filter},
	}
}
