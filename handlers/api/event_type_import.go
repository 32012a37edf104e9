package api

import (
	"errors"
	"fmt"
	"net/http"

	"posthorn/db"
	"posthorn/domain/catalogue"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

// maxImport is how many event types one import holds.
const maxImport = 1000

// importEventTypes creates and changes many event types: all or none.
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
	var done []string
	err = c.Tx(func(q *db.Tx) error {
		if done, err = a.catalogue(c).Import(c.Ctx(), q, entries, update); err == nil && dry {
			err = errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	out := EventTypeImported{DryRun: dry, Results: make([]EventTypeImportResult, len(entries))}
	for i, e := range entries {
		out.Results[i] = EventTypeImportResult{Name: e.Name, Action: EventTypeImportResultAction(done[i])}
	}
	return c.Answer(http.StatusOK, out)
}

// errDryRun rolls back a dry run. It is shown to nobody.
var errDryRun = &fault.Error{Kind: fault.Internal, Detail: "This was a dry run."}

// entries are the validated event types of an import, each name once.
func (in EventTypeImport) entries() ([]catalogue.Entry, error) {
	var entries []catalogue.Entry
	var wrong []fault.Field
	switch {
	case (in.EventTypes == nil) == (in.Openapi == nil):
		return nil, fault.InvalidField("event_types", "import_empty", "Send the event types in event_types, or an OpenAPI document with webhooks in openapi.")
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
		return nil, fault.InvalidField("event_types", "import_count", fmt.Sprintf("An import can have 1 to %d event types; this one has %d.", maxImport, len(entries)))
	}
	seen := map[string]bool{}
	for i, e := range entries {
		at := fmt.Sprintf("event_types.%d.", i)
		if seen[e.Name] {
			wrong = append(wrong, fault.Field{Name: at + "name", Code: "import_twice", Detail: fmt.Sprintf("The event type %.128q appears twice.", e.Name)})
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
