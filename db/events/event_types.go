package events

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// MaxTypes is how many entries a tenant's catalog can have by default.
const MaxTypes = 1000

var errTypeExists = fault.New(
	fault.Conflict,
	"event_type_exists",
	"An event type with this name already exists. Change it, or choose another name.",
)

// Catalogue changes a tenant's event types within a transaction. Each change is audited.
type Catalogue struct {
	Tenant id.UUID
	Limit  int // of entries
	By     db.Author
}

// lock locks the version of the tenant's routes. A strict catalog decides which events are accepted, so each change of
// it creates a new version of the routes. The lock also makes the count of entries exact.
func (c Catalogue) lock(ctx context.Context, q *sql.Queries) error {
	_, err := q.BumpRouting(ctx, c.Tenant)
	return err
}

// Create stores a new validated entry.
func (c Catalogue) Create(ctx context.Context, q *sql.Queries, e catalogue.Entry) (made catalogue.Entry, err error) {
	if err := c.lock(ctx, q); err != nil {
		return made, err
	}
	created, err := c.insert(ctx, q, e)
	if err == nil && !created {
		err = errTypeExists
	}
	if err != nil {
		return made, err
	}
	if err := c.checkCount(ctx, q); err != nil {
		return made, err
	}
	return ReadType(ctx, q, c.Tenant, e.Name)
}

// Edit changes an entry and validates it. changed is false if the entry is the same as before; nothing is audited then.
func (c Catalogue) Edit(
	ctx context.Context,
	q *sql.Queries,
	name string,
	edit func(*catalogue.Entry),
) (e catalogue.Entry, changed bool, err error) {
	if err := c.lock(ctx, q); err != nil {
		return e, false, err
	}
	row, err := q.GetEventType(ctx, c.Tenant, name)
	if err != nil {
		return e, false, err
	}
	if e, err = entryOf(row); err != nil {
		return e, false, err
	}
	edit(&e)
	if err := e.Validate(); err != nil {
		return e, false, err
	}
	return c.update(ctx, q, row, e)
}

// Delete deletes an entry. An unknown entry is fault.ErrNotFound.
func (c Catalogue) Delete(ctx context.Context, q *sql.Queries, name string) error {
	if err := c.lock(ctx, q); err != nil {
		return err
	}
	n, err := q.DeleteEventType(ctx, c.Tenant, name)
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
func (c Catalogue) Import(ctx context.Context, q *sql.Queries, entries []catalogue.Entry, replace bool) ([]string, error) {
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
		row, err := q.GetEventType(ctx, c.Tenant, e.Name)
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
		TenantID:    c.Tenant,
		Name:        e.Name,
		Description: e.Description,
		TypeGroup:   e.Group,
		Schema:      db.TextOrNull(string(e.Schema)),
		Example:     db.TextOrNull(string(e.Example)),
		SchemaCheck: string(e.Check),
		Deprecated:  e.Deprecated,
		Versions:    versions,
	})
	if err != nil || n == 0 {
		return false, err
	}
	return true, c.audit(ctx, q, "event_type.created", e.Name)
}

func (c Catalogue) update(ctx context.Context, q *sql.Queries, before sql.EventType, e catalogue.Entry) (catalogue.Entry, bool, error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return e, false, err
	}
	after, err := q.UpdateEventType(ctx, sql.UpdateEventTypeParams{
		TenantID:    c.Tenant,
		Name:        e.Name,
		Description: e.Description,
		TypeGroup:   e.Group,
		Schema:      db.TextOrNull(string(e.Schema)),
		Example:     db.TextOrNull(string(e.Example)),
		SchemaCheck: string(e.Check),
		Deprecated:  e.Deprecated,
		Versions:    versions,
	})
	if err != nil {
		return e, false, err
	}
	if e, err = entryOf(after); err != nil {
		return e, false, err
	}
	before.UpdatedAt = after.UpdatedAt
	if reflect.DeepEqual(before, after) {
		return e, false, nil
	}
	return e, true, c.audit(ctx, q, "event_type.updated", e.Name)
}

func (c Catalogue) checkCount(ctx context.Context, q *sql.Queries) error {
	n, err := q.CountEventTypes(ctx, c.Tenant)
	if err != nil || n <= int64(c.Limit) {
		return err
	}
	return fault.New(fault.Conflict, "event_types_limit", fmt.Sprintf(
		"A tenant can have %d event types. Delete one that you don't need, or ask the operator of this server for more.", c.Limit))
}

func (c Catalogue) audit(ctx context.Context, q *sql.Queries, action, name string) error {
	return db.Audit(ctx, q, c.By, db.Audited{Tenant: &c.Tenant, Action: action, Kind: "event_type", Object: name})
}

// ReadType reads an entry by its name.
func ReadType(ctx context.Context, q *sql.Queries, tenant id.UUID, name string) (catalogue.Entry, error) {
	row, err := q.GetEventType(ctx, tenant, name)
	if err != nil {
		return catalogue.Entry{}, err
	}
	return entryOf(row)
}

// Types returns a page of a tenant's event types. Positions are names.
func Types(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (page show.Page[catalogue.Entry], err error) {
	rows, err := q.ListEventTypes(ctx, sql.ListEventTypesParams{
		TenantID:   tenant,
		After:      string(r.After),
		Descending: !r.Ascending,
		Limit:      int32(r.Limit + 1),
	})
	entries := make([]catalogue.Entry, len(rows))
	for i, t := range rows {
		if entries[i], err = entryOf(t); err != nil {
			return page, err
		}
	}
	return show.Cut(entries, r.Limit, func(e catalogue.Entry) []byte { return []byte(e.Name) }), err
}

// everyType is the range of all event types.
var everyType = show.Range{Limit: MaxTypes, Ascending: true}

// PublicCatalogue is the catalog of the platform's own tenant, by name. on is false if operators have not made it
// public.
func PublicCatalogue(ctx context.Context, d *db.DB) (types []catalogue.Entry, on bool, err error) {
	tenant, on, err := accounts.PublicTenant(ctx, d)
	if err != nil || !on {
		return nil, false, err
	}
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		page, err := Types(ctx, q, tenant, everyType)
		types = page.Rows
		return err
	})
	return types, true, err
}

func entryOf(t sql.EventType) (catalogue.Entry, error) {
	e := catalogue.Entry{
		Name:        t.Name,
		Description: t.Description,
		Group:       t.TypeGroup,
		Check:       catalogue.Mode(t.SchemaCheck),
		Deprecated:  t.Deprecated,
		CreatedAt:   t.CreatedAt,
		UpdatedAt:   t.UpdatedAt,
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
	all, err := Types(ctx, q, tenant, everyType)
	if err != nil {
		return nil, err
	}
	changed := owner.CreatedAt
	for _, t := range all.Rows {
		if t.UpdatedAt.After(changed) {
			changed = t.UpdatedAt
		}
	}
	about := catalogue.About{Title: owner.Name + " webhooks", Version: changed.UTC().Format(time.RFC3339)}
	return catalogue.Publish(as, about, all.Rows)
}
