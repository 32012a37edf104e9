package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// Author is who did what an entry of the audit log records.
type Author struct {
	Kind    string // key, member, operator, system, command
	ID      string // as people see it; empty where the kind says all
	Address string // where the request came from; empty if it did not come over a network
	Name    string // of operators alone: tenants cannot look up their names
	Reason  string // for everything that gives no reason of its own
}

// Because returns the author with the reason for one action; an empty one keeps the author's own.
func (a Author) Because(reason string) Author {
	if reason != "" {
		a.Reason = reason
	}
	return a
}

// Audited is one entry: what was done, to what, and why.
type Audited struct {
	Tenant  *id.UUID // nil: concerns no tenant
	Action  string   // object and past participle: endpoint.created
	Kind    string   // of the object
	Object  string   // its id as people see it, or its name
	Reason  string
	Details any // becomes a JSON object; nil is an empty one; never a secret
}

// Audit writes to the audit log, in the transaction of the change itself.
func Audit(ctx context.Context, q *sql.Queries, by Author, what Audited) error {
	details := json.RawMessage("{}")
	if what.Details != nil {
		var err error
		if details, err = json.Marshal(what.Details); err != nil {
			return fmt.Errorf("encode audit details: %w", err)
		}
	}
	if what.Reason == "" {
		what.Reason = by.Reason
	}
	return q.InsertAudit(ctx, sql.InsertAuditParams{
		ID:         NewID(),
		TenantID:   what.Tenant,
		ActorKind:  by.Kind,
		ActorID:    by.ID,
		Action:     what.Action,
		ObjectKind: what.Kind,
		ObjectID:   what.Object,
		Address:    by.Address,
		Reason:     what.Reason,
		Details:    details,
		ActorName:  by.Name,
	})
}

// CreatedBy reports whether an author created an endpoint, by the audit log.
func CreatedBy(ctx context.Context, q *sql.Queries, tenant, endpoint id.UUID, by Author) (bool, error) {
	n, err := q.CreatedEndpoint(ctx, sql.CreatedEndpointParams{
		TenantID:  &tenant,
		Since:     endpoint.Time().Add(-time.Minute),
		Until:     endpoint.Time().Add(time.Minute),
		ActorKind: by.Kind,
		ActorID:   by.ID,
		Object:    id.Endpoint.Format(endpoint),
	})
	return n > 0, err
}
