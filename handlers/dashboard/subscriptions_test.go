package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
)

// subscription stores a subscription whose endpoint is this one.
func (w *world) subscription(tn tenant, endpoint id.UUID) string {
	w.t.Helper()
	name := mcp.ID("auth0|ada", endpoint.String(), "order.paid", "{}")
	w.SQL(`INSERT INTO subscriptions (tenant_id, id, endpoint_id, principal, event_type, arguments, cursor, expires_at)
		VALUES ($1, $2, $3, 'auth0|ada', 'order.paid', '{"severity":"P1"}', '', now() + interval '1 day')`, tn.id.String(), name, endpoint.String())
	return name
}

func TestAMemberSeesAndRevokesSubscriptionsByPrincipal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	owner, path := tn.of[access.Owner], tn.path+"/subscriptions"
	owner.get(path).want(200, "AI clients", "No subscriptions yet")
	made := w.things(tn)
	owner.get(path).want(200, "auth0|ada", "order.paid", "Revoke subscription")
	owner.get(path+"?principal=auth0%7Cbob").want(200, "This principal has no subscriptions")
	owner.get(path+"?principal=a%0Ab").want(http.StatusBadRequest, "A principal has 1 to 200 visible characters")
	revoke := path + "/" + made["subscription_id"] + "/revoke"
	tn.of[access.Viewer].get(path).want(200, "auth0|ada").lacks("Revoke subscription")
	tn.of[access.Viewer].post(revoke, nil).want(http.StatusForbidden)
	owner.next(revoke, nil).want(200, "Revoked the subscription.", "No subscriptions yet")
	owner.post(revoke, nil).want(http.StatusNotFound)
}
