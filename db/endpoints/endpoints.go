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
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

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
	Imported bool              // the secret was in use elsewhere
	Limit    int               // how many endpoints the tenant can have
	Start    Start
	Paused   bool // it is paused as soon as it is there
}

// Start is how a new endpoint begins.
type Start int

// The ways to begin.
const (
	verify   Start = iota // a verification is sent
	Later                 // its deliveries are held until a verification is requested
	Verified              // it was in use elsewhere, and is active at once
)

// Create stores an endpoint with validated settings, its first secret and its lane. It fails if the tenant has its
// maximum of endpoints. Creations of one tenant run one after the other, so that the limit is exact.
func Create(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, n New) (show.Endpoint, error) {
	if err := endpoint.CheckFormat(n.Settings.Wire(), n.Secret); err != nil {
		return show.Endpoint{}, err
	}
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return show.Endpoint{}, err
	}
	if count, err := q.CountEndpoints(ctx, tenant); err != nil {
		return show.Endpoint{}, err
	} else if err := endpoint.CheckRoom(int(count), n.Limit); err != nil {
		return show.Endpoint{}, err
	}
	if err := checkPinned(ctx, q, tenant, n.Settings); err != nil {
		return show.Endpoint{}, err
	}
	if n.Settings.Kind.Pulls() {
		n.Start = Verified // nobody else's address is in it
	}
	row, err := Insert(ctx, q, ring, tenant, n.Settings, n.Secret)
	if err != nil {
		return show.Endpoint{}, err
	}
	if n.Start == Verified {
		if row, err = q.ActivateEndpoint(ctx, tenant, row.ID); err != nil {
			return show.Endpoint{}, err
		}
		if err := holdLane(ctx, q, row); err != nil {
			return show.Endpoint{}, err
		}
	}
	if err := routeNew(ctx, q, ring, row, n.Settings); err != nil {
		return show.Endpoint{}, err
	}
	if n.Settings.Kind.Pulls() {
		if err := q.BeginLog(ctx, tenant); err != nil {
			return show.Endpoint{}, err
		}
	}
	if n.Start == verify {
		if _, err := requestVerification(ctx, q, tenant, row.ID); err != nil {
			return show.Endpoint{}, err
		}
	}
	if n.Paused {
		e, _, err := SetState(ctx, q, ring, tenant, row.ID, endpoint.Pause)
		return e, err
	}
	return complete(ctx, q, ring, row)
}

// Insert stores an endpoint with its first secret and its lane, which is held. No event is routed to it yet.
func Insert(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant id.UUID,
	s endpoint.Settings,
	secret endpoint.Secret,
) (sql.Endpoint, error) {
	endpointID := db.NewID()
	kept, err := addSecret(ctx, q, ring, tenant, endpointID, secret)
	if err != nil {
		return sql.Endpoint{}, err
	}
	row := settingsRow(ring, tenant, endpointID, s)
	row.SlotSecretID, row.CreatedAt = &kept.ID, endpointID.Time()
	e, err := q.StoreEndpoint(ctx, row)
	if err = externalInUse(err); err != nil {
		return sql.Endpoint{}, err
	}
	if s.Public.Signed() {
		if err := ensureSigningKey(ctx, q, ring, tenant); err != nil {
			return sql.Endpoint{}, err
		}
	}
	return e, q.InsertLane(ctx, sql.InsertLaneParams{EndpointID: endpointID, TenantID: tenant, Held: true})
}

// Read reads one endpoint that is not deleted.
func Read(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID) (show.Endpoint, error) {
	row, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return show.Endpoint{}, err
	}
	return complete(ctx, q, ring, row)
}

// Status is the state of an endpoint that is not deleted.
func Status(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (endpoint.Status, error) {
	row, err := q.GetEndpoint(ctx, tenant, endpointID)
	return endpoint.Status(row.Status), err
}

// complete is an endpoint with all that is not in its row.
func complete(ctx context.Context, q *sql.Queries, ring *seal.Ring, row sql.Endpoint) (show.Endpoint, error) {
	list, err := completeAll(ctx, q, ring, row.TenantID, []sql.Endpoint{row})
	if err != nil {
		return show.Endpoint{}, err
	}
	return list[0], nil
}

// completeAll is complete for endpoints of one tenant. Without keys it leaves out what is sealed, and verifications.
func completeAll(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant id.UUID,
	rows []sql.Endpoint,
) (list []show.Endpoint, err error) {
	list, ids := make([]show.Endpoint, len(rows)), make([]id.UUID, len(rows))
	for i, row := range rows {
		list[i], ids[i] = bare(row), row.ID
		if ring == nil {
			continue
		}
		if list[i].Settings, err = OpenSettings(row, ring); err != nil {
			return nil, err
		}
	}
	if ring != nil {
		latest, err := q.LatestVerifications(ctx, tenant, ids)
		if err != nil {
			return nil, err
		}
		for _, v := range latest {
			list[slices.Index(ids, v.EndpointID)].Verification = verificationOf(v)
		}
	}
	return list, addHealth(ctx, q, tenant, list)
}

// bare is what an endpoint's row says.
func bare(row sql.Endpoint) show.Endpoint {
	return show.Endpoint{
		Tenant:       row.TenantID,
		ID:           row.ID,
		Settings:     bareSettings(row),
		Status:       endpoint.Status(row.Status),
		StatusReason: row.StatusReason,
		StatusAt:     row.StatusAt,
		VerifiedAt:   row.VerifiedAt,
		CreatedAt:    row.CreatedAt,
		UpdatedAt:    row.UpdatedAt,
		Deleted:      row.DeletedAt != nil,
		Mute:         muteOf(row),
		ResumeAt:     db.OrZero(row.ResumeAt),
	}
}

func verificationOf(v sql.Verification) *show.Verification {
	out := &show.Verification{
		State:       v.State,
		Tries:       int(v.Tries),
		RequestedAt: v.RequestedAt,
		DueAt:       v.DueAt,
		DoneAt:      v.DoneAt,
		LastDetail:  v.LastDetail,
	}
	if v.LastStatus != nil {
		out.LastStatus = int(*v.LastStatus)
	}
	return out
}

// ListOptions asks for a page of a tenant's endpoints by id, beyond the row After: the zero id at the start of the
// list.
type ListOptions struct {
	Status    string        // empty: all
	Kind      endpoint.Kind // empty: all but listeners, which come and go
	Ascending bool
	After     id.UUID
	Limit     int
}

// HasListeners reports whether programs of a tenant's developers listen, or did within a day.
func HasListeners(ctx context.Context, q *sql.Queries, tenant id.UUID) (bool, error) {
	n, err := q.CountListeners(ctx, tenant)
	return n > 0, err
}

// EveryKind lists listeners beside the other endpoints.
const EveryKind endpoint.Kind = "*"

// List returns a page of a tenant's endpoints. Without keys, their settings lack what is sealed.
func List(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant id.UUID, l ListOptions) ([]show.Endpoint, error) {
	if l.After.IsZero() && !l.Ascending {
		l.After = id.Last
	}
	rows, err := q.ListEndpoints(ctx, sql.ListEndpointsParams{
		TenantID: tenant,
		Newest:   !l.Ascending,
		After:    l.After,
		Status:   l.Status,
		Kind:     string(l.Kind),
		Limit:    int32(l.Limit),
	})
	if err != nil {
		return nil, err
	}
	return completeAll(ctx, q, ring, tenant, rows)
}

// Destination is an endpoint as other nouns name it, also if it is deleted.
func Destination(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (show.Destination, error) {
	row, err := q.AnyEndpoint(ctx, tenant, endpointID)
	return destination(row), err
}

func destination(row sql.Endpoint) show.Destination {
	return show.Destination{
		ID:          row.ID,
		Kind:        endpoint.Kind(row.Kind),
		URL:         egress.Mask(row.URL),
		Description: row.Description,
		Deleted:     row.DeletedAt != nil,
	}
}

// Newest are a tenant's newest endpoints.
func Newest(ctx context.Context, q *sql.Queries, tenant id.UUID, limit int) ([]show.Destination, error) {
	found, _, err := Subscribers(ctx, q, tenant, "", limit)
	return found, err
}

// Subscribers are those of a tenant's newest endpoints that receive an event type; empty: any. more says that there are
// older endpoints.
func Subscribers(
	ctx context.Context,
	q *sql.Queries,
	tenant id.UUID,
	eventType string,
	limit int,
) (found []show.Destination, more bool, err error) {
	rows, err := q.ListEndpoints(ctx, sql.ListEndpointsParams{
		TenantID: tenant,
		Newest:   true,
		After:    id.Last,
		Limit:    int32(limit),
	})
	for _, row := range rows {
		if eventType == "" || filter.MatchType(row.EventTypes, eventType) {
			found = append(found, destination(row))
		}
	}
	return found, len(rows) == limit, err
}

// Editor changes endpoints on behalf of an author, and records it in the audit log.
type Editor struct {
	Keys *seal.Ring // seals the custom headers
	By   db.Author
}

// audit records a change of an endpoint in the same transaction.
func (ed Editor) audit(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, action string, details any) error {
	return db.Audit(ctx, q, ed.By, db.Audited{
		Tenant:  &tenant,
		Action:  action,
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Details: details,
	})
}

// Create is Create with an entry in the audit log.
func (ed Editor) Create(ctx context.Context, q *sql.Queries, tenant id.UUID, n New) (show.Endpoint, error) {
	if n.Settings.Kind == endpoint.Inbox {
		return show.Endpoint{}, errInboxElsewhere
	}
	if n.Imported {
		n.Settings = n.Settings.Migrating()
	}
	e, err := Create(ctx, q, ed.Keys, tenant, n)
	if err != nil {
		return e, err
	}
	return e, ed.auditNew(ctx, q, e, n.Imported)
}

var errInboxElsewhere = fault.InvalidField("kind", "kind_unknown", "Create a test inbox with POST /inboxes, which assigns its URL.")

func (ed Editor) auditNew(ctx context.Context, q *sql.Queries, e show.Endpoint, imported bool) error {
	return ed.audit(ctx, q, e.Tenant, e.ID, "endpoint.create", map[string]any{
		"kind":            e.Settings.Kind,
		"url":             e.MaskedURL(),
		"event_types":     e.Settings.EventTypes,
		"format":          e.Settings.Format,
		"imported_secret": imported,
		"status":          e.Status,
	})
}

// Adopt makes the endpoint of a row that Insert stored a part of the tenant's routes, and records its creation.
func (ed Editor) Adopt(ctx context.Context, q *sql.Queries, row sql.Endpoint, imported bool) (show.Endpoint, error) {
	settings, err := OpenSettings(row, ed.Keys)
	if err != nil {
		return show.Endpoint{}, err
	}
	if err := routeNew(ctx, q, ed.Keys, row, settings); err != nil {
		return show.Endpoint{}, err
	}
	e, err := complete(ctx, q, ed.Keys, row)
	if err != nil {
		return e, err
	}
	return e, ed.auditNew(ctx, q, e, imported)
}

// Edit is Change with an entry in the audit log that lists the changes. A change without effect has no entry.
func (ed Editor) Edit(
	ctx context.Context,
	q *sql.Queries,
	tenant, endpointID id.UUID,
	change func(endpoint.Settings) (endpoint.Settings, error),
) (show.Endpoint, error) {
	before, after, err := Change(ctx, q, ed.Keys, tenant, endpointID, change)
	if err != nil {
		return after, err
	}
	changed := after.Settings.Diff(before.Settings)
	if len(changed) == 0 {
		return after, nil
	}
	details := map[string]any{"changed": changed}
	if after.Settings.URL != before.Settings.URL {
		details["url"] = []string{before.MaskedURL(), after.MaskedURL()}
	}
	return after, ed.audit(ctx, q, tenant, endpointID, "endpoint.update", details)
}

// Remove is Remove with an entry in the audit log.
func (ed Editor) Remove(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	e, err := Remove(ctx, q, tenant, endpointID)
	if err != nil {
		return err
	}
	return ed.audit(ctx, q, tenant, endpointID, "endpoint.delete", map[string]any{"url": egress.Mask(e.URL), "status": e.Status})
}

// Tested records that a test event was sent to an endpoint.
func (ed Editor) Tested(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, event id.UUID, kind string) error {
	return ed.audit(ctx, q, tenant, endpointID, "endpoint.test", map[string]string{"event": id.Event.Format(event), "type": kind})
}

// Change replaces an endpoint's settings by the result of change, which also validates them. A new URL makes the
// endpoint unverified and sends a verification. A new format is rejected if the live secrets can't sign in it. before
// is the endpoint before the change.
func Change(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant, endpointID id.UUID,
	change func(endpoint.Settings) (endpoint.Settings, error),
) (before, after show.Endpoint, err error) {
	if _, err := q.LockTenant(ctx, tenant); err != nil {
		return before, after, err
	}
	row, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return before, after, err
	}
	if row.Kind == string(endpoint.Listen) {
		return before, after, endpoint.ErrListener
	}
	if before, err = complete(ctx, q, ring, row); err != nil {
		return before, after, err
	}
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
	if to.Format != before.Settings.Format || !reflect.DeepEqual(to.Shape, before.Settings.Shape) || to.Moved(before.Settings) {
		if err := q.ForgetSecretChecks(ctx, tenant, endpointID); err != nil {
			return before, after, err
		}
	}
	row, err = storeChange(ctx, q, ring, before, to)
	if err != nil {
		return before, after, err
	}
	after, err = complete(ctx, q, ring, row)
	return before, after, err
}

// storeChange stores other settings of an endpoint and does what follows from them.
func storeChange(ctx context.Context, q *sql.Queries, ring *seal.Ring, before show.Endpoint, to endpoint.Settings) (sql.Endpoint, error) {
	tenant, endpointID := before.Tenant, before.ID
	row, err := q.StoreEndpoint(ctx, settingsRow(ring, tenant, endpointID, to))
	if err = externalInUse(err); err != nil {
		return row, err
	}
	if to.Public.Signed() {
		if err := ensureSigningKey(ctx, q, ring, tenant); err != nil {
			return row, err
		}
	}
	if to.Moved(before.Settings) {
		if row, err = q.UnverifyEndpoint(ctx, tenant, endpointID); err != nil {
			return row, err
		}
		if _, err := requestVerification(ctx, q, tenant, endpointID); err != nil {
			return row, err
		}
	}
	var version int64
	switch {
	case !to.Routes(before.Settings) || row.Status != string(before.Status):
		version, err = newRoutes(ctx, q, row, false)
	case !to.Sends(before.Settings):
		version, err = q.BumpRouting(ctx, tenant)
	}
	if err == nil && !sameTransformation(to, before.Settings) {
		if err = keepTransformation(ctx, q, ring, row, version, to.Transformation); err == nil {
			err = q.NoteEdit(ctx, tenant, endpointID)
		}
	}
	if err != nil {
		return row, err
	}
	if before.Settings.CircuitBreaker && !to.CircuitBreaker {
		if err := closeBreaker(ctx, q, tenant, endpointID); err != nil {
			return row, err
		}
	}
	return row, holdLane(ctx, q, row)
}

// closeBreaker resumes an endpoint whose breaker was switched off: what waited behind it is sent.
func closeBreaker(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	n, err := q.CloseBreaker(ctx, tenant, endpointID)
	if err != nil || n == 0 {
		return err
	}
	return q.ReleaseBacklogs(ctx, []id.UUID{endpointID})
}

// checkSecrets reports whether all live secrets can sign in a format.
func checkSecrets(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID, w signature.Wire) error {
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
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
	e, err := q.LockEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return sql.Endpoint{}, err
	}
	if err := reroute(ctx, q, e, true); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.ForgetVariables(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteEndpoint(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DropSecrets(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.SupersedeVerifications(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteSubscription(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if endpoint.Kind(e.Kind) == endpoint.Inbox {
		if err := removeInbox(ctx, q, tenant, endpointID); err != nil {
			return sql.Endpoint{}, err
		}
	}
	if err := q.ForgetWarnings(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if err := q.DeleteLane(ctx, tenant, endpointID); err != nil {
		return sql.Endpoint{}, err
	}
	if endpoint.Kind(e.Kind).Pulls() {
		if err := removeConsumers(ctx, q, tenant, endpointID); err != nil {
			return sql.Endpoint{}, err
		}
	}
	if err := q.ForgetListener(ctx, tenant, endpointID); err != nil {
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
	if _, err := q.ClearInbox(ctx, tenant, endpointID); err != nil {
		return err
	}
	return q.DropInbox(ctx, tenant, endpointID)
}

// externalInUse rejects an external id of another endpoint of the tenant.
func externalInUse(err error) error {
	if !fault.Is(db.Translate(err), "already_exists") {
		return err
	}
	return fault.New(fault.Conflict, "external_id_in_use", "Another endpoint of this tenant has this external id. Choose another id, or change that endpoint's id first.")
}

// removeConsumers ends the consumers of a feed with their tokens.
func removeConsumers(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) error {
	if err := q.RevokeConsumerKeys(ctx, tenant, endpointID); err != nil {
		return err
	}
	if err := q.ForgetConsumers(ctx, tenant, endpointID); err != nil {
		return err
	}
	return q.BumpKeysRevision(ctx)
}
