package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Error is an error response of the server.
type Error struct {
	Status     int            // HTTP
	Code       string         // stable, such as not_found; empty for a response of something in between
	Title      string         // the text of the status
	Detail     string         // the problem and its fix, for people
	Fields     []FieldProblem // the invalid fields, if any
	RequestID  string         // quote it when you ask for help
	RetryAfter time.Duration  // the same request can succeed after it; 0 says nothing
	Page       string         // where the code is explained, relative to the server
}

// Error is one line for a log: the code, the sentence, and the request.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("posthorn: ")
	if e.Code != "" {
		fmt.Fprintf(&b, "%s: %s", e.Code, e.Detail)
	} else {
		fmt.Fprintf(&b, "the response was %d %s", e.Status, http.StatusText(e.Status))
		if e.Detail != "" {
			fmt.Fprintf(&b, ": %s", e.Detail)
		}
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (%s)", e.RequestID)
	}
	return b.String()
}

// Code is the stable code of an error response anywhere in an error's chain, or empty.
func Code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// maxExcerpt bounds how many bytes an Error shows of a response that is not a problem of Posthorn's.
const maxExcerpt = 300

// refusal reads an error response. The body can be anything: a proxy possibly wrote it.
func refusal(status int, h http.Header, body []byte) *Error {
	e := &Error{
		Status:     status,
		Title:      http.StatusText(status),
		RequestID:  h.Get("X-Request-Id"),
		RetryAfter: retryAfter(h.Get("Retry-After")),
	}
	var p Problem
	if json.Unmarshal(body, &p) == nil && p.Code != "" {
		e.Code, e.Title, e.Detail, e.Page = p.Code, p.Title, p.Detail, p.Type
		if p.Errors != nil {
			e.Fields = *p.Errors
		}
		if p.RequestID != "" {
			e.RequestID = p.RequestID
		}
		return e
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), maxExcerpt)]), "?")), " ")
	e.Detail = text
	return e
}
