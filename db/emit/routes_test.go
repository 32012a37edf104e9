package emit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// Endpoints are created while events are emitted, through two processes that do not notify each other. After the
// acknowledgment of an endpoint its later events are delivered, and after the acknowledgment of its deletion none is.
func TestAnEndpointThatWasAcknowledgedBeforeAnEventIsNeverMissed(t *testing.T) {
	t.Parallel()
	const endpointCount = 60
	h := newHouse(t)
	tenant := h.tenant()
	second, _ := h.committer(open(t, h.url))
	var mu sync.Mutex
	var known, gone []id.UUID // in the order of their acknowledgement
	type emitted struct {
		id          id.UUID
		known, gone int // this many endpoints were known, and deleted, before the call
	}
	var events []emitted
	stop := make(chan struct{})
	var emitters, creators sync.WaitGroup
	for i := range 4 {
		emitters.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				e := emitted{known: len(known), gone: len(gone)}
				mu.Unlock()
				r := one([]*Committer{h.commit, second}[i%2], tenant, posted(1, ""))
				if r.Err != nil {
					t.Error(r.Err)
					return
				}
				e.id = r.ID
				mu.Lock()
				events = append(events, e)
				mu.Unlock()
			}
		})
	}
	creators.Go(func() {
		for range endpointCount {
			ep := h.endpoint(tenant, nil)
			mu.Lock()
			known = append(known, ep)
			have := len(events)
			mu.Unlock()
			// If changes are fast, they wait for the events that must come between them.
			eventually(t, 20*time.Second, "events come between the changes", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(events) >= have+2
			})
		}
	})
	creators.Go(func() {
		for range endpointCount / 6 {
			var victim id.UUID
			for victim.IsZero() {
				mu.Lock()
				if n := len(known); n > 0 && !slices.Contains(gone, known[n-1]) {
					victim = known[n-1]
				}
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
				_, err := endpoints.Remove(t.Context(), q, tenant, victim)
				return err
			}); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			gone = append(gone, victim)
			mu.Unlock()
		}
	})
	creators.Wait()
	close(stop)
	emitters.Wait()
	got := map[id.UUID]map[id.UUID]bool{}
	rows, err := h.sql.Query(t.Context(), "SELECT event_id, endpoint_id FROM deliveries")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var event, ep [16]byte
		if err := rows.Scan(&event, &ep); err != nil {
			t.Fatal(err)
		}
		if got[event] == nil {
			got[event] = map[id.UUID]bool{}
		}
		got[event][ep] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	missed, orphaned, between := 0, 0, 0
	for _, e := range events {
		for _, ep := range known[:e.known] {
			if !got[e.id][ep] && !slices.Contains(gone, ep) {
				missed++
			}
		}
		for _, ep := range gone[:e.gone] {
			if got[e.id][ep] {
				orphaned++
			}
		}
		if e.known > 0 && e.known < endpointCount {
			between++
		}
	}
	if missed > 0 || orphaned > 0 {
		t.Errorf("%d deliveries are missing and %d go to deleted endpoints, of %d events", missed, orphaned, len(events))
	}
	if between < endpointCount {
		t.Errorf("only %d events came between the changes: the test proves little", between)
	}
	h.balanced()
}

func TestASuspendedTenantCantEmit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	set := func(state account.TenantState) {
		t.Helper()
		if _, err := accounts.SetTenantState(t.Context(), h.db, tenant, state, "test", db.Author{Kind: "command"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if r := one(h.commit, tenant, posted(1, "")); r.Err != nil {
			t.Errorf("active: %v", r.Err)
		}
		set("suspended")
		if r := one(h.commit, tenant, posted(2, "")); code(r.Err) != "tenant_suspended" {
			t.Errorf("suspended: %+v", r)
		}
		if r := one(h.commit, other, posted(3, "")); r.Err != nil {
			t.Errorf("another tenant: %v", r.Err)
		}
		set("active")
	}
	if r := one(h.commit, db.NewID(), posted(4, "")); code(r.Err) != "not_found" {
		t.Errorf("a tenant that does not exist: %+v", r)
	}
	if n := h.count("SELECT count(*) FROM events"); n != 4 {
		t.Errorf("%d events, want 4", n)
	}
}

func TestAStrictTenantAcceptsTheTypesOfItsCatalogue(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	ep := h.endpoint(tenant, nil)
	strict := func(on bool) {
		t.Helper()
		if err := h.db.Tenant(t.Context(), tenant, func(q *sql.Queries) error {
			_, err := accounts.ChangeTenant(t.Context(), q, tenant, accounts.TenantChange{StrictTypes: &on}, db.Author{Kind: "command"})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if r := one(h.commit, tenant, posted(1, "")); r.Err != nil {
		t.Errorf("not strict: %v", r.Err)
	}
	strict(true)
	mixed := func() []Result {
		other := posted(3, "")
		other.Emission.Type = "order.other"
		return h.commit.Emit(t.Context(), tenant, []Item{posted(2, ""), other})
	}
	for _, r := range mixed() {
		if code(r.Err) != "unknown_event_type" {
			t.Errorf("no type is known: %+v", r)
		}
	}
	h.exec("INSERT INTO event_types (tenant_id, name) VALUES ($1, 'order.completed')", tenant)
	h.exec("UPDATE tenants SET routing_version = routing_version + 1 WHERE id = $1", tenant)
	if r := mixed(); r[0].Err != nil || r[0].Deliveries != 1 || code(r[1].Err) != "unknown_event_type" {
		t.Errorf("one type is known: %+v", r)
	}
	// A test event is not an event of the catalog.
	test := posted(4, "")
	test.Emission.Type, test.Only = "posthorn.test", &ep
	if r := one(h.commit, tenant, test); r.Err != nil || r.Deliveries != 1 {
		t.Errorf("test send: %+v", r)
	}
	strict(false)
	if r := mixed(); r[0].Err != nil || r[1].Err != nil {
		t.Errorf("not strict any more: %+v", r)
	}
}

func TestATestSendGoesToItsEndpointAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, other := h.tenant(), h.tenant()
	ep := h.endpoint(tenant, func(s *endpoint.Settings) { s.EventTypes = []string{"never.this"} })
	h.endpoint(tenant, nil)
	foreign := h.endpoint(other, nil)
	it := posted(1, "")
	it.Only = &ep
	r := one(h.commit, tenant, it)
	if r.Err != nil || r.Deliveries != 1 || r.DeliveryID.IsZero() {
		t.Fatalf("%+v", r)
	}
	if n := h.count("SELECT count(*) FROM deliveries WHERE id = $1 AND endpoint_id = $2", r.DeliveryID, ep); n != 1 {
		t.Error("the delivery that the answer names is not the endpoint's")
	}
	for _, ep := range []id.UUID{foreign, db.NewID()} {
		it.Only = &ep
		if r := one(h.commit, tenant, it); code(r.Err) != "not_found" {
			t.Errorf("to an endpoint that is not the tenant's: %+v", r)
		}
	}
	h.balanced()
}

func TestEventsAreRoutedByTypeChannelAndFilter(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	names := map[id.UUID]string{}
	for name, change := range map[string]func(*endpoint.Settings){
		"all":     func(*endpoint.Settings) {},
		"orders":  func(s *endpoint.Settings) { s.EventTypes = []string{"order.*"} },
		"user":    func(s *endpoint.Settings) { s.EventTypes = []string{"user.created"} },
		"channel": func(s *endpoint.Settings) { s.Channels = []string{"north"} },
		"seven":   func(s *endpoint.Settings) { s.Filter = `"data.n == 7"` },
		"plain":   func(s *endpoint.Settings) { s.Filter = `{"data.n": 7}` },
		"broken":  func(s *endpoint.Settings) { s.Filter = `"no such thing("` }, // of another version of the language, say
	} {
		names[h.endpoint(tenant, change)] = name
	}
	for _, tt := range []struct {
		typ, channel string
		n            int
		want         []string
	}{
		{"order.completed", "", 1, []string{"all", "orders"}},
		{"user.created", "north", 1, []string{"all", "channel", "user"}},
		{"order.completed", "south", 7, []string{"all", "orders", "seven"}},
	} {
		it := posted(tt.n, "")
		it.Emission.Type = tt.typ
		if tt.channel != "" {
			it.Emission.Channels = []string{tt.channel}
		}
		r := one(h.commit, tenant, it)
		rows, err := h.sql.Query(t.Context(), "SELECT endpoint_id FROM deliveries WHERE event_id = $1", [16]byte(r.ID))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rows.Next() {
			var ep [16]byte
			if err := rows.Scan(&ep); err != nil {
				t.Fatal(err)
			}
			if name := names[ep]; name != "plain" { // what an object compares is the filter's own affair
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if r.Err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s on %q with %d: %v %v, want %v", tt.typ, tt.channel, tt.n, got, r.Err, tt.want)
		}
	}
	h.balanced()
}

func TestACommitSaysWhoHasNewRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	eps := []id.UUID{h.endpoint(tenant, nil), h.endpoint(tenant, nil)}
	received := make(chan []id.UUID, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	var once sync.Once
	go db.Listen(ctx, h.url, []string{db.ChannelWake}, func() { once.Do(func() { close(ready) }) }, func(_, payload string) {
		list, _, again := db.ParseWake(payload)
		if again {
			t.Error("new rows are announced as old ones")
		}
		received <- list
	})
	<-ready
	later := posted(9, "")
	later.Emission.DeliverAt = time.Now().Add(time.Hour)
	for i, r := range h.commit.Emit(t.Context(), tenant, []Item{posted(1, ""), posted(2, ""), later}) {
		if r.Err != nil {
			t.Fatal(i, r.Err)
		}
	}
	named := map[id.UUID]bool{}
	for len(named) < 2 {
		select {
		case list := <-received:
			for _, ep := range list {
				named[ep] = true
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("only %v were announced", named)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var told Batch
	for _, b := range h.told {
		told.Events = append(told.Events, b.Events...)
		told.Endpoints = append(told.Endpoints, b.Endpoints...)
	}
	slices.SortFunc(eps, id.UUID.Compare)
	slices.SortFunc(told.Endpoints, id.UUID.Compare)
	if len(told.Events) != 2 || !slices.Equal(told.Endpoints, eps) {
		t.Errorf("the worker of this process is told of %d events and endpoints %v, want 2 and each endpoint once", len(told.Events), told.Endpoints)
	}
	if n := h.count("SELECT count(*) FROM queue WHERE state = 3 AND due_at > now()"); n != 2 {
		t.Errorf("%d deliveries are deferred, want 2", n)
	}
}

func TestRowsAreNumberedInTheOrderOfTheirRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	h.endpoint(tenant, func(s *endpoint.Settings) { s.Ordering = "key" })
	h.endpoint(tenant, func(s *endpoint.Settings) { s.Ordering = "strict" })
	h.endpoint(tenant, nil)
	var emitted atomic.Int64
	var all sync.WaitGroup
	for g := range 5 {
		all.Go(func() {
			for range 10 {
				items := make([]Item, 20)
				for i := range items {
					items[i] = posted(i, "")
					items[i].Emission.Key = fmt.Sprintf("k%d", g)
				}
				for _, r := range h.commit.Emit(t.Context(), tenant, items) {
					if r.Err != nil {
						t.Error(r.Err)
					}
				}
				emitted.Add(20)
			}
		})
	}
	all.Wait()
	// Ids grow in the order of emission within a request, and requests of one caller follow each other.
	if n := h.count(`SELECT count(*) FROM (SELECT q.seq, q.event_id, lag(q.event_id) OVER (PARTITION BY q.endpoint_id, e.key ORDER BY q.seq) AS before
		FROM queue q JOIN events e ON e.id = q.event_id) s WHERE s.before > s.event_id`); n != 0 {
		t.Errorf("%d rows stand before an older event of their key", n)
	}
	for _, tt := range []struct {
		where string
		want  int64
	}{
		{"state = 2 AND order_key LIKE 'k_'", emitted.Load()},
		{"state = 2 AND order_key = '*'", emitted.Load()},
		{"state = 0 AND order_key IS NULL", emitted.Load()},
	} {
		if n := h.count("SELECT count(*) FROM queue WHERE " + tt.where); int64(n) != tt.want {
			t.Errorf("%d rows where %s, want %d", n, tt.where, tt.want)
		}
	}
	h.balanced()
}

// The deliveries that are made with an event have its moment, by which they are found, and the order of the fan-out. An
// event whose id was given can be of a day that is closed.
func TestADeliveryHasTheMomentOfItsEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	for range 3 {
		h.endpoint(tenant, nil)
	}
	r := one(h.commit, tenant, posted(1, ""))
	if r.Err != nil || r.Deliveries != 3 {
		t.Fatalf("%+v", r)
	}
	if n := h.count("SELECT count(*) FROM deliveries d JOIN events e ON e.id = d.event_id AND e.created_at = d.created_at WHERE e.id = $1", r.ID); n != 3 {
		t.Errorf("%d of 3 deliveries have the moment of their event", n)
	}
	if n := h.count("SELECT count(DISTINCT left(id::text, 23)) FROM deliveries WHERE event_id = $1 AND left(id::text, 18) = left(event_id::text, 18)", r.ID); n != 3 {
		t.Errorf("%d numbers beside the event's id", n)
	}
	given := posted(2, "")
	given.ID = id.New(time.Now().Add(-time.Hour), [10]byte{1})
	if r := one(h.commit, tenant, given); r.Err != nil || r.Deliveries != 3 {
		t.Fatalf("%+v", r)
	}
	if n := h.count("SELECT count(*) FROM deliveries WHERE event_id = $1 AND created_at > now() - interval '1 minute'", given.ID); n != 3 {
		t.Errorf("%d of 3 deliveries of an older event are of now", n)
	}
}

// gate is the context of a request whose check is blocked: it says whether it has ended only when it is opened.
type gate struct {
	context.Context
	passes  atomic.Int64 // before it closes
	closed  chan struct{}
	reached chan struct{} // somebody waits
	once    sync.Once
}

func (g *gate) Err() error {
	if g.passes.Add(-1) < 0 {
		g.once.Do(func() { close(g.reached) })
		<-g.closed
	}
	return g.Context.Err()
}

// A tenant's routes change between a request and its commit, and routing its event again takes long: the other tenants'
// events are stored during that time, and those of the tenant's other requests too.
func TestATenantWhoseEventIsRoutedAgainHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant, neighbor := h.tenant(), h.tenant()
	for _, of := range []id.UUID{tenant, neighbor} {
		if r := one(h.commit, of, posted(1, "")); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	h.endpoint(tenant, nil)
	g := &gate{Context: t.Context(), closed: make(chan struct{}), reached: make(chan struct{})}
	g.passes.Store(4) // the routing before the commit
	stuck := make(chan []Result, 1)
	go func() { stuck <- h.commit.Emit(g, tenant, []Item{posted(2, ""), posted(3, "k")}) }()
	<-g.reached
	for range 3 {
		for _, of := range []id.UUID{neighbor, tenant} {
			if r := one(h.commit, of, posted(4, "")); r.Err != nil || r.Deliveries != map[id.UUID]int{tenant: 1}[of] {
				t.Errorf("while another request is routed: %+v", r)
			}
		}
	}
	select {
	case r := <-stuck:
		t.Fatalf("the request was not blocked: %+v", r)
	default:
	}
	close(g.closed)
	for i, r := range <-stuck {
		if r.Err != nil || r.Deliveries != 1 {
			t.Errorf("item %d went by routes that are no longer the database's: %+v", i, r)
		}
	}
	h.balanced()
}

// A check ends with its request, also in a batch.
func TestARequestThatEndsChecksNoMoreItems(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tenant := h.tenant()
	if r := one(h.commit, tenant, posted(1, "")); r.Err != nil {
		t.Fatal(r.Err)
	}
	ctx, end := context.WithCancel(t.Context())
	g := &gate{Context: ctx, closed: make(chan struct{}), reached: make(chan struct{})}
	g.passes.Store(10)
	items := make([]Item, 30)
	for i := range items {
		items[i] = posted(i, "")
	}
	all := make(chan []Result, 1)
	go func() { all <- h.commit.Emit(g, tenant, items) }()
	<-g.reached // in the eleventh item
	end()
	close(g.closed)
	for i, r := range <-all {
		if code(r.Err) != "timeout" {
			t.Errorf("item %d: %+v", i, r)
		}
	}
	if n := h.count("SELECT count(*) FROM events"); n != 1 {
		t.Errorf("%d events are stored, want 1", n)
	}
	if asked := -g.passes.Load(); asked > 5 {
		t.Errorf("%d more questions were asked", asked)
	}
}
