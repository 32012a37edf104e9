package svix

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/inner"
)

// refusal is an error in Svix's form.
type refusal struct {
	status     int
	code       string
	detail     string
	fields     []fault.Field
	in         string // where the fields are: body or query; empty: body
	kind       string // the type of the fields' errors; empty: value_error
	retryAfter string
}

func (r *refusal) Error() string { return strconv.Itoa(r.status) + " " + r.code + ": " + r.detail }

func (s *svix) nothing(c *handlers.Call) error { return c.AnswerNothing() }

// codes are Svix's for what Posthorn says in words of its own.
var codes = map[int]string{
	http.StatusUnauthorized:          "authentication_failed",
	http.StatusNotFound:              "not_found",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "payload_too_large",
	http.StatusTooManyRequests:       "rate_limit",
}

// fieldNames are the caller's names of Posthorn's fields and parameters.
var fieldNames = map[string]string{
	"external_id":     "uid",
	"event_id":        "eventId",
	"type":            "eventType",
	"data":            "payload",
	"deliver_at":      "deliverAt",
	"event_types":     "eventTypes",
	"rate_limit":      "throttleRate",
	"custom_headers":  "headers",
	"overlap_seconds": "gracePeriodSeconds",
	"session_seconds": "expiry",
	"deprecated":      "archived",
	"group":           "groupName",
	"schema":          "schemas",
	"content_type":    "transformationsParams.headers.content-type",
	"send_event_id":   "eventId",
	"cursor":          "iterator",
}

// inSentences are those names that are no words of English.
var inSentences = regexp.MustCompile(`\b(external_id|event_id|deliver_at|event_types|rate_limit|custom_headers|overlap_seconds|session_seconds|content_type)\b`)

// callersName is a field in the caller's words; below it are names of the caller's own.
func callersName(name string) string {
	first, rest, below := strings.Cut(name, ".")
	if own := fieldNames[first]; own != "" {
		first = own
	}
	if below {
		return first + "." + rest
	}
	return first
}

func callersWords(text string) string {
	return inSentences.ReplaceAllStringFunc(text, func(name string) string { return fieldNames[name] })
}

// refuse responds with an error in Svix's form.
func refuse(c *handlers.Call, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		e := handlers.Known(err)
		r = &refusal{status: handlers.Status(e), code: e.Code, detail: e.Detail, fields: e.Fields}
		if e.RetryAfter > 0 {
			r.retryAfter = strconv.Itoa(e.RetryAfter)
		}
	}
	if r.retryAfter != "" {
		c.Writer.Header().Set("Retry-After", r.retryAfter)
	}
	if r.status == http.StatusBadRequest && len(r.fields) > 0 {
		wrong := make([]invalid, len(r.fields))
		for i, f := range r.fields {
			wrong[i] = invalid{
				Loc:  []string{cmp.Or(r.in, "body"), callersName(f.Name)},
				Msg:  callersWords(f.Detail),
				Type: cmp.Or(r.kind, "value_error"),
			}
		}
		return c.Answer(http.StatusUnprocessableEntity, map[string]any{"detail": wrong})
	}
	return c.Answer(r.status, map[string]string{
		"code":   cmp.Or(codes[r.status], r.code),
		"detail": callersWords(r.detail),
	})
}

type invalid struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// refusalOf reads a problem.
func refusalOf(w *inner.Reply) error {
	var p struct {
		Code, Detail string
		Errors       []struct{ Field, Code, Detail string }
	}
	_ = json.Unmarshal(w.Body.Bytes(), &p) // a body that is not a problem has no code
	r := &refusal{status: w.Status, code: p.Code, detail: p.Detail, retryAfter: w.Header().Get("Retry-After")}
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

// refuseQuery is a validation error of one parameter.
func refuseQuery(name, detail string) error {
	return &refusal{status: http.StatusBadRequest, in: "query", fields: []fault.Field{{Name: name, Detail: detail}}}
}

// refuseField is a validation error of one field of the body.
func refuseField(name, detail string) error {
	return &refusal{status: http.StatusBadRequest, fields: []fault.Field{{Name: name, Detail: detail}}}
}
