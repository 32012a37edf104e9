// Package svix answers Svix's API at /svix/api/v1, so that a product that calls Svix through one of its libraries
// changes the address and the token alone. Each operation is translated into calls of Posthorn's own API with the
// caller's own key: there is no second data model, and nothing can be done here that the key could not do there.
// docs/svix.md lists every operation and difference.
package svix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

// Deps is what the handlers work with.
type Deps struct {
	API  http.Handler // Posthorn's own, at /api/v1
	DB   *db.DB
	Keys *seal.Ring
}

const root = "/svix/api/v1"

type svix struct{ Deps }

// Operation is a row of the table of operations, as docs/svix.md shows it.
type Operation struct {
	Method, Path string
	Handler      handlers.Handler // nil: there is no equivalent
}

// Routes is the route table. A token is checked by the call of Posthorn's own API; the operation that makes none
// names its access.
func Routes(d Deps) []handlers.Route {
	s := &svix{Deps: d}
	var routes []handlers.Route
	for _, o := range s.operations() {
		r := handlers.Route{Method: o.Method, Path: root + o.Path, Access: handlers.Access{Public: true}, Handler: answering(o.Handler), MaxBody: maxBody}
		switch {
		case o.Handler == nil:
			r.Handler = answering(unsupported)
		case o.Path == endpointPath+"/secret" && o.Method == http.MethodGet:
			r.Access = handlers.Access{Scope: access.WebhooksWrite, Tenant: true, Platform: true}
		}
		routes = append(routes, r)
	}
	return routes
}

// maxBody bounds a request: the largest payload and what is around it.
const maxBody = 1<<20 + 64<<10

const (
	appPath      = "/app/:" + handlers.TenantParam
	endpointPath = appPath + "/endpoint/:" + handlers.EndpointParam
	messagePath  = appPath + "/msg/:msg_id"
)

func (s *svix) operations() []Operation {
	return append([]Operation{
		{"GET", "/app", s.listApps},
		{"POST", "/app", s.createApp},
		{"GET", appPath, s.getApp},
		{"PUT", appPath, s.putApp},
		{"PATCH", appPath, s.patchApp},
		{"DELETE", appPath, s.deleteApp},

		{"GET", appPath + "/endpoint", s.listEndpoints},
		{"POST", appPath + "/endpoint", s.createEndpoint},
		{"GET", endpointPath, s.getEndpoint},
		{"PUT", endpointPath, s.putEndpoint},
		{"PATCH", endpointPath, s.patchEndpoint},
		{"DELETE", endpointPath, s.deleteEndpoint},
		{"GET", endpointPath + "/secret", s.getSecret},
		{"POST", endpointPath + "/secret/rotate", s.rotateSecret},
		{"GET", endpointPath + "/headers", s.getHeaders},
		{"PUT", endpointPath + "/headers", s.putHeaders},
		{"PATCH", endpointPath + "/headers", s.patchHeaders},
		{"GET", endpointPath + "/transformation", s.getTransformation},
		{"PATCH", endpointPath + "/transformation", nil},
		{"GET", endpointPath + "/stats", s.endpointStats},
		{"POST", endpointPath + "/recover", s.recoverEndpoint},
		{"POST", endpointPath + "/replay-missing", s.replayMissing},
		{"POST", endpointPath + "/send-example", s.sendExample},
		{"GET", endpointPath + "/msg", s.listEndpointMessages},

		{"GET", appPath + "/msg", s.listMessages},
		{"POST", appPath + "/msg", s.createMessage},
		{"GET", messagePath, s.getMessage},
		{"DELETE", messagePath + "/content", s.expungeMessage},
		{"GET", messagePath + "/endpoint", s.listDestinations},
		{"POST", messagePath + "/endpoint/:" + handlers.EndpointParam + "/resend", s.resend},
		{"GET", messagePath + "/attempt/:attempt_id", s.getAttempt},
		{"DELETE", messagePath + "/attempt/:attempt_id/content", nil},
		{"GET", appPath + "/attempt/endpoint/:" + handlers.EndpointParam, s.listAttemptsByEndpoint},
		{"GET", appPath + "/attempt/msg/:msg_id", s.listAttemptsByMessage},

		{"GET", "/event-type", s.listEventTypes},
		{"POST", "/event-type", s.createEventType},
		{"GET", "/event-type/:name", s.getEventType},
		{"PUT", "/event-type/:name", s.putEventType},
		{"PATCH", "/event-type/:name", s.patchEventType},
		{"DELETE", "/event-type/:name", s.deleteEventType},

		{"POST", "/auth/app-portal-access/:" + handlers.TenantParam, s.portalAccess},
		{"POST", "/auth/logout", s.nothing},
		{"GET", "/background-task/:task_id", s.getTask},
		{"GET", "/health", s.nothing},
		{"GET", "/health/ping", s.nothing},
	}, withoutEquivalent()...)
}

// withoutEquivalent are operations that libraries know and that are answered with 501.
func withoutEquivalent() []Operation {
	return []Operation{
		{Method: "GET", Path: "/background-task"},
		{Method: "POST", Path: "/stats/usage/app"},
		{Method: "PUT", Path: "/stats/usage/event-types"},
		{Method: "POST", Path: "/auth/app/:" + handlers.TenantParam + "/expire-all"},
		{Method: "POST", Path: "/event-type/import/openapi"},
		{Method: "GET", Path: appPath + "/integration"},
		{Method: "POST", Path: appPath + "/integration"},
		{Method: "POST", Path: appPath + "/msg/expunge-all-contents"},
		{Method: "POST", Path: endpointPath + "/bulk-replay"},
		{Method: "GET", Path: "/operational-webhook/endpoint"},
		{Method: "POST", Path: "/operational-webhook/endpoint"},
		{Method: "GET", Path: "/stream"},
		{Method: "POST", Path: "/stream"},
		{Method: "POST", Path: "/environment/export"},
		{Method: "POST", Path: "/environment/import"},
	}
}

// refusal is an error of Svix's shape.
type refusal struct {
	status     int
	code       string
	detail     string
	fields     []fault.Field
	retryAfter string
}

func (r *refusal) Error() string { return strconv.Itoa(r.status) + " " + r.code + ": " + r.detail }

var errUnsupported = &refusal{status: http.StatusNotImplemented, code: "not_implemented", detail: "Posthorn has no equivalent of this operation. Its documentation says what to use instead."}

func unsupported(*handlers.Call) error { return errUnsupported }

// notImplemented is the refusal of a field without an equivalent.
func notImplemented(detail string) error {
	return &refusal{status: http.StatusNotImplemented, code: "not_implemented", detail: detail}
}

func (s *svix) nothing(c *handlers.Call) error { return c.AnswerNothing() }

// answering gives errors Svix's shape.
func answering(h handlers.Handler) handlers.Handler {
	return func(c *handlers.Call) error {
		err := h(c)
		if err == nil {
			return nil
		}
		var r *refusal
		if !errors.As(err, &r) {
			e := handlers.Known(err)
			r = &refusal{status: handlers.Status(e), code: e.Code, detail: e.Detail, fields: e.Fields}
		}
		if r.retryAfter != "" {
			c.Writer.Header().Set("Retry-After", r.retryAfter)
		}
		if r.status == http.StatusBadRequest && len(r.fields) > 0 {
			wrong := make([]invalid, len(r.fields))
			for i, f := range r.fields {
				wrong[i] = invalid{Loc: []string{"body", f.Name}, Msg: f.Detail, Type: f.Code}
			}
			return c.Answer(http.StatusUnprocessableEntity, map[string]any{"detail": wrong})
		}
		if r.status == http.StatusUnauthorized {
			r = &refusal{status: r.status, code: "authentication_failed", detail: r.detail}
		}
		return c.Answer(r.status, map[string]string{"code": r.code, "detail": r.detail})
	}
}

type invalid struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// reply is a response of Posthorn's own API in memory.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *reply) Header() http.Header         { return r.header }
func (r *reply) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *reply) WriteHeader(status int)      { r.status = status }

// call makes a request to Posthorn's own API with the caller's key. in is sent as JSON, bytes as they are; nil is no
// body. The response is read into out unless that is nil.
func (s *svix) call(c *handlers.Call, method, path string, in, out any) (status int, err error) {
	var body []byte
	switch v := in.(type) {
	case nil:
	case []byte:
		body = v
	default:
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	r, err := http.NewRequestWithContext(c.Ctx(), method, "/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	from := c.Request
	r.Host, r.RemoteAddr, r.RequestURI = from.Host, from.RemoteAddr, "/api/v1"+path
	for _, name := range []string{"Authorization", "X-Forwarded-For", "X-Forwarded-Proto"} {
		if v := from.Header[name]; v != nil {
			r.Header[name] = v
		}
	}
	if body != nil {
		r.Header["Content-Type"] = []string{"application/json"}
	}
	w := &reply{status: http.StatusOK, header: http.Header{}}
	s.API.ServeHTTP(w, r)
	if w.status >= http.StatusBadRequest {
		return w.status, refusalOf(w)
	}
	if out == nil || w.body.Len() == 0 {
		return w.status, nil
	}
	return w.status, json.Unmarshal(w.body.Bytes(), out)
}

// refusalOf reads a problem.
func refusalOf(w *reply) error {
	var p struct {
		Code, Detail string
		Errors       []struct{ Field, Code, Detail string }
	}
	_ = json.Unmarshal(w.body.Bytes(), &p) // what is no problem has no code
	r := &refusal{status: w.status, code: p.Code, detail: p.Detail, retryAfter: w.header.Get("Retry-After")}
	for _, f := range p.Errors {
		r.fields = append(r.fields, fault.Field{Name: f.Field, Code: f.Code, Detail: f.Detail})
	}
	return r
}

// missing reports whether an error says that something does not exist.
func missing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == http.StatusNotFound
}

// decode reads the request's body. Fields that are not known are left out, as Svix leaves them out.
func decode(c *handlers.Call, into any) error {
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &refusal{status: http.StatusBadRequest, fields: []fault.Field{{Name: "", Code: "value_error.jsondecode", Detail: "The body does not have the shape of this operation: " + err.Error()}}}
	}
	return nil
}

// tenantPath is where Posthorn's own API has the application that the path names.
func tenantPath(c *handlers.Call) string {
	return "/tenants/" + url.PathEscape(c.Param(handlers.TenantParam))
}

func endpointOf(c *handlers.Call) string {
	return tenantPath(c) + "/endpoints/" + url.PathEscape(c.Param(handlers.EndpointParam))
}

// page is a list of Svix's shape.
type page[T any] struct {
	Data         []T     `json:"data"`
	Iterator     *string `json:"iterator"`
	PrevIterator *string `json:"prevIterator"`
	Done         bool    `json:"done"`
}

// own is a page of Posthorn's own API.
type own[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// listQuery translates the parameters that lists have in common.
func listQuery(c *handlers.Call) url.Values {
	in, out := c.Request.URL.Query(), url.Values{}
	if n, err := strconv.Atoi(in.Get("limit")); err == nil {
		out.Set("limit", strconv.Itoa(min(max(n, 1), handlers.MaxLimit)))
	}
	if it := in.Get("iterator"); it != "" {
		out.Set("cursor", it)
	}
	switch in.Get("order") {
	case "ascending":
		out.Set("order", "asc")
	case "descending":
		out.Set("order", "desc")
	}
	for from, to := range map[string]string{"after": "since", "before": "until", "channel": "channel"} {
		if v := in.Get(from); v != "" {
			out.Set(to, v)
		}
	}
	return out
}

// list reads a page of Posthorn's own API and answers it in Svix's shape.
func list[From, To any](s *svix, c *handlers.Call, path string, query url.Values, view func(From) (To, error)) error {
	var rows own[From]
	if _, err := s.call(c, http.MethodGet, path+"?"+query.Encode(), nil, &rows); err != nil {
		return err
	}
	out := page[To]{Data: []To{}, Iterator: rows.NextCursor, Done: rows.NextCursor == nil}
	for _, row := range rows.Data {
		v, err := view(row)
		if err != nil {
			return err
		}
		out.Data = append(out.Data, v)
	}
	return c.Answer(http.StatusOK, out)
}

// refuseField is a validation error of one field.
func refuseField(name, detail string) error {
	return &refusal{status: http.StatusBadRequest, fields: []fault.Field{{Name: name, Code: "value_error", Detail: detail}}}
}

// encode is a JSON value that can't fail.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode: %w", err))
	}
	return text
}
