package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/handlers/api"
)

// routing asks who got an event, and gives the verdicts by endpoint.
func (w *world) routing(tn tenant, event string) (api.EventRouting, map[string]api.RoutingVerdict) {
	w.t.Helper()
	var r api.EventRouting
	w.do("GET", "/api/v1/events/"+event+"/routing", tn.key, nil).want(http.StatusOK).into(&r)
	by := map[string]api.RoutingVerdict{}
	for _, v := range r.Data {
		by[v.EndpointID] = v
	}
	return r, by
}

func (w *world) clause(v api.RoutingVerdict) string {
	c, err := v.Clause.Get()
	if err != nil {
		return ""
	}
	return string(c)
}

func TestRoutingExplainsThePastNotThePresent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	all := w.endpoint(tn, map[string]any{"description": "all", "url": hook + "?token=secret"}).text("id")
	users := w.endpoint(tn, map[string]any{"event_types": []string{"user.*"}}).text("id")
	filtered := w.endpoint(tn, map[string]any{"filter": "data.total > 5"}).text("id")
	gone := w.endpoint(tn, nil).text("id")
	before := w.endpoint(tn, nil).text("id")
	w.do("DELETE", "/api/v1/endpoints/"+before, tn.key, nil).want(http.StatusNoContent)
	event := w.emit(tn, nil)
	// What happens afterwards changes nothing.
	later := w.endpoint(tn, nil).text("id")
	w.do("DELETE", "/api/v1/endpoints/"+gone, tn.key, nil).want(http.StatusNoContent)
	for _, ep := range []string{users, filtered} {
		w.do("PATCH", "/api/v1/endpoints/"+ep, tn.key, map[string]any{"event_types": []string{"*"}, "filter": nil}).want(http.StatusOK)
	}
	r, by := w.routing(tn, event)
	for ep, want := range map[string]struct {
		matched, held, gone bool
		clause, says        string
	}{
		all:      {true, true, false, "state", "not verified yet"},
		users:    {false, false, false, "type", "does not subscribe"},
		filtered: {false, false, false, "filter", "the field total is missing"},
		gone:     {true, true, true, "state", "held"},
		before:   {false, false, true, "deleted", "deleted before"},
		later:    {false, false, false, "later", "created after"},
	} {
		v := by[ep]
		_, err := v.DeliveryID.Get()
		if v.Matched != want.matched || v.Held != want.held || v.Gone != want.gone || w.clause(v) != want.clause ||
			!strings.Contains(v.Detail, want.says) || (err == nil) != want.matched {
			t.Errorf("%s: %+v", want.says, v)
		}
	}
	if len(r.Data) != 6 || r.Matched != 2 || r.Direct || r.Expunged || r.Truncated || !strings.HasPrefix(r.Summary, "Matched 2 of 4 endpoints") {
		t.Errorf("%+v", r)
	}
	if v := by[all]; v.Description != "all" || strings.Contains(v.URL, "secret") {
		t.Errorf("%+v", v)
	}
	at := func(ep string) int {
		return slices.IndexFunc(r.Data, func(v api.RoutingVerdict) bool { return v.EndpointID == ep })
	}
	if at(later) != 0 || at(gone) < at(all) {
		t.Errorf("the order is not: there first, newest first")
	}
}

func TestRoutingOfATestOfExpungedDataAndOfNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	lonely := w.emit(tn, nil)
	orders := w.active(tn, map[string]any{"event_types": []string{"order.*"}, "filter": map[string]any{"amount": 1}})
	w.active(tn, map[string]any{"event_types": []string{"*"}, "filter": "data.amount > 5"})
	test := w.do("POST", "/api/v1/endpoints/"+orders+"/test", tn.key, `{"data":{"amount":9}}`).want(http.StatusAccepted).text("id")
	if r, by := w.routing(tn, test); !r.Direct || r.Matched != 1 || w.clause(by[orders]) != "direct" || !by[orders].Matched {
		t.Errorf("test: %+v", r)
	}
	if r, _ := w.routing(tn, lonely); r.Matched != 0 || r.Summary != "Sent to no endpoint: the tenant had none when the event was accepted." {
		t.Errorf("nobody: %+v", r)
	}
	event := w.emit(tn, nil)
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", w.uuid(id.Event, event))
	r, by := w.routing(tn, event)
	for ep, v := range by {
		if v.Matched != (ep == orders) || v.Unsure == v.Matched {
			t.Errorf("expunged: %+v", v)
		}
	}
	if !r.Expunged || r.Matched != 1 {
		t.Errorf("expunged: %+v", r)
	}
}

func TestRoutingIsThereForAsLongAsItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	event := w.emit(tn, nil)
	old := w.backdate(tn, event, 91*24*time.Hour)
	w.do("GET", "/api/v1/events/"+old+"/routing", tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("GET", "/api/v1/events/"+event+"/routing", tn.key, nil).want(http.StatusOK)
}
