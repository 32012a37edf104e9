package endpoints

import (
	"context"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// Reveal opens the newest secret of an endpoint, for a platform that uses the Svix API, and records this in the audit
// log.
func Reveal(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID, by db.Author) (string, error) {
	if _, err := q.GetEndpoint(ctx, tenant, endpointID); err != nil {
		return "", err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil {
		return "", err
	}
	if len(live) == 0 {
		return "", endpoint.ErrNoSecret
	}
	text, err := ring.Open(live[0].Sealed, tenant, endpointID)
	if err != nil {
		return "", db.Unopened(err)
	}
	return string(text), db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.secret_revealed",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Details: map[string]string{"secret": id.Secret.Format(live[0].ID)},
	})
}
