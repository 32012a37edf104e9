package emit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// explained is a tenant whose endpoints change randomly between its events.
type explained struct {
	*house
	tenant    id.UUID
	random    *rand.Rand
	endpoints []id.UUID // that are not deleted
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// settings returns random settings.
func (x *explained) settings(s *endpoint.Settings) {
	s.EventTypes = pick(x.random, []string{"*"}, []string{"order.*"}, []string{"order.paid"}, []string{"user.*", "order.open"})
	s.Channels = pick(x.random, nil, nil, []string{"eu"}, []string{"eu", "us"})
	s.PayloadVersion = pick(x.random, "", "", "1", "2")
	s.Filter = pick(x.random, "", "", `"data.n > 5"`, `"data.deep.x == 1"`, `{"n":7}`, `"type == 'order.paid'"`, `"size(channels) > 0 && data.n < 5"`)
}

// change makes a random change of the endpoints.
func (x *explained) change() {
	x.t.Helper()
	if len(x.endpoints) < 3 || x.random.IntN(4) == 0 {
		x.endpoints = append(x.endpoints, x.endpoint(x.tenant, x.settings))
		return
	}
	at := x.random.IntN(len(x.endpoints))
	endpointID := x.endpoints[at]
	var err error
	switch x.random.IntN(5) {
	case 0:
		err = x.db.Tenant(x.t.Context(), x.tenant, func(q *sql.Queries) error {
			_, err := endpoints.Remove(x.t.Context(), q, x.tenant, endpointID)
			return err
		})
		x.endpoints = append(x.endpoints[:at], x.endpoints[at+1:]...)
	case 1:
		err = x.db.Tenant(x.t.Context(), x.tenant, func(q *sql.Queries) error {
			_, _, err := endpoints.Change(
				x.t.Context(),
				q,
				x.ring,
				x.tenant,
				endpointID,
				func(s endpoint.Settings) (endpoint.Settings, error) {
					x.settings(&s)
					return s, nil
				},
			)
			return err
		})
	case 2:
		x.exec(`INSERT INTO endpoint_health (endpoint_id, tenant_id, gone_at) VALUES ($1, $2, now())
			ON CONFLICT (endpoint_id) DO UPDATE SET gone_at = now()`, endpointID, x.tenant)
		_, err = endpoints.Assess(x.t.Context(), x.db, x.tenant, endpointID, time.Now())
	case 3:
		x.verify(endpointID)
	case 4:
		err = x.db.Tenant(x.t.Context(), x.tenant, func(q *sql.Queries) error {
			_, _, err := endpoints.SetState(
				x.t.Context(),
				q,
				x.ring,
				x.tenant,
				endpointID,
				func(s endpoint.Status) (endpoint.Change, error) {
					return endpoint.Change{To: map[endpoint.Status]endpoint.Status{
						endpoint.Active: endpoint.Paused,
						endpoint.Paused: endpoint.Active,
					}[s]}, nil
				},
			)
			return err
		})
		if err != nil { // it is neither active nor paused
			err = nil
		}
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// verify verifies an endpoint, if a verification was requested.
func (x *explained) verify(endpointID id.UUID) {
	x.t.Helper()
	var v [16]byte
	if err := x.sql.QueryRow(x.t.Context(), `SELECT id FROM verifications WHERE endpoint_id = $1 AND state = 'pending'`, [16]byte(endpointID)).Scan(&v); err != nil {
		return
	}
	if _, err := endpoints.OpenVerified(x.t.Context(), x.db, sql.PendingVerificationsRow{TenantID: x.tenant, EndpointID: endpointID, ID: id.UUID(v)}, 200, 0); err != nil {
		x.t.Fatal(err)
	}
}

// emit stores a random event, sometimes for one endpoint alone.
func (x *explained) emit() (stored id.UUID, direct bool) {
	x.t.Helper()
	it := Item{Emission: event.Emission{
		Type:     pick(x.random, "order.paid", "order.open", "user.made", "other"),
		Channels: pick(x.random, nil, []string{"eu"}, []string{"us"}, []string{"asia"}),
		Version:  pick(x.random, "", "1", "2"),
		Data:     pick(x.random, []byte(`{"n":7}`), []byte(`{"n":2,"deep":{"x":1}}`), []byte(`"text"`), fmt.Appendf(nil, `{"n":%d}`, x.random.IntN(10))),
	}}
	if len(x.endpoints) > 0 && x.random.IntN(6) == 0 {
		it.Only = &x.endpoints[x.random.IntN(len(x.endpoints))]
	}
	r := one(x.commit, x.tenant, it)
	if r.Err != nil {
		x.t.Fatal(r.Err)
	}
	return r.ID, it.Only != nil
}

func (x *explained) explain(event id.UUID) (read show.Routed) {
	x.t.Helper()
	err := x.db.Tenant(x.t.Context(), x.tenant, func(q *sql.Queries) (err error) {
		read, err = events.ReadRouting(x.t.Context(), q, x.tenant, event)
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return read
}

// Whatever the endpoints were when an event was emitted, and however they changed since: the explanation says "matched"
// exactly where a delivery was created. An event for one endpoint that no subscription matches is explained as sent on
// request.
func TestTheExplanationSaysMatchedExactlyWhereADeliveryWasMade(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := &explained{house: newHouse(t), random: rand.New(rand.NewPCG(seed, 0))}
	x.tenant = x.house.tenant()
	var events []id.UUID
	alone := map[id.UUID]bool{}
	for range 120 {
		for range x.random.IntN(3) {
			x.change()
		}
		stored, direct := x.emit()
		events = append(events, stored)
		alone[stored] = direct
	}
	matched, refused, held, direct := 0, 0, 0, 0
	for _, event := range events {
		read := x.explain(event)
		for i, v := range read.Verdicts {
			sent := !read.Endpoints[i].DeliveryID.IsZero()
			if alone[event] && read.Matched == 0 && sent && strings.Contains(v.Detail, "on request") {
				continue
			}
			if v.Matched != sent {
				t.Errorf("event %s, endpoint %s: %+v, delivery %v", event, read.Endpoints[i].ID, v, read.Endpoints[i].DeliveryID)
			}
			if v.Matched {
				matched++
			} else {
				refused++
			}
			if v.Held {
				held++
			}
		}
		if read.Direct {
			direct++
			if !alone[event] {
				t.Errorf("event %s was for everybody, and is told as for one alone", event)
			}
		}
		if n := x.count("SELECT count(*) FROM deliveries WHERE event_id = $1", event); n != read.Matched && !alone[event] {
			t.Errorf("event %s: %d deliveries, %d matched: %s", event, n, read.Matched, read.Summary)
		}
	}
	if matched < 20 || refused < 100 || held < 10 || direct < 3 {
		t.Errorf("%d matched, %d refused, %d held, %d direct: the property was hardly tried", matched, refused, held, direct)
	}
}
