package worker

import (
	"fmt"
	"testing"
)

// A tenant with invented event types must not fill the memory of the metrics store.
func TestEventTypesBeyondTheFirstShareALabel(t *testing.T) {
	t.Parallel()
	m, labels := newMetrics(nil, nil), map[string]bool{}
	for i := range 3 * maxTypes {
		labels[m.typeLabel(fmt.Sprintf("order.%d", i))] = true
	}
	if len(labels) != maxTypes+1 || !labels["other"] || m.typeLabel("order.0") != "order.0" {
		t.Errorf("%d labels", len(labels))
	}
}
