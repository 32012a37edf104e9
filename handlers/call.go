package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// Call is a request that was let in.
type Call struct {
	*gin.Context
	Actor Actor

	kit      *Kit
	ctx      context.Context
	maxBody  int64
	access   Access
	tenants  []sql.TenantsOfRow // the person's, where the call is in one of them
	warnings []layout.Warning   // that every page shows
	plain    bool               // the response is not compressed
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

// Answer writes JSON.
func (c *Call) Answer(status int, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.send(status, "application/json", b.Bytes())
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
		by.Kind, by.ID, by.Name = "operator", id.Operator.Format(a.Operator.ID), a.Operator.Email
		if a.Viewing != nil && a.Viewing.Acting {
			by.Reason = a.Viewing.Reason
		}
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
func (c *Call) Audit(q *sql.Queries, action, kind, object, reason string, details any) error {
	return db.Audit(c.Ctx(), q, c.Author(), db.Audited{
		Tenant: &c.Actor.Tenant, Action: action, Kind: kind, Object: object, Reason: reason, Details: details,
	})
}
