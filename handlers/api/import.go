package api

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// externalID is the name in an endpoint's metadata by which an import finds it again.
const externalID = "external_id"

// importTime is how long an import may take: every entry is a transaction of its own.
const importTime = 50 * time.Second

// importAll brings in event types and endpoints, each by itself: one that is refused does not stop the others. What is there
// already is changed where it differs, so that a second run does nothing.
func (a *api) importAll(c *handlers.Call) error {
	var in ImportInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	if n := len(in.EventTypes) + len(in.Endpoints); n == 0 || n > maxImport {
		return fault.InvalidField("endpoints", "import_count", fmt.Sprintf("An import holds 1 to %d event types and endpoints; this one has %d.", maxImport, n))
	}
	im := importing{api: a, call: c, dry: in.DryRun != nil && *in.DryRun, seen: map[string]bool{}}
	out := Imported{DryRun: im.dry, Results: []ImportResult{}}
	for _, t := range in.EventTypes {
		out.Results = append(out.Results, im.one(ImportResult{Kind: "event_type", Name: t.Name}, func(q *sql.Queries, r *ImportResult) error { return im.eventType(q, t, r) }))
	}
	for _, text := range in.Endpoints {
		name, body, err := splitExternal(text)
		out.Results = append(out.Results, im.one(ImportResult{Kind: "endpoint", Name: name}, func(q *sql.Queries, r *ImportResult) error {
			if err != nil {
				return err
			}
			return im.endpoint(q, name, body, r)
		}))
	}
	for _, r := range out.Results {
		if r.Problem != nil {
			out.Refused++
		}
	}
	return c.Answer(http.StatusOK, out)
}

// importing is one import under way.
type importing struct {
	*api
	call *handlers.Call
	dry  bool
	seen map[string]bool // external ids of this import
}

// one does an entry in a transaction of its own; a trial is taken back, whatever it was refused is not.
func (im *importing) one(r ImportResult, do func(*sql.Queries, *ImportResult) error) ImportResult {
	err := im.DB.Tenant(im.call.Ctx(), im.call.Actor.Tenant, func(q *sql.Queries) error {
		if err := do(q, &r); err != nil {
			return err
		}
		if im.dry {
			return errDryRun
		}
		return nil
	})
	if im.dry {
		r.Secret = nil
		if r.Action == "created" {
			r.ID = nil
		}
	}
	if err == nil || errors.Is(err, errDryRun) {
		return r
	}
	known := handlers.Known(err)
	problem := ImportProblem{Code: known.Code, Detail: known.Detail, Errors: []FieldProblem{}}
	for _, f := range known.Fields {
		problem.Errors = append(problem.Errors, FieldProblem{Field: f.Name, Code: f.Code, Detail: f.Detail})
	}
	r.Action, r.Secret, r.Problem = "refused", nil, &problem
	return r
}

// eventType adds an event type, or gives the one of its name the fields that are there.
func (im *importing) eventType(q *sql.Queries, t EventTypeInput, r *ImportResult) error {
	e := t.entry()
	if err := e.Validate(); err != nil {
		return err
	}
	before, err := q.GetEventType(im.call.Ctx(), sql.GetEventTypeParams{TenantID: im.call.Actor.Tenant, Name: t.Name})
	if db.IsMissing(err) {
		_, err = im.addEventType(im.call, q, e)
		r.Action = "created"
		return err
	} else if err != nil {
		return err
	}
	after, err := im.changeEventType(im.call, q, t.Name, t.patch())
	if r.Action = "unchanged"; differ(before, after) {
		r.Action = "updated"
	}
	return err
}

var errNoExternal = fault.InvalidField(externalID, "external_id_needed", "An endpoint of an import needs an external_id of its own: 1 to 200 characters by which a second import finds it again.")

// splitExternal takes an endpoint's external id from its other fields.
func splitExternal(text json.RawMessage) (name string, body []byte, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || json.Unmarshal(fields[externalID], &name) != nil || name == "" || len(name) > 200 {
		return "", nil, errNoExternal
	}
	delete(fields, externalID)
	body, err = json.Marshal(fields)
	return name, body, err
}

// endpoint makes an endpoint, or changes the one of its external id: that keeps its secrets, which are rotated and not overwritten.
func (im *importing) endpoint(q *sql.Queries, name string, body []byte, r *ImportResult) error {
	if im.seen[name] {
		return fault.InvalidField(externalID, "import_twice", "This external_id is given twice.")
	}
	im.seen[name] = true
	var in EndpointInput
	if err := handlers.DecodeObject(body, &in); err != nil {
		return err
	}
	metadata := map[string]string{}
	if in.Metadata != nil {
		metadata = *in.Metadata
	}
	metadata[externalID] = name
	in.Metadata = &metadata
	there, err := q.EndpointOfExternalID(im.call.Ctx(), sql.EndpointOfExternalIDParams{TenantID: im.call.Actor.Tenant, ExternalID: name})
	switch {
	case db.IsMissing(err):
		var random [32]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		e, secret, err := im.makeEndpoint(im.call, q, in, random)
		if err != nil {
			return err
		}
		r.Action, r.ID = "created", new(id.Endpoint.Format(e.ID))
		if in.Secret == nil {
			r.Secret = &secret.Text
		}
		return nil
	case err != nil:
		return err
	}
	return im.change(q, there, in, r)
}

func (im *importing) change(q *sql.Queries, u id.UUID, in EndpointInput, r *ImportResult) error {
	ctx, tenant := im.call.Ctx(), im.call.Actor.Tenant
	before, err := endpoints.Read(ctx, q, im.Keys, tenant, u)
	if err != nil {
		return err
	}
	after, err := endpoints.Edit(ctx, q, im.Keys, tenant, u, func(s endpoint.Settings) (endpoint.Settings, error) {
		return in.patch().apply(s, im.Egress)
	}, im.call.Author())
	r.ID = new(id.Endpoint.Format(u))
	if r.Action = "unchanged"; err == nil && len(after.Settings.Diff(before.Settings)) > 0 {
		r.Action = "updated"
	}
	return err
}

// patch is the input of a creation as a change.
func (in EventTypeInput) patch() EventTypePatch {
	return EventTypePatch{
		Description: in.Description, Group: in.Group, Schema: in.Schema, Example: in.Example, SchemaCheck: in.SchemaCheck,
		Deprecated: in.Deprecated, Versions: in.Versions,
	}
}
