package emit

import (
	"context"
	"slices"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/quota"
	"posthorn/domain/routing"
	"posthorn/domain/schema"
)

// routes is the in-memory routing table. Each entry belongs to one version. StoreEvents checks the version inside the
// transaction, so an entry can be arbitrarily old.
type routes struct {
	db      *db.DB
	mu      sync.RWMutex
	known   map[id.UUID]*tenantRoutes
	reading map[id.UUID]chan struct{} // closed when the read ends
}

type tenantRoutes struct {
	version   int64
	suspended bool
	moving    bool // to another home, within a moment
	strict    bool // only types of the catalog
	logged    bool // its events are entered in the log that feeds read
	starting  bool // an endpoint catches up: events are stored only if the routes stay until the commit
	limits    quota.Limits
	types     map[string]*catalogue.Checks
	compiled  catalogue.Compiled
	endpoints []endpointRoute
}

type endpointRoute struct {
	id       id.UUID
	ordering string
	listens  bool
	pulls    bool          // a feed: its consumers read the log, and it has no deliveries
	starting bool          // it catches up: a job reads the log for it
	expires  time.Duration // of events without a time of their own; 0: never
	routing.Route
}

// expiry is when a delivery of an event to the endpoint expires; nil: never. Seconds of the endpoint are counted from
// when the event can be delivered.
func (e *endpointRoute) expiry(it *item) *time.Time {
	if it.ExpiresAt != nil || e.expires == 0 {
		return it.ExpiresAt
	}
	from := it.CreatedAt
	if it.DeliverAt != nil {
		from = *it.DeliverAt
	}
	return new(from.Add(e.expires))
}

func newRoutes(d *db.DB) *routes {
	return &routes{db: d, known: map[id.UUID]*tenantRoutes{}, reading: map[id.UUID]chan struct{}{}}
}

func (r *routes) of(ctx context.Context, tenant id.UUID) (*tenantRoutes, error) {
	r.mu.RLock()
	t := r.known[tenant]
	r.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	return r.newer(ctx, tenant, -1)
}

// newer returns a tenant's routes of a later version than the given one. All requests of a tenant learn of a change at
// the same time: one of them reads the routes, and compiles the schemas, for all.
func (r *routes) newer(ctx context.Context, tenant id.UUID, than int64) (*tenantRoutes, error) {
	for {
		r.mu.Lock()
		if t := r.known[tenant]; t != nil && t.version > than {
			r.mu.Unlock()
			return t, nil
		}
		others := r.reading[tenant]
		if others == nil {
			done := make(chan struct{})
			r.reading[tenant] = done
			r.mu.Unlock()
			t, err := r.refresh(ctx, tenant)
			r.mu.Lock()
			delete(r.reading, tenant)
			r.mu.Unlock()
			close(done)
			return t, err
		}
		r.mu.Unlock()
		select {
		case <-others:
		case <-ctx.Done():
			return nil, errEnded(ctx)
		}
	}
}

// refresh reads a tenant's routes from the database. Of two concurrent reads the newer version is kept.
func (r *routes) refresh(ctx context.Context, tenant id.UUID) (*tenantRoutes, error) {
	r.mu.RLock()
	before := r.known[tenant]
	r.mu.RUnlock()
	var t *tenantRoutes
	err := r.db.Ingest(ctx, func(q *sql.Queries) (err error) {
		t, err = load(ctx, q, tenant, before)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if newer := r.known[tenant]; newer != nil && newer.version > t.version {
		return newer, nil
	}
	r.known[tenant] = t
	return t, nil
}

// load reads a tenant's routes; before are the previous ones, or nil.
func load(ctx context.Context, q *sql.Queries, tenant id.UUID, before *tenantRoutes) (*tenantRoutes, error) {
	rows, err := q.RoutingTenants(ctx, []id.UUID{tenant})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		// The tenant was here when the request's key was checked.
		left, err := q.HasLeft(ctx, tenant)
		switch {
		case err != nil:
			return nil, err
		case left:
			return nil, db.ErrMoving
		}
		return nil, fault.ErrNotFound
	}
	t := &tenantRoutes{
		version:   rows[0].RoutingVersion,
		suspended: rows[0].State == "suspended",
		moving:    rows[0].Moving,
		strict:    rows[0].StrictTypes,
	}
	t.limits = quota.Read(rows[0].Defaults, rows[0].Settings)
	if t.logged, err = isLogged(ctx, q, tenant, t.version); err != nil {
		return nil, err
	}
	if err := t.loadTypes(ctx, q, tenant, before); err != nil {
		return nil, err
	}
	endpoints, err := q.RoutingEndpoints(ctx, []id.UUID{tenant})
	if err != nil {
		return nil, err
	}
	known := before.byID()
	for _, e := range endpoints {
		rule := routing.Rule{
			EventTypes: e.EventTypes,
			Channels:   e.Channels,
			Status:     endpoint.Status(e.Status),
			Drops:      e.WhenHeld == endpoint.Drop,
		}
		if e.Filter != nil {
			rule.Filter = *e.Filter
		}
		if e.PayloadVersion != nil {
			rule.Version = *e.PayloadVersion
		}
		route := endpointRoute{id: e.ID, ordering: e.Ordering, listens: e.Kind == string(endpoint.Listen), pulls: endpoint.Kind(e.Kind).Pulls(), starting: e.Starting}
		if e.ExpiresAfterSeconds != nil {
			route.expires = time.Duration(*e.ExpiresAfterSeconds) * time.Second
		}
		t.starting = t.starting || e.Starting
		if same := known[e.ID]; same != nil {
			route.Route = same.Follow(rule)
		} else {
			route.Route = routing.Compile(rule)
		}
		t.endpoints = append(t.endpoints, route)
	}
	return t, nil
}

// isLogged reports whether events of a version of a tenant's routes are logged.
func isLogged(ctx context.Context, q *sql.Queries, tenant id.UUID, version int64) (bool, error) {
	l, err := q.LogOf(ctx, tenant)
	if db.IsNoRows(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if !l.Here {
		if err := q.RebaseLog(ctx, tenant); err != nil {
			return false, err
		}
	}
	return version >= l.SinceVersion, nil
}

// byID are the routes by their endpoints; t can be nil.
func (t *tenantRoutes) byID() map[id.UUID]*routing.Route {
	if t == nil {
		return nil
	}
	routes := make(map[id.UUID]*routing.Route, len(t.endpoints))
	for i := range t.endpoints {
		routes[t.endpoints[i].id] = &t.endpoints[i].Route
	}
	return routes
}

// loadTypes reads the catalog's rules for emissions. It reuses schemas that were compiled for the previous routes.
func (t *tenantRoutes) loadTypes(ctx context.Context, q *sql.Queries, tenant id.UUID, before *tenantRoutes) error {
	rows, err := q.RoutingTypes(ctx, []id.UUID{tenant}, t.strict)
	if err != nil {
		return err
	}
	var known catalogue.Compiled
	if before != nil {
		known = before.compiled
	}
	t.types, t.compiled = make(map[string]*catalogue.Checks, len(rows)), catalogue.Compiled{}
	for _, r := range rows {
		e := catalogue.Entry{Name: r.Name, Check: catalogue.Mode(r.SchemaCheck)}
		if r.Schema != nil {
			e.Schema = []byte(*r.Schema)
		}
		if e.Versions, err = catalogue.DecodeVersions(r.Versions); err != nil {
			return err
		}
		t.types[r.Name] = e.Checks(known, t.compiled)
	}
	return nil
}

// check validates an item against the catalog. An item that was checked against the same schema before is not checked
// again.
func (t *tenantRoutes) check(ctx context.Context, it *item) error {
	checks, known := t.types[it.Type]
	if t.strict && !known {
		return errUnknownType
	}
	s, enforce := checks.Of(it.payloadVersion())
	if s != it.schema {
		it.schema, it.result.Warnings = nil, nil
		if s != nil {
			found, err := s.Check(it.data(), func() bool { return ctx.Err() != nil })
			if err != nil {
				return errEnded(ctx)
			}
			it.schema, it.result.Warnings = s, found
		}
	}
	if enforce {
		if err := schema.Fault(it.result.Warnings); err != nil {
			return err
		}
	}
	unknown, refused := checks.Unknown(it.payloadVersion())
	if unknown && refused {
		return errUnknownVersion
	}
	if unknown && !slices.Contains(it.result.Warnings, UnknownVersion) {
		it.result.Warnings = append(slices.Clone(it.result.Warnings), UnknownVersion)
	}
	return nil
}

// UnknownVersion tells a producer that the type does not declare the version, as a warning or as an error.
var UnknownVersion = schema.Mismatch{
	Field:  "version",
	Detail: "The event type doesn't declare this version. Correct the version, or add it to the type.",
}

var (
	errSuspended = fault.New(
		fault.Forbidden,
		"tenant_suspended",
		"This tenant is suspended and can't emit events. Ask the operator of this platform to resume it.",
	)
	errUnknownVersion = fault.InvalidField(UnknownVersion.Field, "unknown_version", UnknownVersion.Detail)
	errUnknownType    = fault.InvalidField(
		"type",
		"unknown_event_type",
		"The tenant accepts only event types in its catalog, and this type isn't in it. Add the type, or correct its name.",
	)
)

// fanOut decides which endpoints an item goes to. It replaces the earlier decision. A tenant decides how long it takes:
// it runs in the goroutine of the request, and ends when the context ends.
func (t *tenantRoutes) fanOut(ctx context.Context, it *item) error {
	if ctx.Err() != nil {
		return errEnded(ctx)
	}
	it.version, it.Deliveries, it.Aside = t.version, nil, 0
	it.Logged, it.Guarded = t.logged && it.only == nil, t.starting
	if t.suspended {
		return errSuspended
	}
	if t.moving {
		return db.ErrMoving
	}
	if !filter.Own(it.Type) { // no rule of a tenant keeps Posthorn's own notices from it
		if err := t.limits.CheckPayload(len(it.data())); err != nil {
			return err
		}
		if it.only == nil {
			if err := t.check(ctx, it); err != nil {
				return err
			}
		}
	}
	var input *filter.Input
	for i := range t.endpoints {
		e := &t.endpoints[i]
		if it.only != nil {
			if e.id == *it.only && e.pulls {
				return endpoint.ErrFeed
			}
			if e.id == *it.only {
				it.Deliveries = append(it.Deliveries, queue.NewDelivery{ID: it.newDeliveryID(), EndpointID: e.id})
				return nil
			}
			continue
		}
		if e.pulls || e.starting {
			continue
		}
		if input == nil {
			input = filter.NewInput(it.Type, it.Data, it.Channels)
		}
		if matched, _, _ := e.Takes(input, it.payloadVersion()); matched {
			it.Deliveries = append(it.Deliveries, queue.NewDelivery{
				ID:         it.newDeliveryID(),
				EndpointID: e.id,
				OrderKey:   e.orderKey(it),
				ExpiresAt:  e.expiry(it),
			})
			if e.listens {
				it.Aside++
			}
		}
	}
	if it.only != nil {
		return fault.ErrNotFound
	}
	return nil
}

// newDeliveryID makes an id of the event's moment: the primary key then finds the deliveries of an event
// (docs/adr/0024). An event whose id was given can be of another day.
func (it *item) newDeliveryID() id.UUID {
	if it.given {
		return db.NewID()
	}
	return db.NewIDWithin(it.ID, len(it.Deliveries))
}

// payloadVersion is the version that the producer named; empty: none.
func (it *item) payloadVersion() string {
	if it.Version == nil {
		return ""
	}
	return *it.Version
}

func (e *endpointRoute) orderKey(it *item) string {
	switch {
	case e.ordering == "strict":
		return queue.StrictKey
	case e.ordering == "key" && it.Key != nil:
		return *it.Key
	}
	return ""
}
