package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/views/layout"
)

// Call is an admitted request.
type Call struct {
	*gin.Context
	Actor Actor

	kit      *Kit
	ctx      context.Context
	maxBody  int64
	access   Access
	tenants  []account.Membership  // the person's tenants, if the call is in one of them
	warnings []layout.Warning      // shown on every page
	typed    []layout.Typed        // the content of a rejected form
	form     url.Values            // the form, once it was read
	visitor  *account.PortalAccess // of an error page: the portal link of a caller who was not admitted, for its look
	plain    bool                  // the response is not compressed
	lent     *days.Lent            // rows of a day in storage that the call's transactions see
	replays  bool                  // what its transactions change of these stays
	expunges bool                  // what its transactions change stays, and none of these
}

// Warn adds a warning to the call's pages.
func (c *Call) Warn(w layout.Warning) { c.warnings = append(c.warnings, w) }

// Ctx is the request's context. It ends with the request, or at the route's timeout.
func (c *Call) Ctx() context.Context { return c.ctx }

// Tx runs fn in a transaction of the tenant that the call acts in: it sees the rows of this tenant and no others.
func (c *Call) Tx(fn func(*db.Tx) error) error {
	switch {
	case c.lent == nil:
		return c.kit.db.Tenant(c.Ctx(), c.Actor.Tenant, fn)
	case c.replays:
		return c.lent.Act(c.Ctx(), c.kit.db, fn)
	case c.expunges:
		return c.lent.Destroy(c.Ctx(), c.kit.db, fn)
	}
	return c.lent.Read(c.Ctx(), c.kit.db, fn)
}

// ID reads an id from a path parameter. In the API, an invalid id becomes an id that no row has: whatever else is wrong
// with the request, the response is that of an unknown id. The Svix API names objects by their uids too, and passes
// them on to the API. Elsewhere it is ErrNotFound.
func (c *Call) ID(kind id.Kind, param string) (id.UUID, error) {
	text, ok := c.Params.Get(param)
	if !ok {
		return id.UUID{}, fault.ErrNotFound
	}
	uuid, err := kind.Parse(text)
	switch {
	case err == nil:
		return uuid, nil
	case strings.HasPrefix(c.Request.URL.Path, "/api/"), strings.HasPrefix(c.Request.URL.Path, "/svix/"), strings.HasPrefix(c.Request.URL.Path, "/mcp"):
		return id.None, nil
	}
	return id.UUID{}, fault.ErrNotFound
}

// pathKinds are the objects that path parameters name.
var pathKinds = map[string]id.Kind{
	"attempt_id":       id.Attempt,
	"delivery_id":      id.Delivery,
	EndpointParam:      id.Endpoint,
	"event_id":         id.Event,
	"rejected_id":      id.Event,
	"invitation_id":    id.Invitation,
	"job_id":           id.Job,
	"key_id":           id.Key,
	"mail_id":          id.Mail,
	"member_id":        id.Member,
	"pause_id":         id.Pause,
	"portal_link_id":   id.PortalLink,
	"inbox_request_id": id.Received,
	"secret_id":        id.Secret,
	"session_id":       id.Session,
	"share_id":         id.Share,
	"source_id":        id.Source,
	TenantParam:        id.Tenant,
	ConsoleTenantParam: id.Tenant,
}

// checkIDs returns ErrNotFound if a path has a text in the place of an id, except in the API: see ID.
func (c *Call) checkIDs() error {
	for _, p := range c.Params {
		if kind, known := pathKinds[p.Key]; known {
			if _, err := c.ID(kind, p.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// PathID is the id in a path parameter, as ID reads it. A handler runs only with readable ids.
func (c *Call) PathID(param string) id.UUID {
	kind, known := pathKinds[param]
	if !known {
		panic("pathKinds lacks " + param)
	}
	uuid, err := c.ID(kind, param)
	if err != nil {
		return id.None
	}
	return uuid
}

// FindEndpoint finds the endpoint of the call's tenant that a request names by Posthorn's id or by its external id. Any
// other text is id.None, which selects nothing.
func (c *Call) FindEndpoint(text string) (id.UUID, error) {
	if endpointID, err := id.Endpoint.Parse(text); err == nil {
		return endpointID, nil
	}
	if c.kit.auth == nil {
		return id.None, nil
	}
	endpointID, err := c.kit.auth.findEndpoint(c.Ctx(), c.Actor.Tenant, text)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return id.None, nil
	}
	return endpointID, err
}

// Answer writes JSON.
func (c *Call) Answer(status int, v any) error {
	return c.AnswerAs(status, "application/json", v)
}

// AnswerAs writes JSON under another media type.
func (c *Call) AnswerAs(status int, mediaType string, v any) error {
	text, err := encode(c.Request, v)
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	c.send(status, mediaType, text)
	return nil
}

// Indented is JSON that was written without encode, as encode writes it for the caller.
func (c *Call) Indented(text []byte) []byte {
	if !byPerson(c.Request) {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return text
	}
	return b.Bytes()
}

// byPerson reports whether a person reads the response to a request.
func byPerson(r *http.Request) bool { return r.Header.Get("Accept") == "*/*" }

// encode writes a value as the response to a request. It is indented for a person with curl, which accepts anything.
// SDKs ask for JSON by name, and get one line.
func encode(r *http.Request, v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if byPerson(r) {
		enc.SetIndent("", "  ")
	}
	err := enc.Encode(v)
	return b.Bytes(), err
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
	case a.Principal != "":
		by.Kind, by.ID = "principal", a.Principal
	default:
		by.Kind, by.ID = "key", id.Key.Format(a.Key)
	}
	return by
}

// Audit writes to the audit log of the caller's tenant, in the transaction of the action. object is the external id.
// details becomes a JSON object or is nil, and never contains a secret.
func (c *Call) Audit(q *db.Tx, action, kind, object, reason string, details any) error {
	return db.Audit(c.Ctx(), q, c.Author(), db.Audited{
		Tenant:  &c.Actor.Tenant,
		Action:  action,
		Kind:    kind,
		Object:  object,
		Reason:  reason,
		Details: details,
	})
}
