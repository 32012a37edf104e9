package db

import (
	"context"
	"time"

	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// SecretState is what may be shown of a live secret.
type SecretState struct {
	EndpointSecret
	Signing bool // deliveries are signed with it now
}

// addSecret seals and stores a secret of an endpoint.
func (q *Queries) addSecret(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, secret endpoint.Secret) (EndpointSecret, error) {
	secretID := NewID()
	return q.InsertSecret(ctx, InsertSecretParams{
		TenantID: tenant, ID: secretID, EndpointID: u, Sealed: ring.Seal([]byte(secret.Text), tenant, u),
		PublicKey: textOrNull(secret.Public), Hint: secret.Hint, CreatedAt: secretID.Time(),
	})
}

// ListSecrets is an endpoint's live secrets, newest first.
func (q *Queries) ListSecrets(ctx context.Context, tenant, u id.UUID) ([]SecretState, error) {
	e, err := q.GetEndpoint(ctx, GetEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return nil, err
	}
	return q.secretsOf(ctx, e)
}

func (q *Queries) secretsOf(ctx context.Context, e Endpoint) ([]SecretState, error) {
	live, err := q.LiveSecrets(ctx, LiveSecretsParams{TenantID: e.TenantID, EndpointID: e.ID})
	if err != nil {
		return nil, err
	}
	slot := slotOf(live, e.SlotSecretID)
	states := make([]SecretState, len(live))
	for i, one := range live {
		states[i] = SecretState{EndpointSecret: one, Signing: i == slot || !e.SignsOne()}
	}
	return states, nil
}

func slotOf(live []EndpointSecret, chosen *id.UUID) int {
	ids := make([]id.UUID, len(live))
	for i, one := range live {
		ids[i] = one.ID
	}
	return endpoint.Slot(ids, chosen)
}

// RotateSecret adds the secret that choose makes for the endpoint, given the newest of the live ones. What signed until now
// goes on for the overlap, in seconds; an overlap of 0 ends all older secrets at once.
func (q *Queries) RotateSecret(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, overlap int, choose func(e Endpoint, newest *EndpointSecret) (endpoint.Secret, error)) (SecretState, error) {
	e, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return SecretState{}, err
	}
	live, err := q.LiveSecrets(ctx, LiveSecretsParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return SecretState{}, err
	}
	if overlap > 0 {
		if err := endpoint.CheckLive(len(live)); err != nil {
			return SecretState{}, err
		}
	}
	var newest *EndpointSecret
	if len(live) > 0 {
		newest = &live[0]
	}
	secret, err := choose(e, newest)
	if err != nil {
		return SecretState{}, err
	}
	added, err := q.addSecret(ctx, ring, tenant, u, secret)
	if err != nil {
		return SecretState{}, err
	}
	if err := q.RetireSecrets(ctx, RetireSecretsParams{OverlapSeconds: int32(overlap), TenantID: tenant, EndpointID: u, Kept: added.ID}); err != nil {
		return SecretState{}, err
	}
	if err := q.DropEndedSecrets(ctx, DropEndedSecretsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return SecretState{}, err
	}
	// Where one secret signs alone it goes on doing so for the overlap: what signs now is named, so that the new one does not
	// take over by being the newest.
	slot := added.ID
	if overlap > 0 && len(live) > 0 {
		slot = live[slotOf(live, e.SlotSecretID)].ID
	}
	if err := q.SetSlotSecret(ctx, SetSlotSecretParams{SlotSecretID: &slot, TenantID: tenant, ID: u}); err != nil {
		return SecretState{}, err
	}
	if err := q.tellRotated(ctx, e, added, overlap); err != nil {
		return SecretState{}, err
	}
	signing := slot == added.ID || !e.SignsOne()
	return SecretState{EndpointSecret: added, Signing: signing}, q.wakeLane(ctx, tenant, u)
}

// tellRotated posts the notice of a rotation: whoever verifies signatures must hear of the new secret.
func (q *Queries) tellRotated(ctx context.Context, e Endpoint, added EndpointSecret, overlap int) error {
	details := notice.SecretDetails{
		Endpoint: id.Endpoint.Format(e.ID), URL: egress.Mask(e.URL), Description: e.Description, Secret: id.Secret.Format(added.ID), Hint: added.Hint,
	}
	if overlap > 0 {
		until := added.CreatedAt.Add(time.Duration(overlap) * time.Second)
		details.OldUntil = &until
	}
	_, err := q.PostNotice(ctx, Notice{
		Tenant: e.TenantID, Kind: notice.SecretRotated, Key: string(notice.SecretRotated) + ":" + details.Secret, Endpoint: &e.ID, Details: details,
	})
	return err
}

// SwitchSecret makes an endpoint sign with its newest secret where one secret signs at a time. changed is false
// where it does so already.
func (q *Queries) SwitchSecret(ctx context.Context, tenant, u id.UUID) (newest SecretState, changed bool, err error) {
	e, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return newest, false, err
	}
	states, err := q.secretsOf(ctx, e)
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
	if err := q.SetSlotSecret(ctx, SetSlotSecretParams{SlotSecretID: &newest.ID, TenantID: tenant, ID: u}); err != nil {
		return newest, false, err
	}
	newest.Signing = true
	return newest, true, q.wakeLane(ctx, tenant, u)
}
