package db

import (
	"context"

	"posthorn/domain/catalogue"
	"posthorn/domain/id"
)

// AddEventType stores a new entry of a tenant's catalogue; made is false where the name is taken.
func (q *Queries) AddEventType(ctx context.Context, tenant id.UUID, e catalogue.Entry) (made bool, err error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return false, err
	}
	n, err := q.InsertEventType(ctx, InsertEventTypeParams{
		TenantID: tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group, Schema: textOrNull(string(e.Schema)),
		Example: textOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated, Versions: versions,
	})
	return n > 0, err
}

// ChangeEventType stores an entry of a tenant's catalogue as it is to be.
func (q *Queries) ChangeEventType(ctx context.Context, tenant id.UUID, e catalogue.Entry) (EventType, error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return EventType{}, err
	}
	return q.UpdateEventType(ctx, UpdateEventTypeParams{
		TenantID: tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group, Schema: textOrNull(string(e.Schema)),
		Example: textOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated, Versions: versions,
	})
}
