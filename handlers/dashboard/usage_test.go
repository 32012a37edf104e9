package dashboard_test

import (
	"testing"

	"posthorn/domain/access"
)

func TestTheSettingsPageShowsLimitsAndUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("Acme")
	w.endpoint(tn, "https://hooks.example.com/in")
	tn.of[access.Owner].get(tn.path+"/settings").want(200, "0 (unlimited)", "1 of 50", "256 KiB of data")
	w.SQL(`UPDATE tenants SET settings = '{"limits":{"events_per_month":4000,"events_per_second":20}}' WHERE id = $1`, tn.id.String())
	tn.of[access.Owner].get(tn.path+"/settings").want(200, "0 of 4,000", "at most 20", "Resets on")
}
