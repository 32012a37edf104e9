package worker

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
)

// metrics are the engine's metrics, with names that are common in the field.
type metrics struct {
	attempts *prometheus.CounterVec
	latency  prometheus.Histogram
	late     prometheus.Counter
	pauses   prometheus.Gauge
	steps    prometheus.Counter
	proxies  *prometheus.CounterVec
	known    map[string]struct{} // event types that have a label of their own; only the recorder uses it
}

// maxTypes is the maximum number of labels for event types; further types are counted as "other".
const maxTypes = 200

func newMetrics(r prometheus.Registerer, listenAge func() time.Duration) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attempts_total",
			Help: "Requests made to endpoints.",
		}, []string{"event_type", "http_status_class", "outcome", "tier"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "attempt_latency_seconds",
			Help:    "Time from the start of a request to the end of its response.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30},
		}),
		late: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "attempts_late_total",
			Help: "Results that came after their delivery had moved on, and changed nothing.",
		}),
		pauses: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "posthorn_dispatch_pauses",
			Help: "Pauses of dispatch by operators that this worker keeps to.",
		}),
		steps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "clock_steps_total",
			Help: "Times that the database's clock was set by more than five seconds; retries were moved with it.",
		}),
		proxies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "posthorn_egress_proxy_failures_total",
			Help: "Requests that were not sent because an egress proxy failed, by the proxy's tenant.",
		}, []string{"proxy"}),
		known: map[string]struct{}{},
	}
	m.proxies.WithLabelValues("platform") // no alert fires for a counter that appears with its first event
	if r != nil {
		r.MustRegister(m.attempts, m.latency, m.late, m.pauses, m.steps, m.proxies, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "listen_age_seconds",
			Help: "Time since the connection that receives notifications last showed that it is alive.",
		}, func() float64 { return listenAge().Seconds() }))
	}
	return m
}

func (m *metrics) count(o *queue.Outcome, late bool) {
	if late {
		m.late.Inc()
	}
	if o.Attempt == nil {
		return
	}
	m.latency.Observe((time.Duration(o.Attempt.Total) * time.Microsecond).Seconds())
	m.attempts.WithLabelValues(m.typeLabel(o.EventType), statusClass(o.Result), o.Decision.Status.String(), tier(o.Attempts)).Inc()
}

func (m *metrics) typeLabel(name string) string {
	if _, ok := m.known[name]; ok {
		return name
	}
	if len(m.known) >= maxTypes {
		return "other"
	}
	m.known[name] = struct{}{}
	return name
}

func statusClass(r delivery.Result) string {
	if r.Failure != delivery.FailNone {
		return r.Failure.String()
	}
	if class := r.Status / 100; class >= 1 && class <= 5 {
		return strconv.Itoa(class) + "xx"
	}
	return "other"
}

// tier tells first attempts from retries.
func tier(attempts int16) string {
	if attempts <= 1 {
		return "first"
	}
	return "retry"
}
