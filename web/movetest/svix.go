package movetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Svix is a Svix server of the given number of applications. Every third endpoint of an application is disabled.
func Svix(applications int) *Server {
	s := &Server{Tenants: Tenants(applications)}
	s.routes = s.svix
	return s
}

func (s *Server) svix(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	page := func(total int, one func(i int) any) {
		from, _ := strconv.Atoi(r.URL.Query().Get("iterator"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		until := min(from+min(max(limit, 1), 100), total) // fewer than were asked for
		data := []any{}
		for i := from; i < until; i++ {
			data = append(data, one(i))
		}
		answer(w, map[string]any{"data": data, "iterator": strconv.Itoa(until), "prevIterator": nil, "done": until == total})
	}
	switch last := parts[len(parts)-1]; {
	case parts[0] == "event-type":
		page(3, func(i int) any { return map[string]any{"name": fmt.Sprintf("type.n%d", i), "description": "A type"} })
	case len(parts) == 1:
		page(int(s.Tenants), func(i int) any {
			app := map[string]any{"id": fmt.Sprintf("app_%d", i), "uid": fmt.Sprintf("customer-%d", i), "name": fmt.Sprintf("Customer %d", i), "metadata": s.Metadata}
			if s.Rate > 0 {
				app["throttleRate"] = s.Rate
			}
			return app
		})
	case r.Method == http.MethodPost && last == "msg":
		s.svixMessage(w, r, number(parts[1]))
	case len(parts) == 3:
		app := number(parts[1])
		page(PerTenant(app), func(i int) any { return s.svixEndpoint(app, i) })
	case last == "secret" && s.Hidden:
		answer(w, map[string]string{"key": "whpk_" + strings.Repeat("A", 43) + "="})
	case last == "secret":
		answer(w, map[string]string{"key": s.Secret(parts[3])})
	case last == "headers":
		answer(w, map[string]any{"headers": s.pairs("X-Team", parts[3]), "sensitive": append([]string{}, s.Sensitive...)})
	case r.Method == http.MethodPatch && len(parts) == 4:
		body := make([]byte, 100)
		n, _ := r.Body.Read(body)
		s.Disable(parts[3], strings.Contains(string(body[:n]), "true"))
		answer(w, map[string]any{})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *Server) svixEndpoint(app, i int) any {
	id := fmt.Sprintf("ep_%d_%d", app, i)
	var rate any
	if !s.Bare {
		rate = 10 + i
	}
	return map[string]any{
		"id":          id,
		"url":         s.url(app, i),
		"description": "",
		"metadata":    s.pairs("n", strconv.Itoa(i)),
		"version":     1,
		"filterTypes": s.types(1),
		"channels":    nil,
		"rateLimit":   rate,
		"disabled":    s.Disabled(id) || i == 2,
	}
}
