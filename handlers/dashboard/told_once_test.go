package dashboard_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
)

// An endpoint that was disabled because it returned 401 ten times shows ten failures, and nothing of a breaker that is
// closed.
func TestAnEndpointDisabledFor401sCountsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	w.SQL("UPDATE endpoints SET status = 'disabled', status_reason = 'auth', status_at = now() WHERE id = $1", ep.String())
	w.SQL(`INSERT INTO endpoint_health (tenant_id, endpoint_id, auth_streak, last_status, last_failure_at, first_failure_at)
		VALUES ($1, $2, 10, 401, now(), now() - interval '1 hour')`, tn.id.String(), ep.String())
	page := tn.of[access.Owner].get(tn.path+"/endpoints/"+id.Endpoint.Format(ep)).want(http.StatusOK, "Endpoint disabled").lacks("breaker is closed")
	_, failures, _ := strings.Cut(page.Body, "Failures in a row")
	if failures, _, _ = strings.Cut(failures, "since the last success"); !strings.Contains(failures, ">10 ") {
		t.Errorf("failures in a row: %s", failures)
	}
}

// The page of an event lists the endpoints of its time, but none that was deleted long before, nor a listener that had
// ended.
func TestAnEventHidesEndpointsDeletedLongBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	for _, name := range []string{"present endpoint", "deleted an hour before", "deleted long before", "ended listener"} {
		w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description, s.EventTypes = name, []string{"cart.*"} })
	}
	ev := w.emit(tn, "order.paid", `{}`)
	w.SQL("UPDATE endpoints SET deleted_at = now() - interval '1 hour' WHERE description IN ('deleted an hour before', 'ended listener')")
	w.SQL("UPDATE endpoints SET kind = 'listen' WHERE description = 'ended listener'")
	w.SQL("UPDATE endpoints SET deleted_at = now() - interval '2 days' WHERE description = 'deleted long before'")
	tn.of[access.Owner].get(tn.path+"/events/"+id.Event.Format(ev)).want(http.StatusOK, "present endpoint", "deleted an hour before").
		lacks("deleted long before", "ended listener")
}

// An open page of a removed member, or of a deleted tenant, does not poll forever: the poll's status makes the script
// load the page again, and the page explains why.
func TestAnOpenPageOfARemovedMemberIsLoadedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	viewer := tn.of[access.Viewer]
	viewer.get(tn.path+"/live", "HX-Request", "true").want(http.StatusOK)
	w.SQL("DELETE FROM memberships WHERE tenant_id = $1 AND role = 'viewer'", tn.id.String())
	viewer.get(tn.path+"/live", "HX-Request", "true").want(http.StatusNotFound)
	viewer.get(tn.path+"/").want(http.StatusNotFound, "<main", "doesn&#39;t exist, was deleted, or belongs to another tenant")
	script, err := os.ReadFile(filepath.Join("..", "..", "static", "js", "app.js"))
	if err != nil {
		t.Fatal(err)
	}
	_, rule, found := strings.Cut(string(script), "].includes(status)")
	before, _, _ := strings.Cut(string(script), "].includes(status)")
	if !found || !strings.Contains(before[strings.LastIndex(before, "["):], "404") || !strings.Contains(rule[:400], "location.reload()") {
		t.Error("the script does not load a page again whose poll answers 404")
	}
}
