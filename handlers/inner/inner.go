// Package inner calls Posthorn's own API within the process with the key of a request, for other protocols that are
// translated into its operations: such a protocol can do nothing that the key could not do at the API.
package inner

import (
	"bytes"
	"net/http"

	"posthorn/handlers"
)

// Reply is a response of the API in memory.
type Reply struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// Header is the response's header.
func (r *Reply) Header() http.Header { return r.header }

// Write appends to the body.
func (r *Reply) Write(p []byte) (int, error) { return r.Body.Write(p) }

// WriteHeader sets the status.
func (r *Reply) WriteHeader(status int) { r.Status = status }

// Call sends a request to the API: path is below /api/v1, and body is JSON; nil is none.
func Call(c *handlers.Call, api http.Handler, method, path string, body []byte) (*Reply, error) {
	r, err := http.NewRequestWithContext(c.Ctx(), method, "/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
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
	w := &Reply{Status: http.StatusOK, header: http.Header{}}
	api.ServeHTTP(w, r)
	return w, nil
}
