package endpoints

import (
	"context"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// ToTest are the settings of an endpoint and the secret that signs now, opened for a test of its connection. They are
// shown to nobody.
func ToTest(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID) (s endpoint.Settings, secret string, err error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return s, "", err
	}
	if s, err = OpenSettings(e, ring); err != nil {
		return s, "", err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil || len(live) == 0 {
		return s, "", err
	}
	text, err := ring.Open(live[slotOf(live, e.SlotSecretID)].Sealed, tenant, endpointID)
	if err != nil {
		return s, "", db.Unopened(err)
	}
	return s, string(text), nil
}
