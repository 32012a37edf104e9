package condition_test

import (
	"strings"
	"testing"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/pause"
)

// What an endpoint's state means for new events depends on whether it holds or drops them, and it is said.
func TestAConditionSaysWhetherEventsAreDropped(t *testing.T) {
	t.Parallel()
	for _, status := range endpoint.Statuses() {
		for _, scope := range []pause.Scope{"", pause.Endpoint} {
			holds := condition.Of(condition.Facts{Status: status, Scope: scope, Reason: "gone"}, now)
			drops := condition.Of(condition.Facts{Status: status, Scope: scope, Reason: "gone", Drops: true}, now)
			if holds.Drops || drops.Drops != (status != endpoint.Active) {
				t.Errorf("%s: holding drops %t, dropping drops %t", status, holds.Drops, drops.Drops)
			}
			if strings.Contains(holds.Detail(), "dropped") {
				t.Errorf("%s that holds: %s", status, holds.Detail())
			}
			if text := drops.Detail(); status != endpoint.Active &&
				(!strings.Contains(text, "New events are dropped") || strings.Contains(text, "held")) {
				t.Errorf("%s that drops: %s", status, text)
			}
		}
	}
	if text := condition.PauseText(true); !strings.Contains(text, "dropped") || strings.Contains(text, "held") {
		t.Errorf("before a pause: %s", text)
	}
	if text := condition.PauseText(false); !strings.Contains(text, "held") {
		t.Errorf("before a pause: %s", text)
	}
}
