package endpoints

import (
	"context"
	"slices"

	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// CheckSecret requests a check: a test event, signed with one live secret alone, is sent to the endpoint.
func (ed Editor) CheckSecret(ctx context.Context, q *sql.Queries, tenant, endpointID, secret id.UUID) (show.Secret, error) {
	e, live, err := lockSecrets(ctx, q, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	if err := endpoint.CheckSecretKind(endpoint.Kind(e.Kind)); err != nil {
		return show.Secret{}, err
	}
	row, err := q.RequestSecretCheck(ctx, sql.RequestSecretCheckParams{TenantID: tenant, EndpointID: endpointID, ID: secret})
	if err != nil {
		return show.Secret{}, err
	}
	details := map[string]string{"secret": id.Secret.Format(secret)}
	if err := ed.audit(ctx, q, tenant, endpointID, "endpoint.check_secret", details); err != nil {
		return show.Secret{}, err
	}
	i := slices.IndexFunc(live, func(s sql.EndpointSecret) bool { return s.ID == secret })
	return secretOf(row, signs(e, live, i)), q.NotifyJobs(ctx)
}

// EndSecret ends a live secret: nothing is signed with it from now on. unchecked: also if no receiver has accepted what
// the remaining secret alone signs. The remaining secrets are returned, newest first.
func (ed Editor) EndSecret(ctx context.Context, q *sql.Queries, tenant, endpointID, secret id.UUID, unchecked bool) ([]show.Secret, error) {
	e, live, err := lockSecrets(ctx, q, tenant, endpointID)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(live, func(s sql.EndpointSecret) bool { return s.ID == secret }) {
		return nil, fault.ErrNotFound
	}
	next, there := successor(e, live, secret)
	if err := endpoint.CheckEnd(next, there, unchecked); err != nil {
		return nil, err
	}
	if err := q.DropSecret(ctx, sql.DropSecretParams{TenantID: tenant, EndpointID: endpointID, ID: secret}); err != nil {
		return nil, err
	}
	// If the secret without an end ends, the newest of the others has none from now on. Otherwise nothing would sign
	// later.
	left := slices.DeleteFunc(live, func(s sql.EndpointSecret) bool { return s.ID == secret })
	if !slices.ContainsFunc(left, func(s sql.EndpointSecret) bool { return s.ExpiresAt == nil }) {
		if left[0], err = q.SetSecretEnd(ctx, sql.SetSecretEndParams{TenantID: tenant, EndpointID: endpointID, ID: left[0].ID}); err != nil {
			return nil, err
		}
	}
	details := map[string]any{"secret": id.Secret.Format(secret), "checked": next.Accepted}
	if err := ed.audit(ctx, q, tenant, endpointID, "endpoint.end_secret", details); err != nil {
		return nil, err
	}
	out := make([]show.Secret, len(left))
	for i, s := range left {
		out[i] = secretOf(s, signs(e, left, i))
	}
	return out, resign(ctx, q, tenant, endpointID)
}

// ExtendSecret sets the end of a live secret's overlap to so many seconds from now.
func (ed Editor) ExtendSecret(ctx context.Context, q *sql.Queries, tenant, endpointID, secret id.UUID, overlap int) (show.Secret, error) {
	e, live, err := lockSecrets(ctx, q, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	i := slices.IndexFunc(live, func(s sql.EndpointSecret) bool { return s.ID == secret })
	if i < 0 {
		return show.Secret{}, fault.ErrNotFound
	}
	if err := endpoint.CheckExtend(live[i].ExpiresAt != nil, overlap); err != nil {
		return show.Secret{}, err
	}
	row, err := q.SetSecretEnd(ctx, sql.SetSecretEndParams{
		OverlapSeconds: new(int32(overlap)),
		TenantID:       tenant,
		EndpointID:     endpointID,
		ID:             secret,
	})
	if err != nil {
		return show.Secret{}, err
	}
	details := map[string]any{"secret": id.Secret.Format(secret), "overlap_seconds": overlap}
	if err := ed.audit(ctx, q, tenant, endpointID, "endpoint.extend_secret", details); err != nil {
		return show.Secret{}, err
	}
	return secretOf(row, signs(e, live, i)), resign(ctx, q, tenant, endpointID)
}

// Successor is the secret that the receiver needs once another one has ended; ErrNotFound if there is none.
func Successor(ctx context.Context, q *sql.Queries, tenant, endpointID, secret id.UUID) (show.Secret, error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil {
		return show.Secret{}, err
	}
	next, _ := successor(e, live, secret)
	i := slices.IndexFunc(live, func(s sql.EndpointSecret) bool { return s.ID == next.ID })
	if i < 0 {
		return show.Secret{}, fault.ErrNotFound
	}
	return secretOf(live[i], signs(e, live, i)), nil
}

func successor(e sql.Endpoint, live []sql.EndpointSecret, ended id.UUID) (endpoint.LiveSecret, bool) {
	facts := make([]endpoint.LiveSecret, len(live))
	for i, s := range live {
		facts[i] = endpoint.LiveSecret{ID: s.ID, Accepted: secretOf(s, false).Accepted()}
	}
	return endpoint.Successor(bareSettings(e), facts, ended, e.SlotSecretID)
}

// lockSecrets reads an endpoint's live secrets under the lock of the endpoint.
func lockSecrets(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (e sql.Endpoint, live []sql.EndpointSecret, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return e, nil, err
	}
	if e, err = q.LockEndpoint(ctx, tenant, endpointID); err != nil {
		return e, nil, err
	}
	live, err = q.LiveSecrets(ctx, tenant, endpointID)
	return e, live, err
}

// signs reports whether deliveries are signed with the live secret at a position.
func signs(e sql.Endpoint, live []sql.EndpointSecret, i int) bool {
	return !bareSettings(e).SignsOne() || i == slotOf(live, e.SlotSecretID)
}
