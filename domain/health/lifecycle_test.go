package health_test

import (
	"testing"

	"posthorn/domain/endpoint"
	"posthorn/domain/health"
)

func TestOnlyAnActiveEndpointReceives(t *testing.T) {
	t.Parallel()
	for _, s := range endpoint.Statuses() {
		if health.Holds(s) != (s != endpoint.Active) {
			t.Errorf("%s holds: %t", s, health.Holds(s))
		}
	}
}
