package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/client"
	"posthorn/db"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/views/components"
	"posthorn/web/cli"
)

// outcome is a delivery that was tried.
type outcome struct {
	name     string
	status   delivery.Status
	reason   delivery.Reason
	attempts int
	last     delivery.Result
	replayed bool // by another delivery
	replay   bool // of another delivery

	kind endpoint.Kind
	id   id.UUID
	with id.UUID // the other delivery
	host string
}

func outcomes() []outcome {
	return []outcome{
		{name: "out of attempts", status: delivery.Failed, reason: delivery.Exhausted, attempts: 3, last: delivery.Result{Failure: delivery.FailConnect}},
		{name: "rejected", status: delivery.Failed, reason: delivery.Rejected, attempts: 1, last: delivery.Result{Status: 422}},
		{name: "replayed", status: delivery.Failed, reason: delivery.Rejected, attempts: 1, last: delivery.Result{Status: 403}, replayed: true},
		{name: "delivered", status: delivery.Delivered, attempts: 2, last: delivery.Result{Status: 200}, replay: true},
		{name: "waits for a retry", status: delivery.Retrying, attempts: 1, last: delivery.Result{Failure: delivery.FailTimeout}},
	}
}

func (o outcome) dead() bool { return o.status == delivery.Failed && !o.replayed }

// diagnosed is what is to be said of the outcome at an endpoint of a kind.
func (o outcome) diagnosed(kind endpoint.Kind) diagnosis.Diagnosis {
	f := diagnosis.Facts{
		Kind:     kind,
		Status:   o.status,
		Reason:   o.reason,
		Attempts: o.attempts,
		Last:     o.last,
		Timeout:  15 * time.Second,
	}
	if o.status == delivery.Retrying {
		f.Wait.Reason = condition.Retry
	}
	return diagnosis.Of(f)
}

// insert writes the endpoint, the event and the delivery.
func (o *outcome) insert(ctx context.Context, c *pgx.Conn, tenant id.UUID) error {
	e, d := db.NewID(), db.NewID()
	o.id, o.with, o.host = d, db.NewID(), strings.ReplaceAll(o.name, " ", "-")+"."+string(o.kind)+".example.com"
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO endpoints (tenant_id, id, url, kind, event_types, status, status_at, created_at)
		VALUES ($1, $2, $3, $4, '{*}', 'active', now(), now())`, tenant, e, "https://"+o.host+"/", string(o.kind))
	b.Queue(`INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($2, $1, false)`, tenant, e)
	b.Queue(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version) VALUES ($1, $2, $3, 'order.paid', '{}', 1)`, tenant, d.Time(), d)
	insert := `INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, reason, attempts, last_status, last_failure,
		settled_at, replay_of) VALUES ($1, $2, $3, $3, $4, 'order.paid', $5, $6, $7, $8, $9, $10, $11)`
	var settled *time.Time
	var of *id.UUID
	if o.status.Terminal() {
		settled = new(time.Now())
	}
	if o.replay {
		of = &o.with
	}
	b.Queue(insert, tenant, d.Time(), d, e, int(o.status), int(o.reason), o.attempts, o.last.Status, int(o.last.Failure), settled, of)
	if o.status == delivery.Failed {
		b.Queue(`INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, replayed)
			VALUES ($1, $2, $3, 'order.paid', $4, $5)`, tenant, d, e, int(o.reason), o.replayed)
	}
	if o.replayed {
		b.Queue(`INSERT INTO replays (tenant_id, replay_of, delivery_id) VALUES ($1, $2, $3)`, tenant, d, o.with)
	}
	if !o.status.Terminal() {
		b.Queue(`INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, state, attempts, due_at)
			VALUES ($1, $2, $2, $3, 1, 1, now() + interval '1 hour')`, tenant, d, e)
	}
	return c.SendBatch(ctx, b).Close()
}

// For every kind of endpoint, every surface says the same of how deliveries ended: the diagnosis, what to do, whether
// they are dead letters, what they were replayed as, and the last response.
func TestNoSurfaceContradictsAnotherAboutOutcomes(t *testing.T) {
	t.Parallel()
	s := scene{youngDay: newYoungDay(t)}
	s.signIn()
	var all []outcome
	for _, kind := range endpoint.Kinds() {
		for _, o := range outcomes() {
			o.kind = kind
			all = append(all, o)
		}
	}
	s.connect(func(ctx context.Context, c *pgx.Conn) (err error) {
		_, err = c.Exec(ctx, liveWorker)
		for i := 0; err == nil && i < len(all); i++ {
			err = all[i].insert(ctx, c, s.tenant)
		}
		return err
	})
	for _, o := range all {
		s.outcomeInAPI(o)
		s.outcomeInCommandLine(o)
		root := "/t/" + s.last["tenant_id"]
		s.outcomeOnPage("dashboard", o, root+"/deliveries/"+id.Delivery.Format(o.id))
		s.outcomeOnPage("console", o, "/console/tenants/"+s.last["tenant_id"]+"/deliveries/"+id.Delivery.Format(o.id))
		s.outcomeInList("dashboard", o, root+"/deliveries")
		s.outcomeInList("console", o, "/console/deliveries?tenant="+s.last["tenant_id"])
	}
}

func (s scene) outcomeInAPI(o outcome) {
	s.t.Helper()
	var d client.DeliveryWithAttempts
	s.json(&situation{key: s.key}, "/api/v1/deliveries/"+id.Delivery.Format(o.id), &d)
	status, _ := d.LastStatus.Get()
	failure, _ := d.LastFailure.Get()
	if string(d.Status) != o.status.String() || status != o.last.Status || failure != o.last.Failure.String() {
		s.t.Errorf("API, %s, %s: %s after %d %s", o.kind, o.name, d.Status, status, failure)
	}
	of, _ := d.ReplayOf.Get()
	by, _ := d.ReplayedBy.Get()
	if d.DeadLetter != o.dead() || o.replay != (of == id.Delivery.Format(o.with)) || o.replayed != (by == id.Delivery.Format(o.with)) {
		s.t.Errorf("API, %s, %s: dead letter %t, replay of %q, replayed by %q", o.kind, o.name, d.DeadLetter, of, by)
	}
	var page client.DeliveryPage
	s.json(&situation{key: s.key}, "/api/v1/deliveries?status=dead_letter&limit=100", &page)
	listed := false
	for _, one := range page.Data {
		listed = listed || one.ID == id.Delivery.Format(o.id)
	}
	if listed != o.dead() {
		s.t.Errorf("API, %s, %s: listed as a dead letter: %t", o.kind, o.name, listed)
	}
}

func (s scene) outcomeInCommandLine(o outcome) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		program: "posthorn",
		args:    []string{"deliveries", "get", id.Delivery.Format(o.id)},
		stdin:   strings.NewReader(""),
		stdout:  &stdout,
		stderr:  &stderr,
		environ: []string{"POSTHORN_URL=" + s.program.URL(), "POSTHORN_API_KEY=" + s.key, "HOME=" + s.t.TempDir()},
	}
	if code := a.run(s.t.Context()); code != cli.ExitOK {
		s.t.Errorf("exit code %d: %s", code, stderr.String())
	}
	s.marks("command line", o, strings.Join(strings.Fields(stdout.String()), " "), id.Delivery.Format(o.with))
}

func (s scene) outcomeOnPage(where string, o outcome, path string) {
	s.t.Helper()
	text := s.text(path)
	want := o.diagnosed(o.kind)
	for _, part := range []string{want.Title, want.Detail, want.Fix, want.Next} {
		if !strings.Contains(text, part) {
			s.t.Errorf("%s, %s, %s does not say %q: %.1500s", where, o.kind, o.name, part, text)
		}
	}
	for _, kind := range endpoint.Kinds() {
		if other := o.diagnosed(kind); other.Detail != want.Detail && strings.Contains(text, other.Detail) {
			s.t.Errorf("%s, %s, %s speaks of %s: %q", where, o.kind, o.name, kind, other.Detail)
		}
	}
	s.marks(where, o, text, components.ShortID(id.Delivery.Format(o.with)))
}

// marks checks what a text says beside the diagnosis; other is how it writes the other delivery's id.
func (s scene) marks(where string, o outcome, text, other string) {
	s.t.Helper()
	for mark, wanted := range map[string]bool{
		"Dead letter":          o.dead(),
		"Replay of " + other:   o.replay,
		"Replayed by " + other: o.replayed,
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(mark)) != wanted {
			s.t.Errorf("%s, %s, %s: %q is said: %t: %.1500s", where, o.kind, o.name, mark, !wanted, text)
		}
	}
}

func (s scene) outcomeInList(where string, o outcome, path string) {
	s.t.Helper()
	row := s.row(path, o.host)
	want := []string{o.status.String(), delivery.AnswerText(o.last.Status, o.last.Failure)}
	if o.reason != delivery.None {
		want = append(want, o.reason.Label())
	}
	for _, part := range want {
		if !strings.Contains(strings.ToLower(row), strings.ToLower(part)) {
			s.t.Errorf("%s, list, %s, %s does not say %q: %s", where, o.kind, o.name, part, row)
		}
	}
	if strings.Contains(row, "Replayed") != o.replayed {
		s.t.Errorf("%s, list, %s, %s: replayed %t: %s", where, o.kind, o.name, o.replayed, row)
	}
}
