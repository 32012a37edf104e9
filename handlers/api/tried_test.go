package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/handlers/api"
)

// dryRun tries a subscription of an endpoint and returns the verdicts by event.
func (w *world) dryRun(tn tenant, ep string, body any) (api.DryRun, map[string]api.DryRunVerdict) {
	w.t.Helper()
	var r api.DryRun
	w.do("POST", "/api/v1/endpoints/"+ep+"/filter/dry-run", tn.key, body).want(http.StatusOK).into(&r)
	by := map[string]api.DryRunVerdict{}
	for _, v := range r.Data {
		by[v.EventID] = v
	}
	return r, by
}

func TestADryRunShowsWhichPastEventsAFilterTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("A"), w.tenant("B")
	ep := w.active(tn, map[string]any{"event_types": []string{"order.*"}, "filter": "data.amount > 5", "channels": []string{"eu"}})
	large := w.emit(tn, map[string]any{"data": map[string]any{"amount": 9}, "channels": []string{"eu"}})
	small := w.emit(tn, map[string]any{"data": map[string]any{"amount": 2}, "channels": []string{"eu"}})
	bare := w.emit(tn, map[string]any{"data": map[string]any{}, "channels": []string{"eu"}})
	apart := w.emit(tn, nil)
	user := w.emit(tn, map[string]any{"type": "user.made"})
	gone := w.emit(tn, map[string]any{"channels": []string{"eu"}})
	w.SQL("UPDATE events SET data = NULL WHERE id = $1", w.uuid(id.Event, gone))
	w.emit(other, nil)

	r, by := w.dryRun(tn, ep, nil)
	for event, want := range map[string]struct{ clause, says string }{
		large: {"", "matches this event"},
		small: {"filter", "returns false"},
		bare:  {"filter", "the field amount is missing"},
		apart: {"channel", "no channel"},
		gone:  {"filter", "expunged"},
	} {
		v := by[event]
		clause, _ := v.Clause.Get()
		if string(clause) != want.clause || v.Matched != (want.clause == "") || !strings.Contains(v.Detail, want.says) ||
			v.Unsure != (event == gone) {
			t.Errorf("%s: %+v", want.says, v)
		}
	}
	if len(r.Data) != 5 || r.Matched != 1 || !r.Complete || r.Data[0].EventID != gone || r.Data[4].EventID != large {
		t.Errorf("saved: %+v", r)
	}
	if r, by := w.dryRun(tn, ep, `{"filter":null,"channels":[],"event_types":["order.paid","user.*"]}`); r.Matched != 6 || !by[user].Matched {
		t.Errorf("given: %+v", r)
	}
	if r, by := w.dryRun(tn, ep, `{"all_types":true,"limit":2}`); len(r.Data) != 2 || by[user].Matched || !strings.Contains(by[user].Detail, "event type") {
		t.Errorf("all types: %+v", r)
	}
	if got := w.do("GET", "/api/v1/endpoints/"+ep, tn.key, nil).text("filter"); got != "data.amount > 5" || w.audited(tn, "endpoint.update") != 0 {
		t.Errorf("the endpoint was changed: %s", got)
	}
}

func TestADryRunRefusesWhatAnEndpointCouldNotHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	path := "/api/v1/endpoints/" + w.active(tn, nil) + "/filter/dry-run"
	for body, want := range map[string][]string{
		`{"filter":"no such("}`:             {"filter_invalid", "filter"},
		`{"event_types":[]}`:                {"event_types_count", "event_types"},
		`{"event_types":["*.a"]}`:           {"event_type_pattern_invalid", "event_types"},
		`{"channels":["a b"],"filter":"1"}`: {"channel_malformed", "channels", "filter"},
		`{"limit":0}`:                       {"limit_range", "limit"},
		`{"limit":251}`:                     {"limit_range", "limit"},
		`{"url":"https://a.example"}`:       {"unknown_field", "url"},
	} {
		w.do("POST", path, tn.key, body).problem(http.StatusBadRequest, want[0], want[1:]...)
	}
}

func TestADryRunOverLargeEventsEndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.active(tn, nil)
	event := w.emit(tn, nil)
	// 100 events of 240 KiB each: more than one dry run reads.
	w.SQL(`INSERT INTO events (tenant_id, created_at, id, type, data, routing_version)
		SELECT tenant_id, posthorn.created_at(u.id), u.id, type, convert_to('{"list":[' || repeat('1234567,', 30000) || '1]}', 'UTF8'), 1
		FROM events e, LATERAL (SELECT overlay(overlay(gen_random_uuid()::text placing left(e.id::text, 13) from 1) placing '7' from 15)::uuid AS id
			FROM generate_series(1, 100)) u WHERE e.id = $1`, w.uuid(id.Event, event))
	began := time.Now()
	r, _ := w.dryRun(tn, ep, `{"limit":250,"filter":"data.list.exists(x, x == 2)"}`)
	if took := time.Since(began); took > 4*time.Second || r.Complete || len(r.Data) == 0 || len(r.Data) > 80 {
		t.Errorf("%d events in %v, complete: %v", len(r.Data), took, r.Complete)
	}
	for _, v := range r.Data {
		if !v.Matched && !strings.Contains(v.Detail, "too expensive") && !strings.Contains(v.Detail, "missing") {
			t.Fatalf("%+v", v)
		}
	}
}
