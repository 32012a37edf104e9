// Package endpoints stores the destinations of events: endpoints with their settings, secrets, state and health, and
// the event types that they subscribe to.
package endpoints

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Full is an endpoint as the API and the pages show it: its row, its settings with opened headers, and its newest
// verification.
type Full struct {
	sql.Endpoint
	Settings     endpoint.Settings
	Verification *sql.Verification
	Health       Health
}

// Defaults are the limits and defaults of a tenant's endpoints. most is how many endpoints a tenant can have unless its
// settings or the platform's override it.
func Defaults(ctx context.Context, q *sql.Queries, tenant id.UUID, most int) (endpoint.Defaults, error) {
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

// New is an endpoint to create.
type New struct {
	Settings endpoint.Settings // validated
	Secret   endpoint.Secret   // its first secret
	Most     int               // how many endpoints the tenant can have
}

// Create stores an endpoint with validated settings, its first secret, its lane and its first verification. It fails if
// the tenant has its maximum of endpoints. Creations of one tenant run one after the other, so that the limit is exact.
func Create(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (Full, error) {
	if n.Settings.Kind == endpoint.Inbox {
		return Full{}, errInboxElsewhere
	}
	return CreateAny(ctx, q, ring, tenant, n)
}

// CreateUnverified is Create without a verification: the endpoint's deliveries are held until one is requested.
func CreateUnverified(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (Full, error) {
	if n.Settings.Kind == endpoint.Inbox {
		return Full{}, errInboxElsewhere
	}
	return addEndpoint(ctx, q, ring, tenant, n)
}

// CreateVerified is Create for an endpoint that was in use elsewhere: it is active at once.
func CreateVerified(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (Full, error) {
	e, err := CreateUnverified(ctx, q, ring, tenant, n)
	if err != nil {
		return e, err
	}
	if e.Endpoint, err = q.ActivateEndpoint(ctx, sql.ActivateEndpointParams{TenantID: tenant, ID: e.ID}); err != nil {
		return e, err
	}
	if err := Reroute(ctx, q, e.Endpoint, false); err != nil {
		return e, err
	}
	return e, holdLane(ctx, q, e.Endpoint)
}

var errInboxElsewhere = fault.InvalidField("kind", "kind_unknown", "Create a test inbox with POST /inboxes, which assigns its URL.")

// CreateAny is Create for every kind, including test inboxes.
func CreateAny(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (Full, error) {
	e, err := addEndpoint(ctx, q, ring, tenant, n)
	if err != nil {
		return e, err
	}
	v, err := requestVerification(ctx, q, tenant, e.ID)
	e.Verification = &v
	return e, err
}

// addEndpoint stores an endpoint, if the tenant is below its maximum, and routes events to it.
func addEndpoint(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (Full, error) {
	if err := endpoint.CheckFormat(n.Settings.Wire(), n.Secret); err != nil {
		return Full{}, err
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return Full{}, err
	}
	if count, err := q.CountEndpoints(ctx, tenant); err != nil {
		return Full{}, err
	} else if err := endpoint.CheckRoom(int(count), n.Most); err != nil {
		return Full{}, err
	}
	if err := checkPinned(ctx, q, tenant, n.Settings); err != nil {
		return Full{}, err
	}
	e, err := Insert(ctx, q, ring, tenant, n.Settings, n.Secret)
	if err != nil {
		return Full{}, err
	}
	return Full{Endpoint: e, Settings: n.Settings, Health: Health{HeldExact: true}}, Reroute(ctx, q, e, false)
}

// Insert stores an endpoint with its first secret and its lane, which is held. No event is routed to it yet.
func Insert(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, s endpoint.Settings,
	secret endpoint.Secret,
) (sql.Endpoint, error) {
	endpointID := db.NewID()
	kept, err := addSecret(ctx, q, ring, tenant, endpointID, secret)
	if err != nil {
		return sql.Endpoint{}, err
	}
	row := settingsRow(ring, tenant, endpointID, s)
	row.SlotSecretID, row.CreatedAt = &kept.ID, endpointID.Time()
	e, err := q.InsertEndpoint(ctx, row)
	if err = externalInUse(err); err != nil {
		return sql.Endpoint{}, err
	}
	return e, q.InsertLane(ctx, sql.InsertLaneParams{EndpointID: endpointID, TenantID: tenant, Held: true})
}

// Read reads one endpoint that is not deleted.
func Read(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID) (Full, error) {
	e, err := q.GetEndpoint(ctx, sql.GetEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return Full{}, err
	}
	full, err := complete(ctx, q, ring, tenant, []sql.Endpoint{e})
	if err != nil {
		return Full{}, err
	}
	return full[0], nil
}

// complete adds to endpoints of one tenant what is not in their rows.
func complete(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, rows []sql.Endpoint) ([]Full,
	error,
) {
	full := make([]Full, len(rows))
	ids := make([]id.UUID, len(rows))
	for i, e := range rows {
		s, err := readSettings(e, ring)
		if err != nil {
			return nil, err
		}
		full[i], ids[i] = Full{Endpoint: e, Settings: s}, e.ID
	}
	latest, err := q.LatestVerifications(ctx, sql.LatestVerificationsParams{TenantID: tenant, Endpoints: ids})
	if err != nil {
		return nil, err
	}
	newest := make(map[id.UUID]*sql.Verification, len(latest))
	for i := range latest {
		newest[latest[i].EndpointID] = &latest[i]
	}
	for i := range full {
		full[i].Verification = newest[full[i].ID]
	}
	return full, addHealth(ctx, q, tenant, full)
}

// ListOptions asks for a page of a tenant's endpoints by id, beyond the row After: the zero id at the start of the
// list.
type ListOptions struct {
	Status    string // empty: all
	Ascending bool
	After     id.UUID
	Most      int
}

// List returns a page of a tenant's endpoints.
func List(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, l ListOptions) ([]Full, error) {
	var rows []sql.Endpoint
	var err error
	if l.Ascending {
		rows, err = q.ListEndpointsOldest(ctx, sql.ListEndpointsOldestParams{
			TenantID: tenant, After: l.After,
			Status: l.Status, Most: int32(l.Most),
		})
	} else {
		before := l.After
		if before.IsZero() {
			before = id.Last
		}
		rows, err = q.ListEndpointsNewest(ctx, sql.ListEndpointsNewestParams{
			TenantID: tenant, Before: before,
			Status: l.Status, Most: int32(l.Most),
		})
	}
	if err != nil {
		return nil, err
	}
	return complete(ctx, q, ring, tenant, rows)
}

// Editor changes endpoints on behalf of an author.
type Editor struct {
	Keys *seal.Ring // seals the custom headers
	By   db.Author
}

// Edit is Change with an entry in the audit log that lists the changes. A change without effect has no entry.
func (ed Editor) Edit(
	ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, change func(endpoint.Settings) (endpoint.Settings,
		error),
) (Full, error) {
	before, after, err := Change(ctx, q, ed.Keys, tenant, endpointID, change)
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
	return after, db.Audit(ctx, q, ed.By, db.Audited{
		Tenant: &tenant, Action: "endpoint.update", Kind: "endpoint", Object: id.Endpoint.Format(endpointID), Details: details,
	})
}

// Change replaces an endpoint's settings by the result of change, which also validates them. A new URL makes the
// endpoint unverified and sends a verification. A new format is rejected if the live secrets can't sign in it. before
// is the endpoint before the change.
func Change(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID,
	change func(endpoint.Settings) (endpoint.Settings, error),
) (before, after Full, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return before, after, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return before, after, err
	}
	if e.Kind == string(endpoint.Listen) {
		return before, after, endpoint.ErrListener
	}
	full, err := complete(ctx, q, ring, tenant, []sql.Endpoint{e})
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
	if to.PayloadVersion != before.Settings.PayloadVersion || !slices.Equal(to.EventTypes, before.Settings.EventTypes) {
		if err := checkPinned(ctx, q, tenant, to); err != nil {
			return before, after, err
		}
	}
	if to.Format != before.Settings.Format || !reflect.DeepEqual(to.Shape, before.Settings.Shape) {
		if err := checkSecrets(ctx, q, ring, tenant, endpointID, to.Wire()); err != nil {
			return before, after, err
		}
	}
	after, err = storeChange(ctx, q, ring, before, to)
	return before, after, err
}

func storeChange(ctx context.Context, q *sql.Queries, ring *seal.Ring, before Full, to endpoint.Settings) (Full,
	error,
) {
	tenant, endpointID := before.TenantID, before.ID
	e, err := q.UpdateEndpoint(ctx, updateRow(settingsRow(ring, tenant, endpointID, to)))
	if err = externalInUse(err); err != nil {
		return Full{}, err
	}
	after := Full{Endpoint: e, Settings: to, Verification: before.Verification, Health: before.Health}
	moved := to.Moved(before.Settings)
	if moved {
		if after.Endpoint, err = q.UnverifyEndpoint(ctx, sql.UnverifyEndpointParams{
			TenantID: tenant,
			ID:       endpointID,
		}); err != nil {
			return Full{}, err
		}
		v, err := requestVerification(ctx, q, tenant, endpointID)
		if err != nil {
			return Full{}, err
		}
		after.Verification = &v
	}
	switch {
	case !to.Routes(before.Settings) || after.Status != before.Status:
		err = Reroute(ctx, q, after.Endpoint, false)
	case !to.Sends(before.Settings):
		_, err = q.BumpRouting(ctx, tenant)
	}
	if err != nil {
		return Full{}, err
	}
	if before.Settings.CircuitBreaker && !to.CircuitBreaker {
		if err := closeBreaker(ctx, q, &after); err != nil {
			return Full{}, err
		}
	}
	return after, holdLane(ctx, q, after.Endpoint)
}

// closeBreaker resumes an endpoint whose breaker was switched off: what waited behind it is sent.
func closeBreaker(ctx context.Context, q *sql.Queries, e *Full) error {
	n, err := q.CloseBreaker(ctx, sql.CloseBreakerParams{TenantID: e.TenantID, EndpointID: e.ID})
	if err != nil || n == 0 {
		return err
	}
	h := &e.Health.EndpointHealth
	h.BreakerState, h.OpenedAt, h.NextProbeAt, h.Probes = health.Closed, nil, nil, 0
	return q.ReleaseBacklogs(ctx, []id.UUID{e.ID})
}

// checkSecrets reports whether all live secrets can sign in a format.
func checkSecrets(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID,
	w signature.Wire,
) error {
	live, err := q.LiveSecrets(ctx, sql.LiveSecretsParams{TenantID: tenant, EndpointID: endpointID})
	if err != nil {
		return err
	}
	for _, one := range live {
		text, err := ring.Open(one.Sealed, tenant, endpointID)
		if err != nil {
			return db.Unopened(err)
		}
		secret := endpoint.Secret{Text: string(text)}
		if one.PublicKey != nil {
			secret.Public = *one.PublicKey
		}
		if err := endpoint.CheckFormat(w, secret); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes an endpoint softly, with its secrets. Its lane's owner ends the queued deliveries. The result is the
// endpoint before the deletion.
func Remove(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (sql.Endpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return sql.Endpoint{}, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: endpointID})
	if err != nil {
		return sql.Endpoint{}, err
	}
	if err := Reroute(ctx, q, e, true); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteEndpoint(ctx, sql.DeleteEndpointParams{TenantID: tenant, ID: endpointID}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DropSecrets(ctx, sql.DropSecretsParams{TenantID: tenant, EndpointID: endpointID}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.SupersedeVerifications(ctx, sql.SupersedeVerificationsParams{
		TenantID:   tenant,
		EndpointID: endpointID,
	}); err != nil {
		return sql.Endpoint{}, err
	}
	if endpoint.Kind(e.Kind) == endpoint.Inbox {
		if err := removeInbox(ctx, q, tenant, endpointID); err != nil {
			return sql.Endpoint{}, err
		}
	}
	if err := q.ForgetWarnings(ctx, sql.ForgetWarningsParams{TenantID: tenant, EndpointID: endpointID}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteLane(ctx, sql.DeleteLaneParams{TenantID: tenant, EndpointID: endpointID}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.ForgetListener(ctx, sql.ForgetListenerParams{TenantID: tenant, EndpointID: endpointID}); err != nil {
		return sql.Endpoint{}, err
	}
	return e, q.NotifyWake(ctx, db.WakePayload([]id.UUID{endpointID}, true))
}

func encodeMetadata(m map[string]string) json.RawMessage {
	if len(m) == 0 {
		return json.RawMessage("{}")
	}
	return encode(m)
}

// encode writes a value of texts, numbers and lists as JSON.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// removeInbox deletes an inbox's requests and its token.
func removeInbox(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if _, err := q.ClearInbox(ctx, sql.ClearInboxParams{TenantID: tenant, EndpointID: endpointID}); err != nil {
		return err
	}
	return q.DropInbox(ctx, sql.DropInboxParams{TenantID: tenant, EndpointID: endpointID})
}

// externalInUse rejects an external id of another endpoint of the tenant.
func externalInUse(err error) error {
	if !fault.Is(db.Translate(err), "already_exists") {
		return err
	}
	return fault.New(fault.Conflict, "external_id_in_use", "Another endpoint of this tenant has this external id. Choose another id, or change that endpoint's id first.")
}
