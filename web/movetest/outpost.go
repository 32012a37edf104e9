package movetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Outpost is an Outpost server of the given number of tenants, self-hosted: it shows no configuration. A tenant's third
// destination is a queue. The second has a filter.
func Outpost(tenants int) *Server {
	s := &Server{Tenants: Tenants(tenants)}
	s.routes = s.outpost
	return s
}

func (s *Server) outpost(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	switch {
	case parts[0] == "topics":
		answer(w, []string{"type.n0", "type.n1"})
	case parts[0] != "tenants":
		w.WriteHeader(http.StatusNotFound)
		answer(w, map[string]any{"status": 404, "message": "not found"})
	case len(parts) == 1:
		s.outpostTenants(w, r)
	case len(parts) == 3:
		list := []any{}
		tenant := number(parts[1])
		for i := range PerTenant(tenant) {
			list = append(list, s.destination(tenant, i))
		}
		answer(w, list)
	case len(parts) == 5 && r.Method == http.MethodPut:
		s.Disable(parts[3], parts[4] == "disable")
		answer(w, s.destination(tenantOf(parts[3]), number(parts[3])))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *Server) outpostTenants(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("next"), "c"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit < 1 || limit > 100 {
		limit = 20
	}
	until := min(from+limit, int(s.Tenants))
	models := []any{}
	for i := from; i < until; i++ {
		models = append(models, map[string]any{
			"id":                 fmt.Sprintf("tenant_%d", i),
			"destinations_count": PerTenant(i),
			"topics":             []string{"type.n0"},
			"metadata":           map[string]string{"name": fmt.Sprintf("Customer %d", i)},
		})
	}
	var next any
	if until < int(s.Tenants) {
		next = fmt.Sprintf("c%d", until)
	}
	answer(w, map[string]any{
		"models":     models,
		"count":      int(s.Tenants),
		"pagination": map[string]any{"order_by": "created_at", "dir": "asc", "limit": limit, "next": next, "prev": nil},
	})
}

func (s *Server) destination(tenant, i int) any {
	id := fmt.Sprintf("des_%d_%d", tenant, i)
	headers, _ := json.Marshal(s.pairs("x-team", id)) // a map of strings cannot fail
	d := map[string]any{
		"id":                id,
		"type":              "webhook",
		"topics":            s.types(i),
		"filter":            nil,
		"disabled_at":       nil,
		"metadata":          s.pairs("n", strconv.Itoa(i)),
		"config":            map[string]string{"url": s.url(tenant, i), "custom_headers": string(headers)},
		"credentials":       map[string]string{"secret": s.Secret(id)},
		"delivery_metadata": s.pairs("region", "eu"),
	}
	if s.Hidden {
		d["credentials"] = map[string]string{}
	}
	if s.Disabled(id) {
		d["disabled_at"] = "2026-01-02T03:04:05Z"
	}
	switch i {
	case 0:
		d["topics"] = "*"
		if len(s.Types) > 0 {
			d["topics"] = s.Types
		}
	case 1:
		d["filter"] = map[string]any{"data": map[string]any{"amount": map[string]any{"$gte": 100}, "customer": map[string]any{"tier": "premium"}}}
	case 2:
		d["type"], d["config"], d["credentials"] = "aws_sqs", map[string]string{"queue_url": "https://sqs.example.com/1"}, map[string]string{"key": "****", "secret": "****"}
	}
	return d
}
