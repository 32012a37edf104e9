package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// SecretState is the visible part of a live secret.
type SecretState struct {
	sql.EndpointSecret
	Signing bool // deliveries are signed with it now
}

// addSecret seals and stores a secret of an endpoint.
func addSecret(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID,
	secret endpoint.Secret,
) (sql.EndpointSecret, error) {
	secretID := db.NewID()
	return q.InsertSecret(ctx, sql.InsertSecretParams{
		TenantID: tenant, ID: secretID, EndpointID: endpointID, Sealed: ring.Seal([]byte(secret.Text), tenant,
			endpointID),
		PublicKey: db.TextOrNull(secret.Public), Hint: secret.Hint, CreatedAt: secretID.Time(),
	})
}

// ListSecrets returns an endpoint's live secrets, newest first.
func ListSecrets(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) ([]SecretState, error) {
	e, err := q.GetEndpoint(ctx, sql.GetEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return nil, err
	}
	return secretsOf(ctx, q, e)
}

func secretsOf(ctx context.Context, q *sql.Queries, e sql.Endpoint) ([]SecretState, error) {
	live, err := q.LiveSecrets(ctx, sql.LiveSecretsParams{TenantID: e.TenantID, EndpointID: e.ID})
	if err != nil {
		return nil, err
	}
	slot := SlotOf(live, e.SlotSecretID)
	states := make([]SecretState, len(live))
	for i, one := range live {
		states[i] = SecretState{EndpointSecret: one, Signing: i == slot || !SignsOne(e)}
	}
	return states, nil
}

// SlotOf is the position of the signing secret among the live ones.
func SlotOf(live []sql.EndpointSecret, chosen *id.UUID) int {
	ids := make([]id.UUID, len(live))
	for i, one := range live {
		ids[i] = one.ID
	}
	return endpoint.Slot(ids, chosen)
}

// Rotation describes how an endpoint gets its next secret.
type Rotation struct {
	Overlap int // seconds for which older secrets stay live; 0 ends them immediately
	Choose  func(e sql.Endpoint, newest *sql.EndpointSecret) (endpoint.Secret, error)
}

// RotateSecret adds the secret that the rotation selects for the endpoint, given the newest of the live ones. The
// secrets that signed before stay live for the overlap.
func RotateSecret(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID,
	r Rotation,
) (SecretState, error) {
	overlap := r.Overlap
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return SecretState{}, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return SecretState{}, err
	}
	live, err := q.LiveSecrets(ctx, sql.LiveSecretsParams{TenantID: tenant, EndpointID: endpointID})
	if err != nil {
		return SecretState{}, err
	}
	if overlap > 0 {
		if err := endpoint.CheckLive(len(live)); err != nil {
			return SecretState{}, err
		}
	}
	var newest *sql.EndpointSecret
	if len(live) > 0 {
		newest = &live[0]
	}
	secret, err := r.Choose(e, newest)
	if err != nil {
		return SecretState{}, err
	}
	added, err := addSecret(ctx, q, ring, tenant, endpointID, secret)
	if err != nil {
		return SecretState{}, err
	}
	if err := q.ExpireSecrets(ctx, sql.ExpireSecretsParams{
		OverlapSeconds: int32(overlap), TenantID: tenant,
		EndpointID: endpointID, Kept: added.ID,
	}); err != nil {
		return SecretState{}, err
	}
	if err := q.DropEndedSecrets(ctx, sql.DropEndedSecretsParams{
		TenantID:   tenant,
		EndpointID: endpointID,
	}); err != nil {
		return SecretState{}, err
	}
	// If one secret signs at a time, the present one keeps signing for the overlap: it is named, so that the new one
	// does not replace it by being the newest.
	slot := added.ID
	if overlap > 0 && len(live) > 0 {
		slot = live[SlotOf(live, e.SlotSecretID)].ID
	}
	if err := q.SetSlotSecret(ctx, sql.SetSlotSecretParams{
		SlotSecretID: &slot, TenantID: tenant, ID: endpointID,
	}); err != nil {
		return SecretState{}, err
	}
	if err := tellRotated(ctx, q, e, added, overlap); err != nil {
		return SecretState{}, err
	}
	signing := slot == added.ID || !SignsOne(e)
	return SecretState{EndpointSecret: added, Signing: signing}, resign(ctx, q, tenant, endpointID)
}

// tellRotated posts the notice of a rotation: the receiver's developers need the new secret.
func tellRotated(ctx context.Context, q *sql.Queries, e sql.Endpoint, added sql.EndpointSecret, overlap int) error {
	details := notice.SecretDetails{
		Endpoint: id.Endpoint.Format(e.ID), URL: egress.Mask(e.URL), Description: e.Description,
		Secret: id.Secret.Format(added.ID), Hint: added.Hint,
	}
	if overlap > 0 {
		until := added.CreatedAt.Add(time.Duration(overlap) * time.Second)
		details.OldUntil = &until
	}
	_, err := accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant: e.TenantID, Kind: notice.SecretRotated, Key: string(notice.SecretRotated) + ":" + details.Secret,
		Endpoint: &e.ID, Details: details,
	})
	return err
}

// SwitchSecret makes an endpoint sign with its newest secret, if one secret signs at a time. changed is false if it
// does already.
func SwitchSecret(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (newest SecretState, changed bool,
	err error,
) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return newest, false, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return newest, false, err
	}
	states, err := secretsOf(ctx, q, e)
	if err != nil {
		return newest, false, err
	}
	if len(states) == 0 {
		return newest, false, endpoint.ErrNoSecret
	}
	newest = states[0]
	if newest.Signing {
		return newest, false, nil
	}
	if err := q.SetSlotSecret(ctx, sql.SetSlotSecretParams{
		SlotSecretID: &newest.ID, TenantID: tenant, ID: endpointID,
	}); err != nil {
		return newest, false, err
	}
	newest.Signing = true
	return newest, true, resign(ctx, q, tenant, endpointID)
}

// resign makes the next event, and what waits, signed with the secrets that the endpoint has now. The tenant is locked.
func resign(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if _, err := q.BumpRouting(ctx, tenant); err != nil {
		return err
	}
	return WakeLane(ctx, q, tenant, endpointID)
}
