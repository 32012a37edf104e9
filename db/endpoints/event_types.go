package endpoints

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/id"
)

// AddEventType stores a new entry of a tenant's catalogue; made is false where the name is taken.
func AddEventType(ctx context.Context, q *sql.Queries, tenant id.UUID, e catalogue.Entry) (made bool, err error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return false, err
	}
	n, err := q.InsertEventType(ctx, sql.InsertEventTypeParams{
		TenantID: tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group, Schema: db.TextOrNull(string(e.Schema)),
		Example: db.TextOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated, Versions: versions,
	})
	return n > 0, err
}

// ChangeEventType stores an entry of a tenant's catalogue as it is to be.
func ChangeEventType(ctx context.Context, q *sql.Queries, tenant id.UUID, e catalogue.Entry) (sql.EventType, error) {
	versions, err := e.EncodeVersions()
	if err != nil {
		return sql.EventType{}, err
	}
	return q.UpdateEventType(ctx, sql.UpdateEventTypeParams{
		TenantID: tenant, Name: e.Name, Description: e.Description, TypeGroup: e.Group, Schema: db.TextOrNull(string(e.Schema)),
		Example: db.TextOrNull(string(e.Example)), SchemaCheck: string(e.Check), Deprecated: e.Deprecated, Versions: versions,
	})
}
