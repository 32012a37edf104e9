package main

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"posthorn/domain/home"
)

// newRegistry holds the metrics of this process; the rooms that measure register theirs with it.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "posthorn_build_info",
		Help: "1, with the version that runs.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(buildVersion(), runtime.Version()).Set(1)
	registry.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// emitRoutes are the routes by which events come in.
var emitRoutes = []string{
	"/api/v1/events", "/api/v1/events/batch", "/api/v1/tenants/:tenant_id/events", "/api/v1/tenants/:tenant_id/events/batch",
}

// httpMetrics counts requests by route template and status. Labels are bounded: what matches no route is one label.
type httpMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newHTTPMetrics(registry prometheus.Registerer) *httpMetrics {
	m := &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "posthorn_http_requests_total",
			Help: "Requests, by route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "posthorn_http_request_seconds",
			Help:    "Time from a request's header to the end of its response.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"method", "route"}),
	}
	// A counter that begins with its first event has not increased by it: the alert on rejected events needs its zeros.
	for _, route := range emitRoutes {
		for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable} {
			m.requests.WithLabelValues(http.MethodPost, route, strconv.Itoa(status))
		}
	}
	registry.MustRegister(m.requests, m.seconds)
	return m
}

// homeMetrics serves the state of each home as a web process knows it.
type homeMetrics func() []home.Seen

var homeUp = prometheus.NewDesc("posthorn_home_up", "1 where a home responds and is ready.", []string{"home"}, nil)

func (homeMetrics) Describe(c chan<- *prometheus.Desc) { c <- homeUp }

func (m homeMetrics) Collect(c chan<- prometheus.Metric) {
	for _, seen := range m() {
		var up float64
		switch seen.State {
		case home.Unknown: // unknown before the first result
			continue
		case home.Operational:
			up = 1
		}
		c <- prometheus.MustNewConstMetric(homeUp, prometheus.GaugeValue, up, seen.Name)
	}
}

// observe is a middleware inside the one that recovers from panics.
func (m *httpMetrics) observe(c *gin.Context) {
	started, status := time.Now(), http.StatusInternalServerError
	defer func() {
		method, route := c.Request.Method, c.FullPath()
		if route == "" {
			method, route = "other", "unmatched" // a stranger picks both
		}
		m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
		m.seconds.WithLabelValues(method, route).Observe(time.Since(started).Seconds())
	}()
	c.Next()
	status = c.Writer.Status()
}

// diagnostics is the handler of the metrics address: metrics, profiles, and the health of processes without another
// address. It is only for operators, so it listens on loopback by default.
func diagnostics(registry *prometheus.Registry, ready *readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.HandleFunc("GET /healthz", ready.serveHealth)
	mux.HandleFunc("GET /readyz", ready.serveReady)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
