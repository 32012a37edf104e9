package dashboard_test

import (
	"net/url"
	"testing"

	"posthorn/domain/access"
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
