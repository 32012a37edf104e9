package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// MaxEventTypes is how many entries a tenant's catalog can have by default.
const MaxEventTypes = 1000

var errTypeExists = fault.New(fault.Conflict, "event_type_exists",
	"An event type with this name already exists. Change it, or choose another name.")

// Catalogue changes a tenant's event types within a transaction. Each change is audited.
type Catalogue struct {
	Tenant id.UUID
	Most   int // maximum of entries
	By     db.Author
}

// lock locks the version of the tenant's routes. A strict catalog decides which events are accepted, so each change of
// it creates a new version of the routes. The lock also makes the count of entries exact.
func (c Catalogue) lock(ctx context.Context, q *sql.Queries) error {
	_, err := q.BumpRouting(ctx, c.Tenant)
	return err
}

// Create stores a new validated entry.
func (c Catalogue) Create(ctx context.Context, q *sql.Queries, e catalogue.Entry) (row sql.EventType, err error) {
	if err := c.lock(ctx, q); err != nil {
		return row, err
	}
	created, err := c.insert(ctx, q, e)
	if err == nil && !created {
		err = errTypeExists
	}
	if err != nil {
		return row, err
	}
	if err := c.checkCount(ctx, q); err != nil {
		return row, err
	}
	return q.GetEventType(ctx, sql.GetEventTypeParams{TenantID: c.Tenant, Name: e.Name})
}

// Edit changes an entry and validates it. changed is false if the entry is the same as before; nothing is audited then.
func (c Catalogue) Edit(
	ctx context.Context, q *sql.Queries, name string, edit func(*catalogue.Entry),
) (row sql.EventType, changed bool, err error) {
	if err := c.lock(ctx, q); err != nil {
		return row, false, err
	}
	if row, err = q.GetEventType(ctx, sql.GetEventTypeParams{TenantID: c.Tenant, Name: name}); err != nil {
		return row, false, err
	}
	e, err := EventTypeEntry(row)
	if err != nil {
		return row, false, err
	}
	edit(&e)
	if err := e.Validate(); err != nil {
		return row, false, err
	}
	return c.update(ctx, q, row, e)
}

// Delete deletes an entry. An unknown entry is fault.ErrNotFound.
func (c Catalogue) Delete(ctx context.Context, q *sql.Queries, name string) error {
	if err := c.lock(ctx, q); err != nil {
		return err
	}
	n, err := q.DeleteEventType(ctx, sql.DeleteEventTypeParams{TenantID: c.Tenant, Name: name})
	if err == nil && n == 0 {
		err = fault.ErrNotFound
	}
	if err != nil {
		return err
	}
	return c.audit(ctx, q, "event_type.deleted", name)
}

// The results of Import for an entry.
const (
	importCreated   = "created"
	importUpdated   = "updated"
	importUnchanged = "unchanged"
	importSkipped   = "skipped"
)

// Import creates validated entries, and replaces those of the same name if replace is set. It returns the result for
// each.
func (c Catalogue) Import(ctx context.Context, q *sql.Queries, entries []catalogue.Entry, replace bool) ([]string,
	error,
) {
	if err := c.lock(ctx, q); err != nil {
		return nil, err
	}
	done := make([]string, len(entries))
	for i, e := range entries {
		created, err := c.insert(ctx, q, e)
		if err != nil {
			return nil, err
		}
		switch {
		case created:
			done[i] = importCreated
			continue
		case !replace:
			done[i] = importSkipped
			continue
		}
		row, err := q.GetEventType(ctx, sql.GetEventTypeParams{TenantID: c.Tenant, Name: e.Name})
		if err != nil {
			return nil, err
		}
		_, changed, err := c.update(ctx, q, row, e)
		if err != nil {
			return nil, err
		}
		if done[i] = importUnchanged; changed {
			done[i] = importUpdated
		}
	}
	return done, c.checkCount(ctx, q)
}

// insert returns false if an entry of this name exists.
func (c Catalogue) insert(ctx context.Context, q *sql.Queries, e catalogue.Entry) (bool, error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return false, err
	}
	n, err := q.InsertEventType(ctx, sql.InsertEventTypeParams{
		TenantID: c.Tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group,
		Schema:  db.TextOrNull(string(e.Schema)),
		Example: db.TextOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated,
		Versions: versions,
	})
	if err != nil || n == 0 {
		return false, err
	}
	return true, c.audit(ctx, q, "event_type.created", e.Name)
}

func (c Catalogue) update(ctx context.Context, q *sql.Queries, before sql.EventType, e catalogue.Entry) (sql.EventType,
	bool, error,
) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return before, false, err
	}
	after, err := q.UpdateEventType(ctx, sql.UpdateEventTypeParams{
		TenantID: c.Tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group,
		Schema:  db.TextOrNull(string(e.Schema)),
		Example: db.TextOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated,
		Versions: versions,
	})
	if err != nil || !typesDiffer(before, after) {
		return after, false, err
	}
	return after, true, c.audit(ctx, q, "event_type.updated", e.Name)
}

func (c Catalogue) checkCount(ctx context.Context, q *sql.Queries) error {
	n, err := q.CountEventTypes(ctx, c.Tenant)
	if err != nil || n <= int64(c.Most) {
		return err
	}
	return fault.New(fault.Conflict, "event_types_limit", fmt.Sprintf(
		"A tenant can have %d event types. Delete one that you don't need, or ask the operator of this server for more.", c.Most))
}

func (c Catalogue) audit(ctx context.Context, q *sql.Queries, action, name string) error {
	return db.Audit(ctx, q, c.By, db.Audited{Tenant: &c.Tenant, Action: action, Kind: "event_type", Object: name})
}

// typesDiffer reports whether two rows of an event type differ in content.
func typesDiffer(a, b sql.EventType) bool {
	same := func(x, y *string) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.Description != b.Description || a.TypeGroup != b.TypeGroup || a.SchemaCheck != b.SchemaCheck ||
		a.Deprecated != b.Deprecated ||
		!same(a.Schema, b.Schema) || !same(a.Example, b.Example) || !same(a.Versions, b.Versions)
}

// EventTypeEntry converts an event type's row to an entry of the catalog.
func EventTypeEntry(t sql.EventType) (catalogue.Entry, error) {
	e := catalogue.Entry{
		Name: t.Name, Description: t.Description, Group: t.TypeGroup, Check: catalogue.Mode(t.SchemaCheck),
		Deprecated: t.Deprecated,
	}
	if t.Schema != nil {
		e.Schema = json.RawMessage(*t.Schema)
	}
	if t.Example != nil {
		e.Example = json.RawMessage(*t.Example)
	}
	var err error
	e.Versions, err = catalogue.DecodeVersions(t.Versions)
	return e, err
}

// PublishCatalogue returns the catalog of a tenant as a document. Its version is the time of the newest change.
func PublishCatalogue(ctx context.Context, q *sql.Queries, tenant id.UUID, as catalogue.Document) ([]byte, error) {
	owner, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	rows, err := q.ListEventTypesUp(ctx, sql.ListEventTypesUpParams{TenantID: tenant, Most: MaxEventTypes})
	if err != nil {
		return nil, err
	}
	changed := owner.CreatedAt
	entries := make([]catalogue.Entry, len(rows))
	for i, t := range rows {
		if entries[i], err = EventTypeEntry(t); err != nil {
			return nil, err
		}
		if t.UpdatedAt.After(changed) {
			changed = t.UpdatedAt
		}
	}
	about := catalogue.About{Title: owner.Name + " webhooks", Version: changed.UTC().Format(time.RFC3339)}
	return catalogue.Publish(as, about, entries)
}

// versionedTypes bounds how many event types with versions an endpoint's version is compared with.
const versionedTypes = 1000

// checkPinned rejects a payload version that none of the endpoint's event types declares.
func checkPinned(ctx context.Context, q *sql.Queries, tenant id.UUID, s endpoint.Settings) error {
	if s.PayloadVersion == "" {
		return nil
	}
	rows, err := q.VersionedEventTypes(ctx, sql.VersionedEventTypesParams{TenantID: tenant, Most: versionedTypes})
	if err != nil {
		return err
	}
	declared := make(map[string]map[string]catalogue.Version, len(rows))
	for _, r := range rows {
		if declared[r.Name], err = catalogue.DecodeVersions(r.Versions); err != nil {
			return err
		}
	}
	return catalogue.CheckPinned(s.PayloadVersion, s.EventTypes, declared)
}
