// Package endpoints stores where events go: endpoints with their settings, secrets, state and health, and the event
// types that they subscribe to.
package endpoints

import (
	"context"
	"encoding/json"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Full is an endpoint as people see it: its row, what it says as settings with its headers opened, and its newest
// verification.
type Full struct {
	sql.Endpoint
	Settings     endpoint.Settings
	Verification *sql.Verification
	Record       Record
}

// Defaults are the limits and defaults of a tenant's endpoints; most is how many it may have unless its settings or
// the platform's say otherwise.
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

// Create stores an endpoint whose settings have been checked, with its first secret, its lane and its first
// verification. It is refused where the tenant has as many endpoints as it may. Creations of one tenant wait for each
// other, so that the limit holds for those that come together.
func Create(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (Full, error) {
	if s.Kind == endpoint.Inbox {
		return Full{}, errInboxElsewhere
	}
	return CreateAny(ctx, q, ring, tenant, most, s, secret)
}

// CreateUnverified is Create without a verification: the endpoint's deliveries are held until somebody asks for one.
func CreateUnverified(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (Full, error) {
	if s.Kind == endpoint.Inbox {
		return Full{}, errInboxElsewhere
	}
	return addEndpoint(ctx, q, ring, tenant, most, s, secret)
}

var errInboxElsewhere = fault.InvalidField("kind", "kind_unknown", "A test inbox is made by POST /inboxes, which gives it its URL.")

// CreateAny is Create for every kind, test inboxes among them.
func CreateAny(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (Full, error) {
	e, err := addEndpoint(ctx, q, ring, tenant, most, s, secret)
	if err != nil {
		return e, err
	}
	v, err := requestVerification(ctx, q, tenant, e.ID)
	e.Verification = &v
	return e, err
}

// addEndpoint stores an endpoint, if the tenant has room for one more, and routes events to it.
func addEndpoint(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret) (Full, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return Full{}, err
	}
	if n, err := q.CountEndpoints(ctx, tenant); err != nil {
		return Full{}, err
	} else if err := endpoint.CheckRoom(int(n), most); err != nil {
		return Full{}, err
	}
	e, err := Insert(ctx, q, ring, tenant, s, secret)
	if err != nil {
		return Full{}, err
	}
	return Full{Endpoint: e, Settings: s, Record: Record{HeldExact: true}}, Reroute(ctx, q, e, false)
}

// Insert stores an endpoint with its first secret and its lane, which is held. Nothing is routed to it yet.
func Insert(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, s endpoint.Settings, secret endpoint.Secret) (sql.Endpoint, error) {
	u := db.NewID()
	kept, err := addSecret(ctx, q, ring, tenant, u, secret)
	if err != nil {
		return sql.Endpoint{}, err
	}
	row := settingsRow(ring, tenant, u, s)
	row.SlotSecretID, row.CreatedAt = &kept.ID, u.Time()
	e, err := q.InsertEndpoint(ctx, row)
	if err != nil {
		return sql.Endpoint{}, err
	}
	return e, q.InsertLane(ctx, sql.InsertLaneParams{EndpointID: u, TenantID: tenant, Held: true})
}

// Read is one endpoint that is not deleted.
func Read(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID) (Full, error) {
	e, err := q.GetEndpoint(ctx, sql.GetEndpointParams{TenantID: tenant, ID: u})
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
func complete(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, rows []sql.Endpoint) ([]Full, error) {
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
	return full, addRecords(ctx, q, tenant, full)
}

// ListOptions asks for a page of a tenant's endpoints by id, beyond the row After: the zero id at the list's beginning.
type ListOptions struct {
	Status    string // empty: all
	Ascending bool
	After     id.UUID
	Most      int
}

// List is a page of a tenant's endpoints.
func List(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, l ListOptions) ([]Full, error) {
	var rows []sql.Endpoint
	var err error
	if l.Ascending {
		rows, err = q.ListEndpointsOldest(ctx, sql.ListEndpointsOldestParams{TenantID: tenant, After: l.After, Status: l.Status, Most: int32(l.Most)})
	} else {
		before := l.After
		if before.IsZero() {
			before = id.Last
		}
		rows, err = q.ListEndpointsNewest(ctx, sql.ListEndpointsNewestParams{TenantID: tenant, Before: before, Status: l.Status, Most: int32(l.Most)})
	}
	if err != nil {
		return nil, err
	}
	return complete(ctx, q, ring, tenant, rows)
}

// Edit is Change with its line in the audit log, which says what changed; what changes nothing has none.
func Edit(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID, change func(endpoint.Settings) (endpoint.Settings, error), by db.Author) (Full, error) {
	before, after, err := Change(ctx, q, ring, tenant, u, change)
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
	return after, db.Audit(ctx, q, by, db.Audited{Tenant: &tenant, Action: "endpoint.update", Kind: "endpoint", Object: id.Endpoint.Format(u), Details: details})
}

// Change gives an endpoint the settings that change makes of its present ones; change also checks them. Another URL
// makes the endpoint unverified and sends a verification; another format is refused where the live secrets can't sign in
// it. before is the endpoint as it was.
func Change(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID, change func(endpoint.Settings) (endpoint.Settings, error)) (before, after Full, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return before, after, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: u})
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
	if to.Format != before.Settings.Format {
		if err := checkSecrets(ctx, q, ring, tenant, u, to.Format); err != nil {
			return before, after, err
		}
	}
	after, err = storeChange(ctx, q, ring, before, to)
	return before, after, err
}

func storeChange(ctx context.Context, q *sql.Queries, ring *seal.Ring, before Full, to endpoint.Settings) (Full, error) {
	tenant, u := before.TenantID, before.ID
	e, err := q.UpdateEndpoint(ctx, updateRow(settingsRow(ring, tenant, u, to)))
	if err != nil {
		return Full{}, err
	}
	after := Full{Endpoint: e, Settings: to, Verification: before.Verification, Record: before.Record}
	moved := to.Moved(before.Settings)
	if moved {
		if after.Endpoint, err = q.UnverifyEndpoint(ctx, sql.UnverifyEndpointParams{TenantID: tenant, ID: u}); err != nil {
			return Full{}, err
		}
		v, err := requestVerification(ctx, q, tenant, u)
		if err != nil {
			return Full{}, err
		}
		after.Verification = &v
	}
	if !to.Routes(before.Settings) || after.Status != before.Status {
		if err := Reroute(ctx, q, after.Endpoint, false); err != nil {
			return Full{}, err
		}
	}
	return after, holdLane(ctx, q, after.Endpoint)
}

// checkSecrets says whether all live secrets can sign in a format.
func checkSecrets(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, u id.UUID, f signature.Format) error {
	live, err := q.LiveSecrets(ctx, sql.LiveSecretsParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return err
	}
	for _, one := range live {
		text, err := ring.Open(one.Sealed, tenant, u)
		if err != nil {
			return db.Unopened(err)
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

// Remove deletes an endpoint softly, with its secrets; its lane's owner ends what is queued. The answer is the
// endpoint as it was.
func Remove(ctx context.Context, q *sql.Queries, tenant, u id.UUID) (sql.Endpoint, error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return sql.Endpoint{}, err
	}
	e, err := q.LockEndpoint(ctx, sql.LockEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return sql.Endpoint{}, err
	}
	if err := Reroute(ctx, q, e, true); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteEndpoint(ctx, sql.DeleteEndpointParams{TenantID: tenant, ID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DropSecrets(ctx, sql.DropSecretsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.SupersedeVerifications(ctx, sql.SupersedeVerificationsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	if endpoint.Kind(e.Kind) == endpoint.Inbox {
		if err := removeInbox(ctx, q, tenant, u); err != nil {
			return sql.Endpoint{}, err
		}
	}
	if err := q.ForgetWarnings(ctx, sql.ForgetWarningsParams{TenantID: tenant, EndpointID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteLane(ctx, sql.DeleteLaneParams{TenantID: tenant, EndpointID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.ForgetListener(ctx, sql.ForgetListenerParams{TenantID: tenant, EndpointID: u}); err != nil {
		return sql.Endpoint{}, err
	}
	return e, q.NotifyWake(ctx, db.WakePayload([]id.UUID{u}, true))
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

// removeInbox takes away what an inbox received, and its token.
func removeInbox(ctx context.Context, q *sql.Queries, tenant, u id.UUID) error {
	if _, err := q.ClearInbox(ctx, sql.ClearInboxParams{TenantID: tenant, EndpointID: u}); err != nil {
		return err
	}
	return q.DropInbox(ctx, sql.DropInboxParams{TenantID: tenant, EndpointID: u})
}
