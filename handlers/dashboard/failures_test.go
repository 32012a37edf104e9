package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestAnEndpointsFailuresAreGroupedByTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	path := tn.path + "/endpoints/" + id.Endpoint.Format(ep)
	dev.get(path).want(200).lacks("Failures by response")
	dev.get(path+"/failures").want(200, "No failures")
	for i := range 7 {
		dlv := w.delivery(w.emit(tn, "order.paid", fmt.Sprint(i)))
		if i < 5 {
			w.attempt(dlv, tried{status: 422, answer: fmt.Sprintf(`{"message":"currency XTS is unknown in <order> %d"}`, i), terminal: 3, reason: 2})
		} else {
			w.attempt(dlv, tried{failure: 3})
		}
	}
	page := dev.get(path).want(200, "Failures by response", "currency XTS is unknown in &lt;order&gt; …", "5 of 7", "2 of 7", path+"/failures?group=").keep("failures")
	if n := strings.Count(page.Body, ">Replay…<"); n != 1 {
		t.Errorf("%d groups offer a replay, want the one that is not retried", n)
	}
	dev.get(tn.path+"/deliveries?status=dead_letter&endpoint="+id.Endpoint.Format(ep)).want(200, "Group by response")

	group := regexp.MustCompile(`href="(` + path + `/failures\?group=[a-z0-9]+)"`).FindStringSubmatch(page.Body)[1]
	chosen := dev.get(group).want(200, "5 of 7 failures", "Replay…").keep("failures-group")
	ids := confirmed(chosen)["id"]
	if n := len(listed(chosen)); n != 5 || len(ids) != 5 {
		t.Errorf("the group has %d rows, and its replay %d", n, len(ids))
	}
	dev.post(tn.path+"/deliveries/bulk", url.Values{"action": {"replay"}, "id": ids}).want(200, "Replay 5 deliveries", "Send one first")
	viewer.get(group).want(200, "5 of 7 failures").lacks("Replay…")
	dev.get(path+"/failures?group=gone").want(200, "None left")

	// Who sees no responses sees no texts of them.
	w.setting(tn, "viewers_read_payloads", false)
	viewer.get(path+"/failures").want(200, "422", "5 of 7").lacks("XTS")
	viewer.get(group).want(http.StatusOK, "None left").lacks("XTS")
}
