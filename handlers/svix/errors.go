package svix

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"posthorn/domain/fault"
	"posthorn/handlers"
)

// refusal is an error in Svix's form.
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

// notImplemented is the error for a field without an equivalent.
func notImplemented(detail string) error {
	return &refusal{status: http.StatusNotImplemented, code: "not_implemented", detail: detail}
}

func (s *svix) nothing(c *handlers.Call) error { return c.AnswerNothing() }

// answering converts errors to Svix's form.
func answering(h handlers.Handler) handlers.Handler {
	return func(c *handlers.Call) error {
		if err := h(c); err != nil {
			return refuse(c, err)
		}
		return nil
	}
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
			wrong[i] = invalid{Loc: []string{"body", f.Name}, Msg: f.Detail, Type: f.Code}
		}
		return c.Answer(http.StatusUnprocessableEntity, map[string]any{"detail": wrong})
	}
	if r.status == http.StatusUnauthorized {
		r = &refusal{status: r.status, code: "authentication_failed", detail: r.detail}
	}
	return c.Answer(r.status, map[string]string{"code": r.code, "detail": r.detail})
}

type invalid struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// refusalOf reads a problem.
func refusalOf(w *reply) error {
	var p struct {
		Code, Detail string
		Errors       []struct{ Field, Code, Detail string }
	}
	_ = json.Unmarshal(w.body.Bytes(), &p) // a body that is not a problem has no code
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

// refuseField is a validation error of one field.
func refuseField(name, detail string) error {
	return &refusal{status: http.StatusBadRequest, fields: []fault.Field{{Name: name, Code: "value_error", Detail: detail}}}
}
