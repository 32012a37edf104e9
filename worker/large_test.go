package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/worker/history"
)

// objects is a house whose large events have their data in a folder.
type objects struct {
	*house
	folder string
	store  history.Store
	commit *emit.Committer
	work   *Worker
}

// failing is a store that is broken on request.
type failing struct {
	history.Store
	err error
}

func (f *failing) Put(ctx context.Context, name string, body []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Put(ctx, name, body)
}

func newObjects(t *testing.T) *objects {
	t.Helper()
	folder := t.TempDir()
	o := newObjectsAt(t, history.Where{URL: "file://" + folder})
	o.folder = folder
	return o
}

func newObjectsAt(t *testing.T, at history.Where) *objects {
	t.Helper()
	o := &objects{house: newHouse(t)}
	var err error
	if o.store, err = history.Open(at); err != nil {
		t.Fatal(err)
	}
	o.work = New(Config{DB: o.db, ListenURL: o.url, Log: o.log, Egress: o.policy, Keys: o.ring, Name: t.Name(), BaseURL: o.links().BaseURL, Objects: o.store})
	o.commit = o.committer(o.store)
	return o
}

// start runs the worker. Endpoints that are made before it need no verification.
func (o *objects) start() { o.run(o.work.Run) }

func (o *objects) committer(store emit.Objects) *emit.Committer {
	c := emit.New(emit.Config{DB: o.db, Log: o.log, Objects: store, OnCommit: o.work.Committed, BeforeCommit: o.work.BeforeCommit})
	o.run(c.Run)
	return c
}

// large is data above the limit of a request.
func large(fill string) []byte {
	return []byte(`{"n":1,"fill":"` + strings.Repeat(fill, 300<<10/len(fill)) + `"}`)
}

func (o *objects) emitLarge(tenant id.UUID, e event.Emission) id.UUID {
	o.t.Helper()
	e.Type = "order.paid"
	r := o.commit.Emit(o.t.Context(), tenant, []emit.Item{{Emission: e}})[0]
	if r.Err != nil {
		o.t.Fatal(r.Err)
	}
	return r.ID
}

// names are the objects that are there.
func (o *objects) names() (names []string) {
	o.t.Helper()
	_ = filepath.WalkDir(o.folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, o.folder+"/"))
		}
		return nil
	})
	return names
}

// sweep runs the job as if its next check were due.
func (o *objects) sweep() {
	o.t.Helper()
	o.exec("UPDATE large_payloads SET check_at = now() - interval '1 second'")
	if err := o.work.maintenance.Do(o.t.Context(), "delete large payloads"); err != nil {
		o.t.Fatal(err)
	}
}

func (o *objects) deliveryTo(ev, ep id.UUID) (dlv id.UUID) {
	o.t.Helper()
	o.query("SELECT id FROM deliveries WHERE event_id = $1 AND endpoint_id = $2 ORDER BY id DESC LIMIT 1", []any{&dlv}, ev, ep)
	return dlv
}

// TestALargeEventTravelsAsALinkWhereTheEndpointAllowsIt: with the same bytes on every attempt, in the format or as the
// transformation has it. An endpoint that does not allow it gets nothing: its delivery fails, says why, and can be
// replayed once the endpoint allows links.
func TestALargeEventTravelsAsALinkWhereTheEndpointAllowsIt(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	tenant := o.tenant()
	tried := 0
	r := newReceiver(t, func(arrival) int {
		if tried++; tried == 1 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	refused, shaped := newReceiver(t, nil), newReceiver(t, nil)
	allows := func(s *endpoint.Settings) { s.LargePayloads = endpoint.LinkLarge }
	ep := o.endpoint(tenant, r.URL, func(s *endpoint.Settings) {
		allows(s)
		s.RetryPolicy, s.RetryDelays = endpoint.Custom, []int{1, 1}
	})
	rejects := o.endpoint(tenant, refused.URL, nil)
	thin := o.endpoint(tenant, shaped.URL, allows)
	o.transform(tenant, thin, `{"size": data.size, "link": link, "same": link == data.link}`)

	o.start()
	data := large("ä")
	ev := o.emitLarge(tenant, event.Emission{Data: data})
	o.settled(20*time.Second, delivery.Delivered, 2)
	dlv := o.deliveryTo(ev, ep)
	var body struct {
		Data event.Reference
	}
	seen := r.seen()
	if err := json.Unmarshal(seen[0].body, &body); err != nil || len(seen) != 2 || !bytes.Equal(seen[0].body, seen[1].body) {
		t.Fatalf("%d attempts, %s: %v", len(seen), seen[0].body, err)
	}
	if body.Data.Link != o.links().Of(tenant, dlv) || !body.Data.Holds(data) || len(seen[0].body) > 1000 {
		t.Errorf("the body is %s", seen[0].body)
	}
	if got := string(shaped.seen()[0].body); !strings.Contains(got, `"same":true`) || !strings.Contains(got, `"size":`) {
		t.Errorf("the transformation made %s", got)
	}
	o.as(tenant, func(q *sql.Queries) error {
		opened, err := deliveries.OpenLink(t.Context(), q, delivery.Link{Tenant: tenant, Delivery: dlv})
		if err != nil {
			return err
		}
		text, err := o.store.Get(t.Context(), opened.Object, event.MaxLargePayload)
		if whole, ok := opened.Loaded(text); err != nil || !ok || !bytes.Equal(whole.Data, data) || whole.ContentType != "application/json" {
			t.Errorf("the object %s has %d bytes: %v", opened.Object, len(text), err)
		}
		if _, ok := opened.Loaded(text[1:]); ok {
			t.Error("other data is taken for the event's")
		}
		return nil
	})

	o.settled(20*time.Second, delivery.Failed, 1)
	d := o.delivery(tenant, o.deliveryTo(ev, rejects))
	if d.Reason != delivery.PayloadTooLarge || d.Attempts != 0 || !d.DeadLetter || d.Diagnosis.Title != "Payload too large" || d.Diagnosis.Fix == "" || len(refused.seen()) != 0 {
		t.Errorf("it is %s (%s) after %d attempts, dead letter %t: %+v", d.Status, d.Reason, d.Attempts, d.DeadLetter, d.Diagnosis)
	}
	o.change(tenant, rejects, allows)
	o.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.Replay(t.Context(), q, tenant, d.ID, false)
		return err
	})
	eventually(t, 20*time.Second, "the replay arrives", func() bool { return len(refused.seen()) == 1 })
	if got := string(refused.seen()[0].body); strings.Contains(got, body.Data.Link) || !strings.Contains(got, body.Data.SHA256) {
		t.Errorf("the replay is %s", got)
	}
	o.balanced()
}

// TestTextThatIsLargeIsTheTextBehindItsLink: in its content type.
func TestTextThatIsLargeIsTheTextBehindItsLink(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	tenant := o.tenant()
	r := newReceiver(t, nil)
	ep := o.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.LargePayloads = endpoint.LinkLarge })
	o.start()
	text := strings.Repeat("a,b\n", 80<<10)
	quoted, _ := json.Marshal(text)
	ev := o.emitLarge(tenant, event.Emission{Data: quoted, ContentType: "text/csv"})
	o.settled(20*time.Second, delivery.Delivered, 1)
	o.as(tenant, func(q *sql.Queries) error {
		opened, err := deliveries.OpenLink(t.Context(), q, delivery.Link{Tenant: tenant, Delivery: o.deliveryTo(ev, ep)})
		if err != nil {
			return err
		}
		stored, err := o.store.Get(t.Context(), opened.Object, event.MaxLargePayload)
		if whole, ok := opened.Loaded(stored); err != nil || !ok || string(whole.Data) != text || whole.ContentType != "text/csv" {
			t.Errorf("%v %s", err, whole.ContentType)
		}
		return nil
	})
}

// TestALargeEventIsKeptInS3: as in a folder, until it is expunged.
func TestALargeEventIsKeptInS3(t *testing.T) {
	t.Parallel()
	o := newObjectsAt(t, history.Where{URL: "s3://bucket/of/posthorn", Endpoint: s3(t), Region: "us-east-1", Key: s3Key, Secret: s3Secret})
	tenant := o.tenant()
	o.start()
	data := large("ö")
	ev := o.emitLarge(tenant, event.Emission{Data: data})
	name := event.ObjectName(tenant, ev)
	if got, err := o.store.Get(t.Context(), name, event.MaxLargePayload); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%s has %d bytes: %v", name, len(got), err)
	}
	o.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.ExpungeEvent(t.Context(), q, tenant, ev, "test", db.Author{Kind: "command"})
		return err
	})
	if err := o.work.maintenance.Do(t.Context(), "delete large payloads"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.store.Get(t.Context(), name, event.MaxLargePayload); err == nil {
		t.Error("the object of an expunged event is there")
	}
}

// TestNoEventIsStoredWithoutItsData: the object is there before the event is. What could not be written is a 503 and no
// event; an object without an event is deleted, and so is one whose event is not kept.
func TestNoEventIsStoredWithoutItsData(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	tenant := o.tenant()
	o.endpoint(tenant, newReceiver(t, nil).URL, nil)
	o.start()
	broken := o.committer(&failing{o.store, errors.New("the disk is full")})
	items := []emit.Item{{Emission: event.Emission{Type: "order.paid", Data: large("x")}}, item("order.paid", "", 1)}
	got := broken.Emit(t.Context(), tenant, items)
	if f := fault.As(got[0].Err); f == nil || f.Code != "payload_not_stored" || f.Kind != fault.Unavailable || got[1].Err != nil {
		t.Errorf("a large event of a broken store: %v, beside it %v", got[0].Err, got[1].Err)
	}
	if n := o.count("SELECT count(*) FROM events"); n != 1 || o.count("SELECT count(*) FROM large_payloads") != 1 {
		t.Errorf("%d events are stored", n)
	}

	// The process dies after it wrote the object, and before the event is stored.
	stopped := emit.New(emit.Config{DB: o.db, Log: o.log, Objects: o.store})
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if r := stopped.Emit(short, tenant, items[:1])[0]; r.Err == nil || len(o.names()) != 1 {
		t.Errorf("%v with %v", r.Err, o.names())
	}
	if err := o.work.maintenance.Do(t.Context(), "delete large payloads"); err != nil || len(o.names()) != 1 {
		t.Errorf("an object that is minutes old is deleted: %v", err)
	}
	kept := o.emitLarge(tenant, event.Emission{Data: large("y")})
	expunged := o.emitLarge(tenant, event.Emission{Data: large("z")})
	o.sweep()
	if names := o.names(); len(names) != 2 || !strings.Contains(strings.Join(names, " "), event.ObjectName(tenant, kept)) || o.count("SELECT count(*) FROM large_payloads") != 2 {
		t.Errorf("after the job there are %v", names)
	}

	o.as(tenant, func(q *sql.Queries) error {
		_, err := deliveries.ExpungeEvent(t.Context(), q, tenant, expunged, "test", db.Author{Kind: "command"})
		return err
	})
	if err := o.work.maintenance.Do(t.Context(), "delete large payloads"); err != nil || len(o.names()) != 1 {
		t.Errorf("an expunged event keeps its object: %v %v", o.names(), err)
	}
	// Its day is in storage, where its reference is kept: so is its object. Then the retention of that day ends.
	o.exec("INSERT INTO history_days (tenant_id, day, state) VALUES ($1, (posthorn.created_at($2) AT TIME ZONE 'UTC')::date, 'stored')", tenant, kept)
	o.exec("DELETE FROM events WHERE id = $1", kept)
	if o.sweep(); len(o.names()) != 1 {
		t.Error("an event in storage lost its object")
	}
	// Its data is expunged there.
	gone := o.emitLarge(tenant, event.Emission{Data: large("g")})
	o.exec("DELETE FROM events WHERE id = $1", gone)
	o.exec("INSERT INTO history_expunges (tenant_id, day, low, event_id) VALUES ($1, (posthorn.created_at($2) AT TIME ZONE 'UTC')::date, now(), $2)", tenant, gone)
	if o.sweep(); len(o.names()) != 1 || strings.Contains(strings.Join(o.names(), " "), event.ObjectName(tenant, gone)) {
		t.Errorf("an event that was expunged in storage keeps its object: %v", o.names())
	}
	o.exec("DELETE FROM history_days")
	if o.sweep(); len(o.names()) != 0 || o.count("SELECT count(*) FROM large_payloads") != 0 {
		t.Errorf("an event that is not kept has its object %v", o.names())
	}
}

// TestAnErasedTenantLeavesNoObjects: they are deleted before its rows are. Without the store it is not erased.
func TestAnErasedTenantLeavesNoObjects(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	tenant, other := o.tenant(), o.tenant()
	o.start()
	for _, of := range []id.UUID{tenant, tenant, other} {
		o.emitLarge(of, event.Emission{Data: large("x")})
	}
	if err := maintenance.DeleteTenant(t.Context(), o.db, tenant, "they left", db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	o.exec("UPDATE tenants SET deleted_at = now() - interval '1 hour' WHERE id = $1", tenant)
	if of, err := maintenance.PayloadsOf(t.Context(), o.db, tenant, 10); err != nil || len(of) != 2 {
		t.Fatal(of, err)
	}
	eventually(t, 20*time.Second, "the tenant is erased", func() bool {
		if err := o.work.maintenance.Do(t.Context(), "erase deleted tenants"); err != nil {
			t.Fatal(err)
		}
		return o.count("SELECT count(*) FROM large_payloads WHERE tenant_id = $1", tenant) == 0
	})
	if names := o.names(); len(names) != 1 || !strings.Contains(names[0], id.Tenant.Format(other)) {
		t.Errorf("there are %v", names)
	}
}

// TestNoProducerCanNameAReference: the content type of references is Posthorn's own, so nobody gets a link to data of
// another event, or makes a worker read what is not there.
func TestNoProducerCanNameAReference(t *testing.T) {
	t.Parallel()
	for _, name := range []string{event.ReferenceType, "Application/VND.posthorn.reference+json; a=b"} {
		body := `{"type":"a.b","content_type":"` + name + `","data":"{\"size\":1,\"sha256\":\"\"}"}`
		if _, err := event.Parse([]byte(body), event.Limits{}, time.Now()); !fault.Is(err, event.CodeContentType) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
