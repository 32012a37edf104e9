// Code generated from domain/fault/fault.go. DO NOT EDIT.

// Package fault is Posthorn's one error type: a stable code for programs, a sentence for people that says how to fix
// it, the fields concerned, and a cause that is logged and never shown.
package fault

import (
	"errors"
	"fmt"
)

// Kind groups codes by what the caller can do about them; the API maps each kind to one HTTP status.
type Kind int

// The kinds, with the HTTP status each becomes.
const (
	Internal        Kind = iota // 500: ours
	Invalid                     // 400: the request is wrong; one status for all bad input
	Unauthenticated             // 401
	Forbidden                   // 403
	NotFound                    // 404, also for what belongs to another tenant
	Conflict                    // 409
	Gone                        // 410: a cursor or link that was good once
	TooLarge                    // 413
	Limited                     // 429
	Unavailable                 // 503: try again
	UnsupportedType             // 415
)

// Error is an error with a code and a sentence. Detail never holds a secret, a stack or a driver's message.
type Error struct {
	Kind   Kind
	Code   string  // stable, snake_case, documented
	Detail string  // what is wrong and how to fix it, for people
	Fields []Field // which fields, where the request had any
	// RetryAfter is the number of seconds after which the same request can succeed; 0: unknown.
	RetryAfter int
	// Lasting says of an Unavailable error that it doesn't pass by itself: the operator has to repair something. It is
	// logged as an error.
	Lasting bool
	Cause   error // logged, never shown
}

// Field is one wrong field of a request.
type Field struct {
	Name   string `json:"field"` // dotted path in the request body, or the query parameter's name
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Cause)
	}
	return e.Code + ": " + e.Detail
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of a kind, a code and a sentence.
func New(kind Kind, code, detail string) *Error {
	return &Error{Kind: kind, Code: code, Detail: detail}
}

// InvalidField makes the error for one wrong field; code names both the error and the field's fault.
func InvalidField(field, code, detail string) *Error {
	return &Error{Kind: Invalid, Code: code, Detail: detail, Fields: []Field{{Name: field, Code: code, Detail: detail}}}
}

// InvalidFields makes one error of several wrong fields, or nil of none. The first field's code and detail speak for
// all.
func InvalidFields(fields []Field) *Error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Code: fields[0].Code, Detail: fields[0].Detail, Fields: fields}
}

// As finds the Error in a chain; nil if there is none.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Is reports whether the chain holds an Error of a code.
func Is(err error, code string) bool {
	e := As(err)
	return e != nil && e.Code == code
}

// ErrNotFound is the one response for an id that does not exist and for one of another tenant.
var ErrNotFound = New(NotFound, "not_found", "No such object. Check the id. Ids of other tenants return the same error.")
