package deliveries_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// history is a tenant with deliveries of all kinds over some weeks, and the expected content of lists.
type history struct {
	db     *db.DB
	tenant id.UUID
	rows   []past
}

type past struct {
	id, event, endpoint id.UUID
	eventType, channel  string
	shown               delivery.Status
	tried, archived     bool
}

const (
	weeks = 5
	often = 100 // the row whose event has many deliveries
)

func newHistory(t *testing.T, n int) *history {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	tenant, _, err := accounts.CreateTenant(t.Context(), d, accounts.NewTenant{Name: "a"}, db.Author{Kind: "command"})
	if err != nil {
		t.Fatal(err)
	}
	h := &history{db: d, tenant: tenant.ID}
	h.invent(n)
	h.store(t, url)
	return h
}

// invent creates rows of random kinds, with a fixed seed. Two of the three endpoints are open. Every fiftieth row
// belongs to the event of an early one.
func (h *history) invent(n int) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	for i := range n {
		at := now.Add(-time.Duration(n-i) * (weeks * 7 * 24 * time.Hour / time.Duration(n+1)))
		p := past{
			id: id.New(at, [10]byte{byte(i >> 8), byte(i), 0xff, 1}),
			event: id.New(at, [10]byte{
				byte(i >> 8), byte(i),
				0xff, 2,
			}),
			endpoint:  id.UUID{15: byte(1 + random.IntN(3))},
			eventType: "common",
			tried:     random.IntN(2) == 0,
		}
		if random.IntN(20) == 0 {
			p.eventType = "rare"
		}
		if random.IntN(20) == 0 {
			p.channel = "vip"
		}
		if i > often && i%50 == 0 {
			p.event, p.channel = h.rows[often].event, h.rows[often].channel
		}
		p.shown = []delivery.Status{
			delivery.Delivered, delivery.Delivered, delivery.Delivered, delivery.Pending, delivery.Retrying,
			delivery.Failed, delivery.Canceled,
		}[random.IntN(7)]
		p.archived = p.shown.Terminal() && random.IntN(5) == 0
		if p.shown == delivery.Retrying {
			p.tried = true
		}
		if p.shown == delivery.Pending {
			p.tried = false
		}
		if !p.shown.Terminal() && p.endpoint[15] == 3 {
			p.shown = delivery.Held
		}
		h.rows = append(h.rows, p)
	}
}

func (h *history) store(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("SET search_path = posthorn")
	exec(fmt.Sprintf("SELECT make_partitions(current_date - %d, current_date + 1)", weeks*7+1))
	exec("SET ROLE posthorn_console")
	for i := range 3 {
		exec("INSERT INTO lanes (endpoint_id, tenant_id, held) VALUES ($1, $2, $3)", id.UUID{15: byte(i + 1)}.String(), h.tenant.String(), i == 2)
	}
	b := &pgx.Batch{}
	for _, p := range h.rows {
		stored := p.shown
		if stored == delivery.Held {
			stored = delivery.Pending
			if p.tried {
				stored = delivery.Retrying
			}
		}
		u, ev, ep, ten := p.id.String(), p.event.String(), p.endpoint.String(), h.tenant.String()
		b.Queue(`INSERT INTO deliveries (tenant_id, created_at, id, event_id, endpoint_id, event_type, status, archived_at)
			VALUES ($1, created_at($2), $2, $3, $4, $5, $6, CASE WHEN $7 THEN now() END)`, ten, u, ev, ep, p.eventType, int16(stored), p.archived)
		b.Queue(`INSERT INTO events (tenant_id, created_at, id, type, data, channels, routing_version)
			VALUES ($1, created_at($2), $2, $3, '{}', CASE WHEN $4 <> '' THEN ARRAY['other', $4] END, 1) ON CONFLICT DO NOTHING`, ten, ev, p.eventType, p.channel)
		attempts := 0
		if p.tried {
			attempts = 1
		}
		switch {
		case stored == delivery.Failed:
			b.Queue("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason, archived) VALUES ($1, $2, $3, $4, 1, $5)",
				ten, u, ep, p.eventType, p.archived)
		case stored == delivery.Canceled:
			b.Queue("INSERT INTO cancellations (tenant_id, delivery_id, endpoint_id, event_type, attempted, archived) VALUES ($1, $2, $3, $4, $5, $6)",
				ten, u, ep, p.eventType, p.tried, p.archived)
		case !stored.Terminal():
			b.Queue("INSERT INTO queue (tenant_id, delivery_id, event_id, endpoint_id, attempts) VALUES ($1, $2, $3, $4, $5)", ten, u, ev, ep, attempts)
		}
	}
	if err := conn.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	exec("RESET ROLE")
	exec("ANALYZE")
}

// want is the expected content of a list, found by checking every row.
func (h *history) want(l deliveries.ListOptions) (ids []id.UUID) {
	for _, p := range h.rows {
		takes := p.archived == l.Archived && (l.EventType == "" || l.EventType == p.eventType) &&
			(l.Channel == "" || l.Channel == p.channel) &&
			(l.Endpoint.IsZero() || l.Endpoint == p.endpoint) && (l.Event.IsZero() || l.Event == p.event) &&
			!p.id.Time().Before(l.Since) && (l.Until.IsZero() || p.id.Time().Before(l.Until))
		switch l.Status {
		case "":
		case delivery.AllFailed:
			takes = takes && (p.shown == delivery.Failed || p.shown == delivery.Retrying ||
				p.shown == delivery.Canceled && p.tried)
		default:
			takes = takes && p.shown.String() == l.Status
		}
		if takes {
			ids = append(ids, p.id)
		}
	}
	if !l.Ascending {
		slices.Reverse(ids)
	}
	return ids
}

// walk reads a list to its end.
func (h *history) walk(t *testing.T, l deliveries.ListOptions) (ids []id.UUID, pages int) {
	t.Helper()
	for {
		var page deliveries.Page
		err := h.db.Tenant(t.Context(), h.tenant, func(q *sql.Queries) (err error) {
			page, err = deliveries.List(t.Context(), q, h.tenant, l)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Rows {
			ids = append(ids, d.ID)
		}
		if pages++; page.Next == nil {
			return ids, pages
		}
		if len(page.Rows) > l.Limit || pages > 2000 {
			t.Fatalf("page %d holds %d rows of %d", pages, len(page.Rows), l.Limit)
		}
		l.After = page.Next
	}
}

func TestEveryListOfDeliveriesShowsEachRowOnceInOrder(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 2000)
	endpoint, nobody := id.UUID{15: 3}, id.UUID{15: 9}
	middle := h.rows[1000].id.Time()
	lists := map[string]deliveries.ListOptions{"": {}}
	add := func(name string, change func(*deliveries.ListOptions)) {
		for had, l := range lists {
			change(&l)
			lists[strings.TrimSpace(had+" "+name)] = l
		}
	}
	for _, s := range []string{"pending", "retrying", "held", "delivered", "failed", "canceled", "all_failed"} {
		lists["status "+s] = deliveries.ListOptions{Status: s}
	}
	lists["of an event"] = deliveries.ListOptions{Event: h.rows[often].event}
	add("rare", func(l *deliveries.ListOptions) { l.EventType = "rare" })
	add("endpoint", func(l *deliveries.ListOptions) { l.Endpoint = endpoint })
	lists["vip"] = deliveries.ListOptions{Channel: "vip"}
	lists["vip at an endpoint"] = deliveries.ListOptions{Channel: "vip", Endpoint: endpoint}
	lists["nobody"] = deliveries.ListOptions{Endpoint: nobody}
	lists["archived"] = deliveries.ListOptions{Archived: true}
	lists["archived failed"] = deliveries.ListOptions{Archived: true, Status: "failed"}
	add("since", func(l *deliveries.ListOptions) { l.Since = middle })
	add("oldest first", func(l *deliveries.ListOptions) { l.Ascending = true })
	lists["until"] = deliveries.ListOptions{Range: show.Range{Until: middle}}
	lists["a day"] = deliveries.ListOptions{Range: show.Range{Since: middle, Until: middle.Add(24 * time.Hour)}}
	shown := 0
	for name, l := range lists {
		want := h.want(l)
		l.Limit = max(7, len(want)/5)
		got, _ := h.walk(t, l)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", name, len(got), len(want))
		}
		shown += len(got)
	}
	if shown < 5000 {
		t.Errorf("all lists together showed %d rows: was anything looked at?", shown)
	}
}

func TestARareFilterGivesShortPagesInsteadOfLongScans(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 5000)
	for name, l := range map[string]deliveries.ListOptions{
		"a channel that no event has": {Channel: "nobody", Range: show.Range{Limit: 50}},
		"a type among what waits":     {Status: "pending", EventType: "nobody", Range: show.Range{Limit: 50}},
	} {
		got, pages := h.walk(t, l)
		most := 5000/2000 + 1 // a page reads 2,000 rows
		if len(got) != 0 || pages > most || l.Channel != "" && pages < most {
			t.Errorf("%s: %d rows on %d pages", name, len(got), pages)
		}
	}
}

// Nothing but the primary key at the event's moment and the index of later deliveries is needed, whatever a day's
// statistics say.
func TestTheDeliveriesOfAnEventAreFoundByItsMoment(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 2000)
	event := h.rows[often].event
	tx, err := h.db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	// The statistics of a day say that the endpoint has no delivery in it, as those of a day's first minutes can.
	day := "posthorn.deliveries_y" + time.Now().UTC().AddDate(0, 0, -1).Format("20060102")
	if _, err := tx.Exec(t.Context(), "DELETE FROM "+day+" WHERE endpoint_id = '"+h.rows[often].endpoint.String()+"'; ANALYZE "+day); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SET LOCAL search_path = posthorn; SET LOCAL ROLE posthorn_tenant; SET LOCAL posthorn.tenant = '"+h.tenant.String()+"'"); err != nil {
		t.Fatal(err)
	}
	if err := sql.New(tx).PlanByIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]struct {
		text string
		args []any
	}{
		"a list": {sql.ScanEvent, db.Args(sql.ScanEventParams{
			Newest:   true,
			Status:   -2,
			TenantID: h.tenant,
			EventID:  event,
			EventAt:  event.Time(),
			LowAt:    event.Time(),
			HighAt:   time.Now(),
			Low:      event,
			High:     id.Last,
			Scan:     100,
		})},
		"a replay": {sql.DeliveriesOfEvent, db.Args(sql.DeliveriesOfEventParams{
			TenantID: h.tenant,
			EventID:  event,
			EventAt:  event.Time(),
			Since:    event.Time(),
			Limit:    100,
		})},
		"an explanation": {sql.FirstDeliveriesOfEvent, db.Args(sql.FirstDeliveriesOfEventParams{
			TenantID: h.tenant,
			EventID:  event,
			EventAt:  event.Time(),
			Since:    event.Time(),
		})},
		"a recovery": {sql.DeliveredEvents, db.Args(sql.DeliveredEventsParams{
			TenantID:   h.tenant,
			Events:     []id.UUID{event},
			Created:    []time.Time{event.Time()},
			EndpointID: h.rows[often].endpoint,
			Since:      event.Time(),
		})},
		"an expunging": {sql.DeliveriesOfEvents, db.Args(sql.DeliveriesOfEventsParams{
			TenantID: h.tenant,
			Events:   []id.UUID{event},
			Created:  []time.Time{event.Time()},
			Since:    event.Time(),
		})},
	} {
		rows, err := tx.Query(t.Context(), "EXPLAIN "+query.text, query.args...)
		if err != nil {
			t.Fatal(name, err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(name, err)
		}
		text, days := strings.Join(plan, "\n"), 0
		for i, line := range plan {
			switch {
			case strings.Contains(line, "_event_id_idx on deliveries_"), strings.Contains(line, "_later on deliveries_"):
				days++
			case strings.Contains(line, "Index Scan using") && strings.Contains(plan[i+1], "created_at = "):
			case strings.Contains(line, " on deliveries_"):
				t.Errorf("%s: %s\n%s", name, line, text)
			}
		}
		if days < (weeks-1)*7 {
			t.Errorf("%s looks for later deliveries in %d days:\n%s", name, days, text)
		}
	}
}
