package svix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"posthorn/domain/fault"
	"posthorn/handlers"
)

// reply is a response of Posthorn's own API in memory.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *reply) Header() http.Header         { return r.header }
func (r *reply) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *reply) WriteHeader(status int)      { r.status = status }

// call sends a request to Posthorn's own API with the caller's key. in is sent as JSON, bytes unchanged; nil is no
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

// decode reads the request's body. It ignores unknown fields, as Svix does.
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

// tenantPath is the path in Posthorn's own API of the application that the path names.
func tenantPath(c *handlers.Call) string {
	return "/tenants/" + url.PathEscape(c.Param(handlers.TenantParam))
}

func endpointOf(c *handlers.Call) string {
	return tenantPath(c) + "/endpoints/" + url.PathEscape(c.Param(handlers.EndpointParam))
}

// encode is the JSON of a value that can't fail to encode.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode: %w", err))
	}
	return text
}
