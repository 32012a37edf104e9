package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// Call is a request that was let in.
type Call struct {
	*gin.Context
	Actor Actor

	kit       *Kit
	ctx       context.Context
	maxBody   int64
	access    Access
	suspended bool              // the tenant may only read
	tenants   []db.TenantsOfRow // the person's, where the call is in one of them
	warnings  []layout.Warning  // that every page shows
}

// Warn has the call's pages say something beside their content.
func (c *Call) Warn(w layout.Warning) { c.warnings = append(c.warnings, w) }

// Ctx is the request's context; it ends with the request, or when the route's time is over.
func (c *Call) Ctx() context.Context { return c.ctx }

// ID reads an id from a path parameter. A text that is no id of this kind is as unknown as any other: ErrNotFound.
func (c *Call) ID(kind id.Kind, param string) (id.UUID, error) {
	u, err := kind.Parse(c.Param(param))
	if err != nil {
		return id.UUID{}, fault.ErrNotFound
	}
	return u, nil
}

// Body reads the whole request body, up to the route's bound.
func (c *Call) Body() ([]byte, error) {
	if enc := c.Request.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, fault.New(fault.Invalid, "content_encoding_unsupported", "Send the body without Content-Encoding.")
	}
	length := c.Request.ContentLength
	if length > c.maxBody {
		// The rest of the body is not worth reading.
		c.Writer.Header().Set("Connection", "close")
		return nil, c.tooLarge()
	}
	limited := http.MaxBytesReader(c.Writer, c.Request.Body, c.maxBody)
	var body []byte
	var err error
	if length >= 0 {
		body = make([]byte, length)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &over):
		return nil, c.tooLarge()
	}
	return nil, &fault.Error{Kind: fault.Invalid, Code: "body_incomplete", Detail: "The body ended early or came too slowly. Send the request again.", Cause: err}
}

func (c *Call) tooLarge() error {
	return fault.New(fault.TooLarge, "body_too_large", fmt.Sprintf("The body is larger than %d bytes, the most that is read here. Send less.", c.maxBody))
}

// Decode reads a JSON object into a struct. Unknown and repeated fields, nulls where the contract has none, values of
// another type, and bodies that are not JSON or not UTF-8 are refused by name.
func (c *Call) Decode(into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	return decode(body, into)
}

// DecodeOptional is Decode for a body that may be left out.
func (c *Call) DecodeOptional(into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return decode(body, into)
}

// NoBody refuses a body where the contract has none; an empty object is as good as none.
func (c *Call) NoBody() error { return c.DecodeOptional(&struct{}{}) }

// Answer writes JSON.
func (c *Call) Answer(status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.Data(status, "application/json", b.Bytes())
	return nil
}

// AnswerNothing writes 204.
func (c *Call) AnswerNothing() error {
	c.Writer.WriteHeader(http.StatusNoContent)
	c.Writer.WriteHeaderNow()
	return nil
}

// Author is the caller, for the audit log.
func (c *Call) Author() db.Author {
	by := db.Author{Address: c.Actor.Address}
	switch a := &c.Actor; {
	case a.Portal != nil:
		by.Kind, by.ID = "portal", id.PortalLink.Format(a.Portal.ID)
	case !a.Operator.ID.IsZero():
		by.Kind, by.ID = "operator", id.Operator.Format(a.Operator.ID)
	case !a.Member.IsZero():
		by.Kind, by.ID = "member", id.Member.Format(a.Member)
	case !a.Person.ID.IsZero():
		by.Kind, by.ID = "member", id.Person.Format(a.Person.ID)
	default:
		by.Kind, by.ID = "key", id.Key.Format(a.Key)
	}
	return by
}

// Audit writes what the caller did in its tenant, in the transaction that does it. object is the id as people see it;
// details becomes a JSON object and never holds a secret, or is nil.
func (c *Call) Audit(q *db.Queries, action, kind, object, reason string, details any) error {
	return q.Audit(c.Ctx(), c.Author(), db.Audited{
		Tenant: &c.Actor.Tenant, Action: action, Kind: kind, Object: object, Reason: reason, Details: details,
	})
}
