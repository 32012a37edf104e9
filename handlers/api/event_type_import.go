package api

import (
	"errors"
	"fmt"
	"net/http"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

// maxImport is how many event types one import holds.
const maxImport = 1000

// importEventTypes adds and changes many event types at once, all or none.
func (a *api) importEventTypes(c *handlers.Call) error {
	var in EventTypeImport
	if err := c.Decode(&in); err != nil {
		return err
	}
	entries, err := in.entries()
	if err != nil {
		return err
	}
	update := in.OnConflict == nil || *in.OnConflict == EventTypeImportOnConflict("update")
	dry := in.DryRun != nil && *in.DryRun
	out := EventTypeImported{DryRun: dry, Results: make([]EventTypeImportResult, len(entries))}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		if _, err := q.BumpRouting(c.Ctx(), c.Actor.Tenant); err != nil {
			return err
		}
		for i, e := range entries {
			action, err := a.importEventType(c, q, e, update)
			if err != nil {
				return err
			}
			out.Results[i] = EventTypeImportResult{Name: e.Name, Action: action}
		}
		n, err := q.CountEventTypes(c.Ctx(), c.Actor.Tenant)
		if err != nil {
			return err
		}
		if n > int64(a.Settings.TypesPerTenant) {
			return tooMany("event_types_limit", "event types", a.Settings.TypesPerTenant)
		}
		if dry {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	return c.Answer(http.StatusOK, out)
}

// errDryRun takes back what a trial has written; nobody is shown it.
var errDryRun = &fault.Error{Kind: fault.Internal, Detail: "This was a trial."}

// entries are the types of an import, checked, each name once.
func (in EventTypeImport) entries() ([]catalogue.Entry, error) {
	var entries []catalogue.Entry
	var wrong []fault.Field
	switch {
	case (in.EventTypes == nil) == (in.Openapi == nil):
		return nil, fault.InvalidField("event_types", "import_empty", "Give the event types as event_types, or an OpenAPI document with webhooks as openapi.")
	case in.EventTypes != nil:
		for _, t := range *in.EventTypes {
			entries = append(entries, t.entry())
		}
	default:
		var err error
		if entries, err = catalogue.FromOpenAPI(in.Openapi); err != nil {
			return nil, err
		}
	}
	if len(entries) == 0 || len(entries) > maxImport {
		return nil, fault.InvalidField("event_types", "import_count", fmt.Sprintf("An import holds 1 to %d event types; this one has %d.", maxImport, len(entries)))
	}
	seen := map[string]bool{}
	for i, e := range entries {
		at := fmt.Sprintf("event_types.%d.", i)
		if seen[e.Name] {
			wrong = append(wrong, fault.Field{Name: at + "name", Code: "import_twice", Detail: fmt.Sprintf("The event type %.128q is given twice.", e.Name)})
		}
		seen[e.Name] = true
		if err := fault.As(e.Validate()); err != nil {
			for _, f := range err.Fields {
				f.Name = at + f.Name
				wrong = append(wrong, f)
			}
		}
		if len(wrong) > 50 {
			break
		}
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong)
	}
	return entries, nil
}

// importEventType adds one, or changes the one of its name, and says which.
func (a *api) importEventType(c *handlers.Call, q *sql.Queries, e catalogue.Entry, update bool) (EventTypeImportResultAction, error) {
	made, err := endpoints.AddEventType(c.Ctx(), q, c.Actor.Tenant, e)
	switch {
	case err != nil:
		return "", err
	case made:
		return "created", c.Audit(q, "event_type.created", "event_type", e.Name, "", nil)
	case !update:
		return "skipped", nil
	}
	before, err := q.GetEventType(c.Ctx(), sql.GetEventTypeParams{TenantID: c.Actor.Tenant, Name: e.Name})
	if err != nil {
		return "", err
	}
	after, err := endpoints.ChangeEventType(c.Ctx(), q, c.Actor.Tenant, e)
	if err != nil || !differ(before, after) {
		return "unchanged", err
	}
	return "updated", c.Audit(q, "event_type.updated", "event_type", e.Name, "", nil)
}
