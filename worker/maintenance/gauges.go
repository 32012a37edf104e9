package maintenance

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/health"
	"posthorn/worker/loop"
)

const (
	gaugeEvery = 15 * time.Second
	gaugeRests = 400 // times what a look took: 100,000 that wait take 0.1 s of a core, which shows in the slowest hundredth of deliveries
)

// gauges are the metrics of what waits, under the names that readers of the field expect.
type gauges struct {
	disabled  *prometheus.CounterVec
	pending   *prometheus.GaugeVec
	dead      prometheus.Gauge
	outbox    prometheus.Gauge
	lag       prometheus.Gauge
	rejected  prometheus.Gauge
	books     prometheus.Gauge
	unchecked prometheus.Gauge
}

func newGauges(r prometheus.Registerer) *gauges {
	g := &gauges{
		disabled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "endpoints_disabled_total", Help: "Endpoints switched off by Posthorn.",
		}, []string{"reason"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "deliveries_pending", Help: "Deliveries that wait, by age; counted up to 200,000.",
		}, []string{"age"}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "dead_letters", Help: "Dead letters that were neither replayed nor archived; counted up to 100,000.",
		}),
		outbox: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_size", Help: "What waits for this server alone: events in the outbox, and deliveries ready to be sent to endpoints that receive; counted up to 300,000.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_lag_seconds", Help: "How long the oldest of them has been ready.",
		}),
		rejected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_rejected", Help: "Events emitted in SQL that could not be stored, in the table outbox_rejected.",
		}),
		books: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_books_difference", Help: "Deliveries by which the books differ from the tables, over the pages that were found to differ and still do. Must be 0.",
		}),
		unchecked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_books_unchecked_seconds", Help: "For how long the books of yesterday and today have not been held against the tables. Some minutes at most.",
		}),
	}
	// A counter that begins with its first event has not increased by it, and no alert would ring.
	for _, reason := range health.Reasons() {
		g.disabled.WithLabelValues(string(reason))
	}
	if r != nil {
		r.MustRegister(g.disabled, g.pending, g.dead, g.outbox, g.lag, g.rejected, g.books, g.unchecked)
	}
	return g
}

// ages are the labels of deliveries_pending, in the order of the query.
var ages = [...]string{"<5m", "<1h", "<24h", ">24h"}

// setGauges counts what waits, and does so the more rarely the longer it takes.
func (m *Maintenance) setGauges(ctx context.Context) error {
	began := time.Now()
	err := m.Measure(ctx)
	loop.Sleep(ctx, min(gaugeRests*time.Since(began), time.Minute)-gaugeEvery)
	return err
}

// Measure sets the gauges once.
func (m *Maintenance) Measure(ctx context.Context) error {
	var byAge []sql.PendingByAgeRow
	var dead, rejected int64
	var books sql.BooksStateRow
	var outbox sql.OutboxSizeRow
	limited, until := m.heldBack()
	if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
		if byAge, err = q.PendingByAge(ctx, sql.PendingByAgeParams{Endpoints: limited, Until: until}); err != nil {
			return err
		}
		if outbox, err = q.OutboxSize(ctx); err != nil {
			return err
		}
		if rejected, err = q.CountRejected(ctx); err != nil {
			return err
		}
		if books, err = maintenance.ReadBooksState(ctx, q); err != nil {
			return err
		}
		dead, err = q.CountDeadLetters(ctx)
		return err
	}); err != nil {
		return err
	}
	counts := [len(ages)]int64{}
	var sendable int64
	var lag float64
	for _, a := range byAge {
		counts[a.Bucket] = a.N
		sendable += a.Sendable
		lag = max(lag, a.LagSeconds)
	}
	m.gauges.outbox.Set(float64(sendable + outbox.N))
	m.gauges.lag.Set(max(lag, outbox.LagSeconds))
	m.gauges.rejected.Set(float64(rejected))
	for i, label := range ages {
		m.gauges.pending.WithLabelValues(label).Set(float64(counts[i]))
	}
	m.gauges.dead.Set(float64(dead))
	m.gauges.books.Set(float64(books.Differs))
	m.gauges.unchecked.Set(books.Unchecked)
	return nil
}
