package endpoints

import (
	"context"
	"fmt"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Signing describes how an endpoint's requests are signed now.
func Signing(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID) (sql.Endpoint, signature.Signing, error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return e, signature.Signing{}, err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil {
		return e, signature.Signing{}, err
	}
	s := signature.Signing{
		Format:   signature.Format(e.Format),
		Prefix:   e.Prefix,
		Rotation: signature.Rotation(e.RotationSignatures),
		Slot:     slotOf(live, e.SlotSecretID),
		Shape:    Wire(e).Shape,
	}
	s.Prepare()
	for _, one := range live {
		text, err := ring.Open(one.Sealed, tenant, endpointID)
		if err != nil {
			return e, s, db.Unopened(err)
		}
		key, err := Wire(e).ParseKey(string(text))
		if err != nil {
			return e, s, fmt.Errorf("secret of %s: %w", id.Endpoint.Format(endpointID), err)
		}
		s.Keys = append(s.Keys, key)
	}
	return e, s, s.Validate()
}
