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
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

// addSecret seals and stores a secret of an endpoint.
func addSecret(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant, endpointID id.UUID,
	secret endpoint.Secret,
) (sql.EndpointSecret, error) {
	secretID := db.NewID()
	return q.InsertSecret(ctx, sql.InsertSecretParams{
		TenantID:   tenant,
		ID:         secretID,
		EndpointID: endpointID,
		Sealed:     ring.Seal([]byte(secret.Text), tenant, endpointID),
		PublicKey:  db.TextOrNull(secret.Public),
		Hint:       secret.Hint,
		CreatedAt:  secretID.Time(),
	})
}

// ListSecrets returns an endpoint's live secrets, newest first.
func ListSecrets(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) ([]show.Secret, error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return nil, err
	}
	return secretsOf(ctx, q, e)
}

func secretsOf(ctx context.Context, q *sql.Queries, e sql.Endpoint) ([]show.Secret, error) {
	live, err := q.LiveSecrets(ctx, e.TenantID, e.ID)
	slot := slotOf(live, e.SlotSecretID)
	secrets := make([]show.Secret, len(live))
	for i, one := range live {
		secrets[i] = secretOf(one, i == slot || !bareSettings(e).SignsOne())
	}
	return secrets, err
}

func secretOf(row sql.EndpointSecret, signing bool) show.Secret {
	s := show.Secret{
		ID:        row.ID,
		Type:      endpoint.HMAC,
		Hint:      row.Hint,
		Signing:   signing,
		CreatedAt: row.CreatedAt,
		ExpiresAt: row.ExpiresAt,
	}
	if row.PublicKey != nil {
		s.Type, s.Public = endpoint.Ed25519, *row.PublicKey
	}
	if row.CheckState != nil {
		s.Check = &show.SecretCheck{State: endpoint.CheckState(*row.CheckState), At: db.OrZero(row.CheckedAt), Detail: row.CheckDetail}
		if row.CheckStatus != nil {
			s.Check.Status = int(*row.CheckStatus)
		}
	}
	return s
}

// slotOf is the position of the signing secret among the live ones.
func slotOf(live []sql.EndpointSecret, chosen *id.UUID) int {
	ids := make([]id.UUID, len(live))
	for i, one := range live {
		ids[i] = one.ID
	}
	return endpoint.Slot(ids, chosen)
}

// Rotation describes how an endpoint gets its next secret.
type Rotation struct {
	Overlap int // seconds for which older secrets stay live; 0 ends them immediately
	// Known says that the receiver has chosen the secret, so that nobody has to tell it.
	Known bool
	// Choose returns the next secret of requests that are rendered like this. pair: the newest live secret is a key
	// pair.
	Choose func(w signature.Wire, pair bool) (endpoint.Secret, error)
}

// RotateSecret adds the secret that the rotation selects for the endpoint, given the newest of the live ones. The
// secrets that signed before stay live for the overlap.
func RotateSecret(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID, r Rotation) (show.Secret, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return show.Secret{}, err
	}
	e, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	if r.Overlap > 0 {
		if err := endpoint.CheckLive(len(live)); err != nil {
			return show.Secret{}, err
		}
	}
	secret, err := r.Choose(Wire(e), len(live) > 0 && live[0].PublicKey != nil)
	if err != nil {
		return show.Secret{}, err
	}
	added, err := addSecret(ctx, q, ring, tenant, endpointID, secret)
	if err != nil {
		return show.Secret{}, err
	}
	if err := q.ExpireSecrets(ctx, sql.ExpireSecretsParams{
		OverlapSeconds: int32(r.Overlap),
		TenantID:       tenant,
		EndpointID:     endpointID,
		Kept:           added.ID,
	}); err != nil {
		return show.Secret{}, err
	}
	if err := q.DropEndedSecrets(ctx, tenant, endpointID); err != nil {
		return show.Secret{}, err
	}
	// If one secret signs at a time, the present one keeps signing for the overlap: it is named, so that the new one
	// does not replace it by being the newest.
	slot := added.ID
	if r.Overlap > 0 && len(live) > 0 {
		slot = live[slotOf(live, e.SlotSecretID)].ID
	}
	if err := q.SetSlotSecret(ctx, sql.SetSlotSecretParams{
		SlotSecretID: &slot,
		TenantID:     tenant,
		ID:           endpointID,
	}); err != nil {
		return show.Secret{}, err
	}
	if !r.Known {
		if err := tellRotated(ctx, q, e, added, r.Overlap); err != nil {
			return show.Secret{}, err
		}
	}
	return secretOf(added, slot == added.ID || !bareSettings(e).SignsOne()), resign(ctx, q, tenant, endpointID)
}

// Rotate is RotateSecret by a request for a secret, with an entry in the audit log. The secret's text is shown once.
func (ed Editor) Rotate(
	ctx context.Context,
	q *sql.Queries,
	tenant, endpointID id.UUID,
	overlap int,
	wanted endpoint.SecretRequest,
) (show.Secret, endpoint.Secret, error) {
	var secret endpoint.Secret
	if err := endpoint.CheckOverlap(overlap); err != nil {
		return show.Secret{}, secret, err
	}
	added, err := RotateSecret(ctx, q, ed.Keys, tenant, endpointID, Rotation{
		Overlap: overlap,
		Choose: func(w signature.Wire, pair bool) (endpoint.Secret, error) {
			var err error
			secret, err = wanted.Secret(w, pair)
			return secret, err
		},
	})
	if err != nil {
		return added, secret, err
	}
	return added, secret, ed.audit(ctx, q, tenant, endpointID, "endpoint.rotate_secret", map[string]any{
		"secret":          id.Secret.Format(added.ID),
		"overlap_seconds": overlap,
		"imported":        wanted.Text != "",
	})
}

// tellRotated posts the notice of a rotation: the receiver's developers need the new secret.
func tellRotated(ctx context.Context, q *sql.Queries, e sql.Endpoint, added sql.EndpointSecret, overlap int) error {
	details := notice.SecretDetails{
		Endpoint:    id.Endpoint.Format(e.ID),
		URL:         egress.Mask(e.URL),
		Description: e.Description,
		Secret:      id.Secret.Format(added.ID),
		Hint:        added.Hint,
	}
	if overlap > 0 {
		until := added.CreatedAt.Add(time.Duration(overlap) * time.Second)
		details.OldUntil = &until
	}
	_, err := accounts.PostNotice(ctx, q, accounts.Notice{
		Tenant:   e.TenantID,
		Kind:     notice.SecretRotated,
		Key:      string(notice.SecretRotated) + ":" + details.Secret,
		Endpoint: &e.ID,
		Details:  details,
	})
	return err
}

// SwitchSecret makes an endpoint sign with its newest secret, if one secret signs at a time. changed is false if it
// does already.
func SwitchSecret(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (newest show.Secret, changed bool, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return newest, false, err
	}
	e, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return newest, false, err
	}
	secrets, err := secretsOf(ctx, q, e)
	if err != nil {
		return newest, false, err
	}
	if err := endpoint.CheckSwitch(bareSettings(e), len(secrets)); err != nil {
		return newest, false, err
	}
	newest = secrets[0]
	if newest.Signing {
		return newest, false, nil
	}
	if err := q.SetSlotSecret(ctx, sql.SetSlotSecretParams{
		SlotSecretID: &newest.ID,
		TenantID:     tenant,
		ID:           endpointID,
	}); err != nil {
		return newest, false, err
	}
	newest.Signing = true
	return newest, true, resign(ctx, q, tenant, endpointID)
}

// Switch is SwitchSecret with an entry in the audit log if something changed.
func (ed Editor) Switch(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (show.Secret, error) {
	newest, changed, err := SwitchSecret(ctx, q, tenant, endpointID)
	if err != nil || !changed {
		return newest, err
	}
	details := map[string]string{"secret": id.Secret.Format(newest.ID)}
	return newest, ed.audit(ctx, q, tenant, endpointID, "endpoint.switch_secret", details)
}

// resign makes the next event, and what waits, signed with the secrets that the endpoint has now. The tenant is locked.
func resign(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if _, err := q.BumpRouting(ctx, tenant); err != nil {
		return err
	}
	return WakeLane(ctx, q, tenant, endpointID)
}
