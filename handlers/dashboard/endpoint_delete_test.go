package dashboard_test

import (
	"strings"
	"testing"

	"posthorn/domain/access"
)

// TestDeletingAnEndpointSaysHowManyDeliveriesFail: the dialog counts what waits for an active endpoint too.
func TestDeletingAnEndpointSaysHowManyDeliveriesFail(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	path := w.add()
	w.activate(path)
	owner := w.as(access.Owner)
	owner.get(path).want(200, "Delete this endpoint?", "It has no waiting deliveries.")
	kind := one[string](w.world, "SELECT trim(trailing '*' FROM event_types[1]) FROM endpoints WHERE tenant_id = $1", w.tn.id.String())
	if strings.HasSuffix(kind, ".") {
		kind += "x"
	}
	if kind == "" {
		kind = "order.paid"
	}
	w.emit(w.tn, kind, "1")
	owner.get(path).want(200, "1 waiting delivery fails permanently.")
	w.emit(w.tn, kind, "2")
	owner.get(path+"/settings").want(200, "2 waiting deliveries fail permanently.")
}
