package dashboard_test

import (
	"net/url"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestATransformationIsEditedBesidePastEvents(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	w.activate(path)
	owner.get(path+"/transformation").want(200, "No events to try it on")
	for _, data := range []string{`{"total":50,"name":"<Anna>"}`, `{"total":500}`} {
		owner.post(path+"/test", url.Values{"type": {"order.completed"}, "data": {data}}).to(path + "/test?delivery=dlv_")
	}
	owner.get(path+"/transformation").want(200, "Before", "After", "Run over the last 50 events")
	form := func(change ...string) url.Values {
		f := url.Values{"kind": {"cel"}, "expression": {`{"text": data.name, "key": vars.key}`}, "variables": {"key: canary-value"}}
		for i := 0; i < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		return f
	}
	// Trying changes nothing and shows no value of a variable that is stored.
	owner.post(path+"/transformation/try", form("do", "all")).want(200, "the field name is missing").keep("transformation-run")
	owner.get(path + "/transformation").want(200).lacks("data.name")
	owner.post(path+"/transformation", form()).to(path + "/transformation")
	owner.get(path+"/transformation").want(200, "data.name", "key: ***").lacks("canary-value").keep("transformation")
	owner.post(path+"/transformation/try", form("variables", "key: ***")).want(200).lacks("canary-value")
	owner.post(path+"/transformation", form("expression", `{"text": `)).want(400, `id="f-expression-error"`, "The error is here").keep("transformation-refused")
	owner.post(path+"/transformation", form("headers", "Host: \"x\"")).want(400, `id="f-headers-error"`)
	owner.post(path+"/transformation/try", form("do", "preset", "preset", "pagerduty", "variables", "")).want(200, "event_action", "routing_key:")
	owner.post(path+"/transformation", url.Values{"kind": {"full"}}).to(path + "/transformation")
	owner.get(path + "/transformation").want(200).lacks("data.name")
	viewer := w.as(access.Viewer)
	viewer.get(path + "/transformation").want(200).lacks("Save transformation")
	viewer.post(path+"/transformation", form()).want(403)
}

// TestARequestIsShownWithItsMethod: as the transformation has it, in the line above the headers and in the command.
func TestARequestIsShownWithItsMethod(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add()
	w.activate(path)
	owner.post(path+"/transformation", url.Values{"kind": {"cel"}, "expression": {"data"}, "method": {"PUT"}}).to(path + "/transformation")
	dlv := w.delivery(w.emit(w.tn, "order.completed", `{"total":50}`))
	w.attempt(dlv, tried{status: 200, terminal: 2})
	w.SQL(`UPDATE attempts SET format = json_build_object('format', 'standard', 'transformed', (SELECT max(routing_version) FROM transformations))::text`)
	shown := w.root + "/deliveries/" + id.Delivery.Format(dlv)
	owner.get(shown).want(200, "<b>PUT</b>", "curl -sS -X PUT ").lacks("<b>POST</b>", "-X POST")
	owner.post(shown+"/share", url.Values{"expires_in": {"3600"}})
	link := sharedLink.FindStringSubmatch(owner.get(shown).Body)
	if link == nil {
		t.Fatal("no link")
	}
	w.stranger().open(link[1]).want(200, "<b>PUT</b>").lacks("<b>POST</b>")
}
