package maintenance

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db/maintenance"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/incidents"
	"posthorn/domain/source"
	"posthorn/worker/loop"
)

const (
	gaugeEvery = 15 * time.Second
	// gaugeRests is the pause after a measurement, as a multiple of its duration. To count 100,000 waiting deliveries
	// takes 0.1 s of a core, which shows in the p99 of deliveries.
	gaugeRests = 400
)

// gauges are the metrics of waiting deliveries and of the database, with names that are common in the field.
type gauges struct {
	disabled  *prometheus.CounterVec
	pending   *prometheus.GaugeVec
	waiting   *prometheus.GaugeVec
	endpoints *prometheus.GaugeVec
	dead      prometheus.Gauge
	outbox    prometheus.Gauge
	lag       prometheus.Gauge
	rejected  prometheus.Gauge
	messages  prometheus.Gauge
	sources   *prometheus.GaugeVec
	queued    prometheus.Gauge
	behind    prometheus.Gauge
	totals    prometheus.Gauge
	unchecked prometheus.Gauge
	history   *prometheus.GaugeVec
}

func newGauges(r prometheus.Registerer) *gauges {
	g := &gauges{
		disabled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "endpoints_disabled_total",
			Help: "Endpoints switched off by Posthorn.",
		}, []string{"reason"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "deliveries_pending",
			Help: "Deliveries that wait, by age; counted up to 200,000.",
		}, []string{"age"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "posthorn_deliveries_waiting",
			Help: "Deliveries that wait, by reason; counted up to 200,000.",
		}, []string{"reason"}),
		endpoints: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "posthorn_endpoints",
			Help: "Endpoints by condition.",
		}, []string{"condition"}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "dead_letters",
			Help: "Dead letters that were neither replayed nor archived; counted up to 100,000.",
		}),
		outbox: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_size",
			Help: "Events in the outbox, and deliveries that wait for nothing but a worker; counted up to 300,000.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_lag_seconds",
			Help: "How long the oldest of them has waited for the platform alone.",
		}),
		rejected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_rejected",
			Help: "Events emitted in SQL that could not be stored, in the table outbox_rejected.",
		}),
		messages: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_source_messages_rejected",
			Help: "Messages of sources that became no event, in the same table; counted up to 100,000.",
		}),
		sources: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "posthorn_sources",
			Help: "Sources of events by status.",
		}, []string{"status"}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_source_messages_waiting",
			Help: "Messages in the brokers of sources that were not taken.",
		}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_source_behind_seconds",
			Help: "For how long the source that has been behind for the longest has had more messages waiting than one batch.",
		}),
		totals: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_books_difference",
			Help: "Deliveries by which the books differ from the tables, over the pages that were found to differ and still do. Must be 0.",
		}),
		unchecked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_books_unchecked_seconds",
			Help: "For how long the books of yesterday and today have not been held against the tables. Some minutes at most.",
		}),
		history: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "posthorn_history_days",
			Help: "Days of tenants outside PostgreSQL, by state: stored, on their way (moving), and of these the ones whose last try failed (failed).",
		}, []string{"state"}),
	}
	// A counter that appears with its first event has not increased by it, and no alert would fire.
	for _, reason := range health.Reasons() {
		g.disabled.WithLabelValues(string(reason))
	}
	if r != nil {
		r.MustRegister(g.disabled, g.pending, g.waiting, g.endpoints, g.dead, g.outbox, g.lag, g.rejected, g.messages, g.sources, g.queued, g.behind, g.totals, g.unchecked, g.history)
	}
	return g
}

// ages are the labels of deliveries_pending, in the order of the query.
var ages = [...]string{"<5m", "<1h", "<24h", ">24h"}

// setGauges counts what waits. The longer a count takes, the less often it runs.
func (m *Maintenance) setGauges(ctx context.Context) error {
	began := time.Now()
	err := m.Measure(ctx)
	loop.Sleep(ctx, min(gaugeRests*time.Since(began), time.Minute)-gaugeEvery)
	return err
}

// Measure sets the gauges once.
func (m *Maintenance) Measure(ctx context.Context) error {
	var byAge []sql.PendingByAgeRow
	var conditions []sql.CountConditionsRow
	var dead int64
	var rejected sql.CountRejectedRow
	var states sql.CountSourceStatesRow
	var totals sql.ReconcileStateRow
	var outbox sql.OutboxSizeRow
	var days sql.CountHistoryRow
	if err := m.db.Worker(ctx, func(q *sql.Queries) (err error) {
		if byAge, err = q.PendingByAge(ctx, incidents.Silent.Seconds()); err != nil {
			return err
		}
		if conditions, err = q.CountConditions(ctx, nil, incidents.Silent.Seconds()); err != nil {
			return err
		}
		if outbox, err = q.OutboxSize(ctx); err != nil {
			return err
		}
		if rejected, err = q.CountRejected(ctx); err != nil {
			return err
		}
		if states, err = q.CountSourceStates(ctx); err != nil {
			return err
		}
		if totals, err = maintenance.ReadReconcileState(ctx, q); err != nil {
			return err
		}
		if days, err = q.CountHistory(ctx); err != nil {
			return err
		}
		dead, err = q.CountDeadLetters(ctx)
		return err
	}); err != nil {
		return err
	}
	ready, lag := m.gauges.setWaiting(byAge)
	m.gauges.outbox.Set(float64(ready + outbox.N))
	m.gauges.lag.Set(max(lag, outbox.LagSeconds))
	m.gauges.setConditions(conditions)
	m.gauges.rejected.Set(float64(rejected.Events))
	m.gauges.messages.Set(float64(rejected.Messages))
	for status, n := range map[source.Status]int64{source.Active: states.Active, source.Paused: states.Paused, source.Failing: states.Failing} {
		m.gauges.sources.WithLabelValues(string(status)).Set(float64(n))
	}
	m.gauges.queued.Set(float64(states.Waiting))
	m.gauges.behind.Set(states.BehindSeconds)
	m.gauges.dead.Set(float64(dead))
	m.gauges.totals.Set(float64(totals.Differs))
	m.gauges.unchecked.Set(totals.Unchecked)
	for state, n := range map[string]int64{"stored": days.Stored, "moving": days.AtWork, "failed": days.Failed} {
		m.gauges.history.WithLabelValues(state).Set(float64(n))
	}
	return nil
}

// setWaiting sets the waiting deliveries by age and by reason. It returns how many deliveries are ready, and for how
// many seconds the oldest has waited for the platform alone.
func (g *gauges) setWaiting(rows []sql.PendingByAgeRow) (ready int64, lag float64) {
	byAge, byReason := [len(ages)]int64{}, map[condition.Reason]int64{}
	for _, r := range rows {
		byAge[r.Bucket] += r.N
		byReason[condition.Reason(r.Reason)] += r.N
		ready += r.Ready
		lag = max(lag, r.LagSeconds)
	}
	for i, label := range ages {
		g.pending.WithLabelValues(label).Set(float64(byAge[i]))
	}
	for _, reason := range condition.Reasons() {
		g.waiting.WithLabelValues(string(reason)).Set(float64(byReason[reason]))
	}
	return ready, lag
}

// setConditions sets the number of endpoints in each condition.
func (g *gauges) setConditions(rows []sql.CountConditionsRow) {
	n := map[condition.State]int64{}
	for _, r := range rows {
		n[condition.State(r.Condition)] = r.N
	}
	for _, state := range condition.States() {
		g.endpoints.WithLabelValues(string(state)).Set(float64(n[state]))
	}
}
