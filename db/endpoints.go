package db

import (
	"context"
	"encoding/json"

	"posthorn/db/seal"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// FullEndpoint is an endpoint as people see it: its row, what it says as settings with its headers opened, and its newest
// verification.
type FullEndpoint struct {
	Endpoint
	Settings     endpoint.Settings
	Verification *Verification
	Record       EndpointRecord
}

// EndpointDefaults are the limits and defaults of a tenant's endpoints; most is how many it may have unless its settings or
// the platform's say otherwise.
func (q *Queries) EndpointDefaults(ctx context.Context, tenant id.UUID, most int) (endpoint.Defaults, error) {
	t, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return endpoint.Defaults{}, err
	}
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return endpoint.Defaults{}, err
	}
	return endpoint.ReadDefaults(most, platform, t.Settings), nil
}

// CreateEndpoint stores an endpoint whose settings have been checked, with its first secret, its lane and its first
// verification. It is refused where the tenant has as many endpoints as it may. Creations of one tenant wait for each
// other, so that the limit holds for those that come together.
func (q *Queries) CreateEndpoint(ctx context.Context, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (FullEndpoint, error) {
	if s.Kind == endpoint.Inbox {
		return FullEndpoint{}, errInboxElsewhere
	}
	return q.createEndpoint(ctx, ring, tenant, most, s, secret)
}

// CreateUnverified is CreateEndpoint without a verification: the endpoint's deliveries are held until somebody asks for one.
func (q *Queries) CreateUnverified(ctx context.Context, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (FullEndpoint, error) {
	if s.Kind == endpoint.Inbox {
		return FullEndpoint{}, errInboxElsewhere
	}
	return q.addEndpoint(ctx, ring, tenant, most, s, secret)
}

var errInboxElsewhere = fault.InvalidField("kind", "kind_unknown", "A test inbox is made by POST /inboxes, which gives it its URL.")

func (q *Queries) createEndpoint(ctx context.Context, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (FullEndpoint, error) {
	e, err := q.addEndpoint(ctx, ring, tenant, most, s, secret)
	if err != nil {
		return e, err
	}
	v, err := q.requestVerification(ctx, tenant, e.ID)
	e.Verification = &v
	return e, err
}

// addEndpoint stores an endpoint, if the tenant has room for one more, and routes events to it.
func (q *Queries) addEndpoint(ctx context.Context, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (FullEndpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return FullEndpoint{}, err
	}
	if n, err := q.CountEndpoints(ctx, tenant); err != nil {
		return FullEndpoint{}, err
	} else if err := endpoint.CheckRoom(int(n), most); err != nil {
		return FullEndpoint{}, err
	}
	e, err := q.storeEndpoint(ctx, ring, tenant, s, secret)
	if err != nil {
		return FullEndpoint{}, err
	}
	return FullEndpoint{Endpoint: e, Settings: s, Record: EndpointRecord{HeldExact: true}}, q.reroute(ctx, e, false)
}

// storeEndpoint stores an endpoint with its first secret and its lane, which is held. Nothing is routed to it yet.
func (q *Queries) storeEndpoint(ctx context.Context, ring *seal.Ring, tenant id.UUID, s endpoint.Settings, secret endpoint.Secret) (Endpoint, error) {
	u := NewID()
	kept, err := q.addSecret(ctx, ring, tenant, u, secret)
	if err != nil {
		return Endpoint{}, err
	}
	row := settingsRow(ring, tenant, u, s)
	row.SlotSecretID, row.CreatedAt = &kept.ID, u.Time()
	e, err := q.InsertEndpoint(ctx, row)
	if err != nil {
		return Endpoint{}, err
	}
	return e, q.InsertLane(ctx, InsertLaneParams{EndpointID: u, TenantID: tenant, Held: true})
}

// ReadEndpoint is one endpoint that is not deleted.
func (q *Queries) ReadEndpoint(ctx context.Context, ring *seal.Ring, tenant, u id.UUID) (FullEndpoint, error) {
	e, err := q.GetEndpoint(ctx, GetEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return FullEndpoint{}, err
	}
	full, err := q.complete(ctx, ring, tenant, []Endpoint{e})
	if err != nil {
		return FullEndpoint{}, err
	}
	return full[0], nil
}

// complete adds to endpoints of one tenant what is not in their rows.
func (q *Queries) complete(ctx context.Context, ring *seal.Ring, tenant id.UUID, rows []Endpoint) ([]FullEndpoint, error) {
	full := make([]FullEndpoint, len(rows))
	ids := make([]id.UUID, len(rows))
	for i, e := range rows {
		s, err := e.settings(ring)
		if err != nil {
			return nil, err
		}
		full[i], ids[i] = FullEndpoint{Endpoint: e, Settings: s}, e.ID
	}
	latest, err := q.LatestVerifications(ctx, LatestVerificationsParams{TenantID: tenant, Endpoints: ids})
	if err != nil {
		return nil, err
	}
	newest := make(map[id.UUID]*Verification, len(latest))
	for i := range latest {
		newest[latest[i].EndpointID] = &latest[i]
	}
	for i := range full {
		full[i].Verification = newest[full[i].ID]
	}
	return full, q.addRecords(ctx, tenant, full)
}

// EndpointList asks for a page of a tenant's endpoints by id, beyond the row After: the zero id at the list's beginning.
type EndpointList struct {
	Status    string // empty: all
	Ascending bool
	After     id.UUID
	Most      int
}

// ListEndpoints is a page of a tenant's endpoints.
func (q *Queries) ListEndpoints(ctx context.Context, ring *seal.Ring, tenant id.UUID, l EndpointList) ([]FullEndpoint, error) {
	var rows []Endpoint
	var err error
	if l.Ascending {
		rows, err = q.ListEndpointsOldest(ctx, ListEndpointsOldestParams{TenantID: tenant, After: l.After, Status: l.Status, Most: int32(l.Most)})
	} else {
		before := l.After
		if before.IsZero() {
			before = id.Last
		}
		rows, err = q.ListEndpointsNewest(ctx, ListEndpointsNewestParams{TenantID: tenant, Before: before, Status: l.Status, Most: int32(l.Most)})
	}
	if err != nil {
		return nil, err
	}
	return q.complete(ctx, ring, tenant, rows)
}

// EditEndpoint is ChangeEndpoint with its line in the audit log, which says what changed; what changes nothing has none.
func (q *Queries) EditEndpoint(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, change func(endpoint.Settings) (endpoint.Settings, error), by Author) (FullEndpoint, error) {
	before, after, err := q.ChangeEndpoint(ctx, ring, tenant, u, change)
	if err != nil {
		return after, err
	}
	changed := after.Settings.Diff(before.Settings)
	if len(changed) == 0 {
		return after, nil
	}
	details := map[string]any{"changed": changed}
	if after.URL != before.URL {
		details["url"] = []string{egress.Mask(before.URL), egress.Mask(after.URL)}
	}
	return after, q.Audit(ctx, by, Audited{Tenant: &tenant, Action: "endpoint.update", Kind: "endpoint", Object: id.Endpoint.Format(u), Details: details})
}

// ChangeEndpoint gives an endpoint the settings that change makes of its present ones; change also checks them. Another URL
// makes the endpoint unverified and sends a verification; another format is refused where the live secrets can't sign in
// it. before is the endpoint as it was.
func (q *Queries) ChangeEndpoint(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, change func(endpoint.Settings) (endpoint.Settings, error)) (before, after FullEndpoint, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return before, after, err
	}
	e, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return before, after, err
	}
	if e.Kind == string(endpoint.Listen) {
		return before, after, endpoint.ErrListener
	}
	full, err := q.complete(ctx, ring, tenant, []Endpoint{e})
	if err != nil {
		return before, after, err
	}
	before = full[0]
	to, err := change(before.Settings.Clone())
	if err != nil {
		return before, after, err
	}
	if err := endpoint.CheckURLStays(before.Settings, to); err != nil {
		return before, after, err
	}
	if len(to.Diff(before.Settings)) == 0 {
		return before, before, nil
	}
	if to.Format != before.Settings.Format {
		if err := q.checkSecrets(ctx, ring, tenant, u, to.Format); err != nil {
			return before, after, err
		}
	}
	after, err = q.storeChange(ctx, ring, before, to)
	return before, after, err
}

func (q *Queries) storeChange(ctx context.Context, ring *seal.Ring, before FullEndpoint, to endpoint.Settings) (FullEndpoint, error) {
	tenant, u := before.TenantID, before.ID
	e, err := q.UpdateEndpoint(ctx, updateRow(settingsRow(ring, tenant, u, to)))
	if err != nil {
		return FullEndpoint{}, err
	}
	after := FullEndpoint{Endpoint: e, Settings: to, Verification: before.Verification, Record: before.Record}
	moved := to.Moved(before.Settings)
	if moved {
		if after.Endpoint, err = q.UnverifyEndpoint(ctx, UnverifyEndpointParams{TenantID: tenant, ID: u}); err != nil {
			return FullEndpoint{}, err
		}
		v, err := q.requestVerification(ctx, tenant, u)
		if err != nil {
			return FullEndpoint{}, err
		}
		after.Verification = &v
	}
	if !to.Routes(before.Settings) || after.Status != before.Status {
		if err := q.reroute(ctx, after.Endpoint, false); err != nil {
			return FullEndpoint{}, err
		}
	}
	return after, q.holdLane(ctx, after.Endpoint)
}

// checkSecrets says whether all live secrets can sign in a format.
func (q *Queries) checkSecrets(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, f signature.Format) error {
	live, err := q.LiveSecrets(ctx, LiveSecretsParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return err
	}
	for _, one := range live {
		text, err := ring.Open(one.Sealed, tenant, u)
		if err != nil {
			return unopened(err)
		}
		secret := endpoint.Secret{Text: string(text)}
		if one.PublicKey != nil {
			secret.Public = *one.PublicKey
		}
		if err := endpoint.CheckFormat(f, secret); err != nil {
			return err
		}
	}
	return nil
}

// RemoveEndpoint deletes an endpoint softly, with its secrets; its lane's owner ends what is queued. The answer is the
// endpoint as it was.
func (q *Queries) RemoveEndpoint(ctx context.Context, tenant, u id.UUID) (Endpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return Endpoint{}, err
	}
	e, err := q.LockEndpoint(ctx, LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return Endpoint{}, err
	}
	if err := q.reroute(ctx, e, true); err != nil {
		return Endpoint{}, err
	}
	if err := q.DeleteEndpoint(ctx, DeleteEndpointParams{TenantID: tenant, ID: u}); err != nil {
		return Endpoint{}, err
	}
	if err := q.DropSecrets(ctx, DropSecretsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return Endpoint{}, err
	}
	if err := q.SupersedeVerifications(ctx, SupersedeVerificationsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return Endpoint{}, err
	}
	if endpoint.Kind(e.Kind) == endpoint.Inbox {
		if err := q.removeInbox(ctx, tenant, u); err != nil {
			return Endpoint{}, err
		}
	}
	if err := q.ForgetWarnings(ctx, ForgetWarningsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return Endpoint{}, err
	}
	if err := q.DeleteLane(ctx, DeleteLaneParams{TenantID: tenant, EndpointID: u}); err != nil {
		return Endpoint{}, err
	}
	if err := q.ForgetListener(ctx, ForgetListenerParams{TenantID: tenant, EndpointID: u}); err != nil {
		return Endpoint{}, err
	}
	return e, q.NotifyWake(ctx, WakePayload([]id.UUID{u}, true))
}

// unopened says that a value can't be read with the configured master keys.
func unopened(cause error) error {
	return &fault.Error{Kind: fault.Internal, Code: "internal", Detail: "Something went wrong on our side.", Cause: cause}
}

func encodeMetadata(m map[string]string) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage("{}")
	}
	return encode(m)
}

// encode writes what is made of texts, numbers and lists of them.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}
