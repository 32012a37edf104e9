package maintenance

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

func TestTheLogOfAWarningNamesTheTenantAndHasNoDateWhereThereIsNone(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Registry: prometheus.NewRegistry()})
	tenant, ep, at := db.NewID(), db.NewID(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m.assessed(tenant, ep, endpoints.Assessment{Warned: []health.Warning{
		{Reason: health.Auth, Stage: health.Approaching, Left: 5}, {
			Reason:    health.Unhealthy,
			Stage:     health.Approaching,
			DisableAt: at,
		},
	}})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || strings.Contains(log.String(), "0001-01-01") || !strings.Contains(lines[0], "failures_left=5") ||
		!strings.Contains(lines[1], "at=2026-03-01T12:00:00.000Z") {
		t.Errorf("%s", log.String())
	}
	for _, line := range lines {
		if !strings.Contains(line, "tenant="+id.Tenant.Format(tenant)) || !strings.Contains(line, "endpoint="+id.Endpoint.Format(ep)) {
			t.Errorf("%s names no tenant or no endpoint", line)
		}
	}
}
