package endpoints

import (
	"context"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Signing describes how an endpoint's requests are signed now, as a worker signs them.
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
	newest := ""
	for i, one := range live {
		text, err := ring.Open(one.Sealed, tenant, endpointID)
		if err != nil {
			return e, s, db.Unopened(err)
		}
		key, err := Wire(e).ParseKey(string(text))
		if err != nil {
			return e, s, fmt.Errorf("secret of %s: %w", id.Endpoint.Format(endpointID), err)
		}
		s.Keys = append(s.Keys, key)
		if i == 0 {
			newest = string(text)
		}
	}
	if err := signFurther(ctx, q, ring, e, &s, newest); err != nil {
		return e, s, err
	}
	return e, s, s.Validate()
}

// signFurther adds the second signature of the endpoint's shape, and the one with the tenant's key.
func signFurther(ctx context.Context, q *sql.Queries, ring *seal.Ring, e sql.Endpoint, s *signature.Signing, newest string) error {
	now := time.Now()
	if s.Shape != nil && s.Shape.AlsoSign != nil && !s.Shape.AlsoSign.Ended(now) {
		if s.Shape.AlsoSign.OwnSecret {
			own, err := openAlsoSecret(e, ring)
			if err != nil {
				return err
			}
			newest = own
		}
		s.Also = signature.SignAlso(s.Shape.AlsoSign, newest)
	}
	if !endpoint.PublicSignature(e.PublicSignature).V1a() {
		return nil
	}
	signers, err := signersOf(ctx, q, ring, e.TenantID)
	if err != nil {
		return err
	}
	if signer := httpsig.Current(signers, now); signer != nil {
		s.Public = signer.Webhooks()
	}
	return nil
}
