package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/domain/quota"
)

// problem is a problem of RFC 9457 with the members that the contract adds.
type problem struct {
	Type      string        `json:"type"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Code      string        `json:"code"`
	Detail    string        `json:"detail"`
	Errors    []fault.Field `json:"errors,omitempty"`
	RequestID string        `json:"request_id"`
}

// problemPage is the page that explains a code, relative to the server.
const problemPage = "/docs/errors/"

var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Gone:            http.StatusGone,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Limited:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.UnsupportedType: http.StatusUnsupportedMediaType,
}

// Status is the HTTP status of an error.
func Status(err error) int {
	if e := fault.As(err); e != nil {
		if s, ok := statuses[e.Kind]; ok {
			return s
		}
	}
	return http.StatusInternalServerError
}

// errInternal is all that callers learn about internal errors.
var errInternal = fault.New(
	fault.Internal,
	"internal",
	"Something went wrong on our side. Send the same request again; if it fails again, tell us the request_id.",
)

// errCanceled is for a caller that has disconnected. Nobody reads it.
var errCanceled = fault.New(fault.Unavailable, "canceled", "The request was canceled. Send it again.")

// errOverdue is for a request whose time is over.
var errOverdue = fault.New(fault.Unavailable, "timeout", "The request took too long. Send it again.")

// Known converts any error to one that can be shown. An unknown or internal error becomes errInternal, unless it has
// words for people.
func Known(err error) *fault.Error {
	e := fault.As(err)
	switch {
	case e != nil && (e.Kind != fault.Internal || e.Lasting):
		return e
	case errors.Is(err, context.Canceled):
		return errCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return errOverdue
	case errors.Is(err, db.ErrRoutesChanged):
		return db.ErrMoving // the tenant's move began during the request
	}
	return errInternal
}

// Fail responds with a problem. Internal errors (500) are logged with their cause and shown without it. The cause of
// a 503 is logged as a warning, or as an error if it doesn't pass by itself.
func (k *Kit) Fail(c *gin.Context, err error) {
	e := Known(err)
	switch {
	case e == errInternal:
		k.log.Error("request failed", "error", err, "method", c.Request.Method, "route", c.FullPath(), "request_id", requestID(c))
	case e.Lasting:
		k.log.Error("request failed", "error", e.Cause, "code", e.Code, "method", c.Request.Method, "route", c.FullPath(), "request_id", requestID(c))
	case e.Kind == fault.Unavailable && e.Cause != nil:
		method, route, request := c.Request.Method, c.FullPath(), requestID(c)
		k.outages.count(e.Code, func(n int) {
			k.log.Warn("request rejected", "error", e.Cause, "code", e.Code, "method", method, "route", route, "request_id", request, "requests", n)
		})
	}
	if c.Writer.Written() {
		return // the response has started; it can only be ended
	}
	hurry(c.Writer, c.Request)
	status := Status(e)
	if e == errNoMethod {
		status = http.StatusMethodNotAllowed // the one error whose status differs from its kind's
	}
	h := c.Writer.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	} else if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	var over *quota.Refusal
	if errors.As(err, &over) {
		h["Ratelimit-Limit"] = []string{strconv.FormatInt(over.Limit, 10)}
		h["Ratelimit-Remaining"] = []string{"0"}
		h["Ratelimit-Reset"] = []string{strconv.Itoa(over.Reset)}
	}
	if _, mounted := c.Get(callKey); !mounted {
		c.Set(callKey, &Call{Context: c, kit: k, ctx: c.Request.Context()})
	}
	if isPage(c.Request) {
		k.failPage(c, e, status)
		return
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", k.challenge(c))
	}
	body, encodeErr := encode(c.Request, problem{
		Type:      problemPage + e.Code,
		Title:     http.StatusText(status),
		Status:    status,
		Code:      e.Code,
		Detail:    e.Detail,
		Errors:    e.Fields,
		RequestID: requestID(c),
	})
	if encodeErr != nil { // never: strings and numbers alone
		k.log.Error("problem not encoded", slog.Any("error", encodeErr))
	}
	c.Abort()
	c.Data(status, "application/problem+json", body)
}

const (
	requestIDHeader = "X-Request-Id"
	requestIDKey    = "posthorn.request_id"
	maxRequestID    = 128
)

// requestID is the id of the current request.
func requestID(c *gin.Context) string {
	if v, ok := c.Get(requestIDKey); ok {
		return v.(string)
	}
	return ""
}

// nameRequest uses the caller's request id if it is valid in headers and logs, or creates one.
func nameRequest(c *gin.Context) {
	given := c.Request.Header.Get(requestIDHeader)
	if !saneRequestID(given) {
		given = id.Request.Format(db.NewID())
	}
	c.Set(requestIDKey, given)
	c.Writer.Header().Set(requestIDHeader, given)
}

func saneRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// challenge says how to authenticate. Where access tokens are accepted, it also says where a client finds who issues
// them (RFC 9728, section 5.1).
func (k *Kit) challenge(c *gin.Context) string {
	text := `Bearer realm="posthorn"`
	call, _ := c.Value(callKey).(*Call)
	if tenant := c.Param(TenantParam); call != nil && call.access.Tokens && tenant != "" {
		text += `, resource_metadata="` + k.baseURL + mcp.MetadataPath(url.PathEscape(tenant)) + `"`
	}
	return text
}
