package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// externalID is the field by which an import finds an endpoint again.
const externalID = "external_id"

// importTime bounds an import: every entry is a transaction of its own.
const importTime = 50 * time.Second

// importAll imports event types and endpoints one by one: a rejected one does not stop the others. Existing objects
// are changed where they differ, so a second run changes nothing.
func (a *api) importAll(c *handlers.Call) error {
	var in ImportInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	if n := len(in.EventTypes) + len(in.Endpoints); n == 0 || n > maxImport {
		return fault.InvalidField("endpoints", "import_count", fmt.Sprintf("An import can have 1 to %d event types and endpoints; this one has %d.", maxImport, n))
	}
	im := importing{api: a, call: c, dry: in.DryRun != nil && *in.DryRun, seen: map[string]bool{}}
	if im.create = in.CreateTenant != nil && *in.CreateTenant; c.Actor.NewTenant != "" {
		if _, err := a.newTenant(c, im.create); err != nil {
			return err
		}
	}
	out := Imported{DryRun: im.dry, Results: []ImportResult{}}
	for _, t := range in.EventTypes {
		out.Results = append(out.Results, im.one(ImportResult{Kind: "event_type", Name: t.Name},
			func(q *db.Tx, r *ImportResult) error { return im.eventType(q, t, r) }))
	}
	for _, text := range in.Endpoints {
		name, body, err := splitExternal(text)
		out.Results = append(out.Results, im.one(ImportResult{Kind: "endpoint", Name: name}, func(q *db.Tx, r *ImportResult) error {
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

// importing is one running import.
type importing struct {
	*api
	call *handlers.Call
	dry  bool
	// create says that a missing tenant is created with each entry. A dry run rolls back both.
	create bool
	seen   map[string]bool // external ids of this import
}

// one imports an entry in a transaction of its own. A dry run rolls it back and keeps the errors.
func (im *importing) one(r ImportResult, do func(*db.Tx, *ImportResult) error) ImportResult {
	err := im.inTenant(im.call, im.create, func(q *db.Tx) error {
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

// eventType creates an event type, or changes the given fields of the one with its name.
func (im *importing) eventType(q *db.Tx, t EventTypeInput, r *ImportResult) error {
	e := t.entry()
	if err := e.Validate(); err != nil {
		return err
	}
	_, changed, err := im.catalogue(im.call).Edit(im.call.Ctx(), q, t.Name, t.patch().apply)
	if db.IsMissing(err) {
		r.Action = "created"
		_, err = im.catalogue(im.call).Create(im.call.Ctx(), q, e)
		return err
	}
	if r.Action = "unchanged"; changed {
		r.Action = "updated"
	}
	return err
}

var errNoExternal = fault.InvalidField(externalID, "external_id_needed", "Each endpoint in an import needs its own external_id of 1 to 256 characters. A second import finds the endpoint by this id.")

// splitExternal separates an endpoint's external id from its other fields.
func splitExternal(text json.RawMessage) (name string, body []byte, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || json.Unmarshal(fields[externalID], &name) != nil ||
		!id.ValidExternal(id.Endpoint, name) {
		return "", nil, errNoExternal
	}
	delete(fields, externalID)
	body, err = json.Marshal(fields)
	return name, body, err
}

// endpoint creates an endpoint, or changes the one with its external id. The existing one keeps its secrets, which
// are rotated and not overwritten.
func (im *importing) endpoint(q *db.Tx, name string, body []byte, r *ImportResult) error {
	if im.seen[name] {
		return fault.InvalidField(externalID, "import_twice", "This external_id appears twice.")
	}
	im.seen[name] = true
	var in EndpointInput
	if err := handlers.DecodeObject(body, &in); err != nil {
		return err
	}
	in.ExternalID = nullable.NewNullableWithValue(name)
	there, err := endpoints.OfExternalID(im.call.Ctx(), q, im.call.Actor.Tenant, name)
	switch {
	case db.IsMissing(err):
		e, secret, err := im.makeEndpoint(im.call, q, in)
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

func (im *importing) change(q *db.Tx, endpointID id.UUID, in EndpointInput, r *ImportResult) error {
	ctx, tenant := im.call.Ctx(), im.call.Actor.Tenant
	before, err := endpoints.Read(ctx, q, im.Keys, tenant, endpointID)
	if err != nil {
		return err
	}
	after, err := im.editor(im.call).Edit(ctx, q, tenant, endpointID, func(s endpoint.Settings) (endpoint.Settings, error) {
		return in.over(s, im.Egress)
	})
	r.ID = new(id.Endpoint.Format(endpointID))
	if r.Action = "unchanged"; err == nil && len(after.Settings.Diff(before.Settings)) > 0 {
		r.Action = "updated"
	}
	return err
}
