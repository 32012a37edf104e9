package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"posthorn/domain/access"
)

func TestThePageOfAlertsSaysWhereEachKindIsSentAndMutesIt(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, viewer, page := w.as(access.Owner), w.as(access.Viewer), w.root+"/alerts"
	ownersAddress := fmt.Sprintf("owner-%x@example.com", w.tn.id[:])
	owner.get(page).want(200, "A signing secret was rotated", "endpoint.warning", "Add a channel", `name="kind" value="digest"`, ">None<").keep("alerts-empty")
	w.add("scope", "some", "patterns", "posthorn.secret.*", "description", "Night shift")
	owner.get(page).want(200, "Night shift", ownersAddress, "Condition", "Deliveries to Night shift").keep("alerts")
	viewer.get(page).want(200, "recipients").lacks("secret.rotated", "/alerts/mute", "Add a channel", ownersAddress)
	viewer.post(page+"/mute", url.Values{"kind": {"key.created"}, "muted": {"true"}}).want(http.StatusForbidden)
	owner.post(page+"/mute", url.Values{"kind": {"nonsense"}, "muted": {"true"}}).want(http.StatusNotFound)
	for _, kind := range []string{"secret.rotated", "digest"} {
		owner.post(page+"/mute", url.Values{"kind": {kind}, "muted": {"true"}}).to(page)
	}
	owner.get(page).want(200, ">muted<", ">Unmute<").keep("alerts-muted")
	if got := one[string](w.world, "SELECT settings::text FROM tenants WHERE id = $1", w.tn.id.String()); got != `{"no_digest": true, "muted_notices": ["secret.rotated"]}` {
		t.Errorf("saved %s", got)
	}
	for _, kind := range []string{"secret.rotated", "digest"} {
		owner.post(page+"/mute", url.Values{"kind": {kind}, "muted": {"false"}}).to(page)
	}
	owner.get(page).want(200).lacks(">muted<", ">Unmute<")
}

func TestAChannelIsAddedWithAPreset(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	owner.get(w.root+"/endpoints/new?for=alerts").want(200, "posthorn.*</textarea>", "Integration key", `value="simple" checked`, `value="pagerduty"`).keep("endpoint-new-alerts")
	owner.get(w.root+"/endpoints/new").want(200).lacks("Integration key", "posthorn.*")
	form := func(key string) url.Values {
		return newForm("for", "alerts", "preset", "pagerduty", "pagerduty_routing_key", key, "scope", "some", "patterns", "posthorn.*",
			"url", "https://events.pagerduty.com/v2/enqueue", "verification", "simple")
	}
	bad := form("canary-key-of-thirty-two-letters")
	bad.Set("url", "nonsense")
	owner.post(w.root+"/endpoints", bad).want(http.StatusBadRequest, `value="canary-key-of-thirty-two-letters"`, `value="pagerduty" selected`)
	created := endpointInPage.FindString(owner.next(w.root+"/endpoints", form("canary-key-of-thirty-two-letters")).want(200).Body)
	owner.get(created+"/transformation").want(200, "event_action", "routing_key: ***").lacks("canary-key-of-thirty-two-letters")
	owner.get(w.root+"/alerts").want(200, created)
}
