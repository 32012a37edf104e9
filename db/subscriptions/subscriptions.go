// Package subscriptions stores the subscriptions of AI clients to events (docs/mcp.md). A subscription is an endpoint
// with a principal, an event type, arguments, and an end.
package subscriptions

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

// Store changes subscriptions of a tenant on behalf of an author.
type Store struct {
	Tenant id.UUID
	Keys   *seal.Ring
	By     db.Author
	Now    time.Time
}

// Wanted is what a client asks for, validated.
type Wanted struct {
	ID, Principal, EventType, Arguments string
	Settings                            endpoint.Settings
	Secret                              string
	Life                                time.Duration
	From                                *feed.Place // where deliveries of a new subscription begin; nil: now
	Floor                               time.Time   // but not before; zero: any time
	MessageID                           bool        // its host wants the message's id as webhook-id
}

// Granted is what a client gets.
type Granted struct {
	show.Subscription
	Cursor    string
	Truncated bool
	Refreshed bool // it was there before
	Suspended bool // and nothing was sent to it
}

// Find finds a subscription by its id, or returns fault.ErrNotFound.
func (s Store) Find(ctx context.Context, q *sql.Queries, subscription string) (show.Subscription, error) {
	if !mcp.IsID(subscription) {
		return show.Subscription{}, fault.ErrNotFound
	}
	row, err := q.GetSubscription(ctx, s.Tenant, subscription)
	if err != nil {
		return show.Subscription{}, err
	}
	return s.complete(ctx, q, row)
}

func (s Store) complete(ctx context.Context, q *sql.Queries, row sql.Subscription) (show.Subscription, error) {
	e, err := endpoints.Read(ctx, q, s.Keys, s.Tenant, row.EndpointID)
	return show.Subscription{
		ID:          row.ID,
		Principal:   row.Principal,
		EventType:   row.EventType,
		Arguments:   json.RawMessage(row.Arguments),
		Endpoint:    e,
		ExpiresAt:   row.ExpiresAt,
		RefreshedAt: row.RefreshedAt,
		CreatedAt:   row.CreatedAt,
	}, err
}

// Trusted reports whether the receiver of a subscription has proved that it knows a secret: it is active, and its
// newest secret is this one. Then it needs no new challenge.
func (s Store) Trusted(ctx context.Context, q *sql.Queries, subscription, secret string) (bool, error) {
	found, err := s.Find(ctx, q, subscription)
	if db.IsMissing(err) {
		return false, nil
	} else if err != nil || found.Endpoint.Status != endpoint.Active || !found.ExpiresAt.After(s.Now) {
		return false, err
	}
	all, err := s.secrets(ctx, q, found.Endpoint.ID)
	return len(all) > 0 && all[0] == secret, err
}

// secrets are the live secrets of an endpoint, the newest first.
func (s Store) secrets(ctx context.Context, q *sql.Queries, endpointID id.UUID) ([]string, error) {
	live, err := q.LiveSecrets(ctx, s.Tenant, endpointID)
	texts := make([]string, len(live))
	for i, one := range live {
		text, err := s.Keys.Open(one.Sealed, s.Tenant, endpointID)
		if err != nil {
			return nil, db.Unopened(err)
		}
		texts[i] = string(text)
	}
	return texts, err
}

// Subscribe stores a subscription, or refreshes it. Its receiver has been verified.
func (s Store) Subscribe(ctx context.Context, q *sql.Queries, w Wanted) (Granted, error) {
	if _, err := q.LockTenant(ctx, s.Tenant); err != nil {
		return Granted{}, err
	}
	row, err := q.GetSubscription(ctx, s.Tenant, w.ID)
	switch {
	case err == nil && row.ExpiresAt.After(s.Now):
		return s.refresh(ctx, q, row, w)
	case err == nil: // it has lapsed, and the job has not come yet
		if err := s.remove(ctx, q, row.EndpointID, "It was not refreshed in time."); err != nil {
			return Granted{}, err
		}
	case !db.IsMissing(err):
		return Granted{}, err
	}
	return s.create(ctx, q, w)
}

// Limits says whether a principal can have one more subscription.
func limits(count sql.CountSubscriptionsRow) error {
	var most int
	switch {
	case count.Own >= mcp.MaxPerPrincipal:
		most = mcp.MaxPerPrincipal
	case count.Total >= mcp.MaxPerTenant:
		most = mcp.MaxPerTenant
	default:
		return nil
	}
	return &LimitError{Most: most}
}

// LimitError says that there is no room for one more subscription.
type LimitError struct{ Most int }

func (e *LimitError) Error() string { return "The limit of subscriptions is reached." }

func (s Store) create(ctx context.Context, q *sql.Queries, w Wanted) (g Granted, err error) {
	count, err := q.CountSubscriptions(ctx, w.Principal, s.Tenant)
	if err == nil {
		err = limits(count)
	}
	if err != nil {
		return g, err
	}
	secret, err := endpoint.SecretRequest{Text: w.Secret}.Secret(w.Settings.Wire(), false)
	if err != nil {
		return g, err
	}
	editor := endpoints.Editor{Keys: s.Keys, By: s.By}
	e, err := editor.Create(ctx, q, s.Tenant, endpoints.New{
		Settings: w.Settings,
		Secret:   secret,
		Imported: true,
		Limit:    mcp.MaxPerTenant + 1_000_000, // subscriptions have a limit of their own
		Start:    endpoints.Verified,
	})
	if err != nil {
		return g, err
	}
	// A client that is away is told so when it refreshes. The tenant's members are not woken for it.
	if _, err := q.MuteEndpoint(ctx, sql.MuteEndpointParams{
		MutedAt:    &s.Now,
		MutedUntil: new(s.Now.AddDate(100, 0, 0)),
		TenantID:   s.Tenant,
		ID:         e.ID,
	}); err != nil {
		return g, err
	}
	end, err := feeds.End(ctx, q, s.Tenant)
	if err != nil {
		return g, err
	}
	g.Cursor = end.String()
	if w.From != nil {
		g.Cursor = w.From.String()
		if g.Truncated, err = feeds.StartAfter(ctx, q, s.Tenant, e.ID, *w.From, w.Floor); err != nil {
			return g, err
		}
	}
	if err := q.InsertSubscription(ctx, sql.InsertSubscriptionParams{
		TenantID:   s.Tenant,
		ID:         w.ID,
		EndpointID: e.ID,
		Principal:  w.Principal,
		EventType:  w.EventType,
		Arguments:  w.Arguments,
		Cursor:     g.Cursor,
		ExpiresAt:  s.Now.Add(w.Life),
	}); err != nil {
		return g, err
	}
	g.Subscription, err = s.Find(ctx, q, w.ID)
	return g, err
}

// refresh extends a subscription, rotates its secret if it is another one, and lets it be sent to again.
func (s Store) refresh(ctx context.Context, q *sql.Queries, row sql.Subscription, w Wanted) (g Granted, err error) {
	g.Refreshed = true
	end, err := feeds.End(ctx, q, s.Tenant) // before what waits is counted, so that nothing is between the two
	if err != nil {
		return g, err
	}
	before, err := s.complete(ctx, q, row)
	if err != nil {
		return g, err
	}
	e := before.Endpoint
	waiting, err := q.CountWaiting(ctx, sql.CountWaitingParams{TenantID: s.Tenant, EndpointID: e.ID, Limit: 1})
	if err != nil {
		return g, err
	}
	if g.Cursor = row.Cursor; waiting == 0 && e.StartingAt.IsZero() {
		g.Cursor = end.String()
	}
	live, err := s.secrets(ctx, q, e.ID)
	if err != nil {
		return g, err
	}
	editor := endpoints.Editor{Keys: s.Keys, By: s.By}
	if len(live) == 0 || live[0] != w.Secret {
		if err := s.rotate(ctx, q, e.ID, w.Secret); err != nil {
			return g, err
		}
	}
	g.Truncated = row.Missed
	if g.Suspended = e.Status != endpoint.Active; e.Status == endpoint.Disabled {
		// A successful challenge has shown that the receiver wants events. What a member paused stays paused.
		if _, _, _, err := editor.SetState(ctx, q, s.Tenant, e.ID, "endpoint.resume", activate); err != nil {
			return g, err
		}
	}
	if err := q.RefreshSubscription(ctx, sql.RefreshSubscriptionParams{
		ExpiresAt: s.Now.Add(w.Life),
		Cursor:    g.Cursor,
		TenantID:  s.Tenant,
		ID:        w.ID,
	}); err != nil {
		return g, err
	}
	g.Subscription, err = s.Find(ctx, q, w.ID)
	if g.Suspended {
		g.Endpoint.EndpointFacts = e.EndpointFacts // what was wrong is told once more
	}
	return g, err
}

// rotate adds the secret that the client has chosen.
func (s Store) rotate(ctx context.Context, q *sql.Queries, endpointID id.UUID, text string) error {
	added, err := endpoints.RotateSecret(ctx, q, s.Keys, s.Tenant, endpointID, endpoints.Rotation{
		Overlap: mcp.SecretOverlap,
		Known:   true,
		Choose: func(w signature.Wire, _ bool) (endpoint.Secret, error) {
			return endpoint.SecretRequest{Text: text}.Secret(w, false)
		},
	})
	if err != nil {
		return err
	}
	return db.Audit(ctx, q, s.By, db.Audited{
		Tenant:  &s.Tenant,
		Action:  "endpoint.rotate_secret",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Details: map[string]any{"secret": id.Secret.Format(added.ID), "overlap_seconds": mcp.SecretOverlap, "imported": true},
	})
}

func activate(endpoint.Status) (endpoint.Change, error) {
	return endpoint.Change{To: endpoint.Active}, nil
}

// List returns a page of subscriptions. Positions are the ids of their endpoints. An empty principal is every one.
func (s Store) List(ctx context.Context, q *sql.Queries, principal string, r show.Range) (show.Page[show.Subscription], error) {
	rows, err := q.ListSubscriptions(ctx, sql.ListSubscriptionsParams{
		TenantID:  s.Tenant,
		Principal: principal,
		Newest:    !r.Ascending,
		After:     r.Edge(),
		Limit:     int32(r.Limit + 1),
	})
	if err != nil {
		return show.Page[show.Subscription]{}, err
	}
	page := show.Cut(rows, r.Limit, func(row sql.Subscription) []byte { return row.EndpointID[:] })
	out := show.Page[show.Subscription]{Rows: make([]show.Subscription, 0, len(page.Rows)), Next: page.Next}
	for _, row := range page.Rows {
		one, err := s.complete(ctx, q, row)
		if db.IsMissing(err) {
			continue // it ended after the rows were read
		} else if err != nil {
			return out, err
		}
		out.Rows = append(out.Rows, one)
	}
	return out, nil
}

// Remove ends a subscription, with its endpoint. The facts are what is needed to tell its client.
func (s Store) Remove(ctx context.Context, q *sql.Queries, subscription string) (f endpoints.Facts, err error) {
	found, err := s.Find(ctx, q, subscription)
	if err != nil {
		return f, err
	}
	if f, err = endpoints.ToTest(ctx, q, s.Keys, s.Tenant, found.Endpoint.ID); err != nil {
		return f, err
	}
	return f, s.remove(ctx, q, found.Endpoint.ID, "")
}

func (s Store) remove(ctx context.Context, q *sql.Queries, endpointID id.UUID, reason string) error {
	return endpoints.Editor{Keys: s.Keys, By: s.By.Because(reason)}.Remove(ctx, q, s.Tenant, endpointID)
}

// EndLapsed ends subscriptions that were not refreshed in time, and those whose receiver returned 410. It ends at most
// `most` of them, and returns how many.
func EndLapsed(ctx context.Context, d *db.DB, most int32) (n int, err error) {
	var rows []sql.EndedSubscriptionsRow
	if err := d.Worker(ctx, func(q *sql.Queries) (err error) {
		rows, err = q.EndedSubscriptions(ctx, delivery.DisableGone, most)
		return err
	}); err != nil {
		return 0, err
	}
	for _, row := range rows {
		s := Store{Tenant: row.TenantID, By: db.Author{Kind: "system"}}
		err := d.Tenant(ctx, row.TenantID, func(q *sql.Queries) error { return s.endLapsed(ctx, q, row.ID) })
		if err != nil && !db.IsNotFound(err) {
			return n, err
		}
		n++
	}
	return n, nil
}

// endLapsed ends a subscription, unless its client has refreshed it meanwhile.
func (s Store) endLapsed(ctx context.Context, q *sql.Queries, subscription string) error {
	if _, err := q.LockTenant(ctx, s.Tenant); err != nil {
		return err
	}
	row, err := q.GetSubscription(ctx, s.Tenant, subscription)
	if err != nil {
		return err
	}
	status, err := endpoints.Status(ctx, q, s.Tenant, row.EndpointID)
	switch {
	case err != nil:
		return err
	case status == endpoint.Disabled:
		return s.remove(ctx, q, row.EndpointID, "The receiver returned 410.")
	case row.ExpiresAt.Before(time.Now()):
		return s.remove(ctx, q, row.EndpointID, "The subscription was not refreshed in time.")
	}
	return nil
}

// Settings are the settings of the endpoint of a subscription, not checked.
func Settings(base endpoint.Settings, w Wanted, address, filter string) endpoint.Settings {
	s := base.Clone()
	s.Kind, s.URL, s.EventTypes, s.Filter = endpoint.HTTP, address, []string{w.EventType}, filter
	s.Description = "AI client of " + w.Principal
	s.SetFormat(signature.Standard)
	s.Prefix = signature.DefaultPrefix
	s.Shape = &signature.Shape{Body: signature.BodyMCP, MessageID: w.MessageID}
	s.RetryPolicy, s.RetryDelays = endpoint.Custom, mcp.Retries
	s.WhenHeld = endpoint.Hold
	s.Metadata = map[string]string{mcp.Metadata: w.ID, "mcp_principal": w.Principal}
	s.Headers = endpoint.Headers{mcp.SubscriptionHeader: {Value: w.ID}}
	return s
}
