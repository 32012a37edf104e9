package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/notice"
)

func TestEventTypesAreMadeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	w.endpoint(tn, "https://hooks.example.com/in", func(s *endpoint.Settings) { s.Description, s.EventTypes = "the shop", []string{"order.*"} })
	viewer.get(tn.path+"/event-types").want(200, "No event types yet").lacks("Create event type")
	viewer.get(tn.path + "/event-types/new").want(http.StatusForbidden)
	form := url.Values{"name": {"order paid"}, "schema_check": {"off"}, "description": {"<b>paid</b>"}, "example": {`{"a": `}}
	dev.post(tn.path+"/event-types", form).want(400, "An event type has", `value="order paid"`)
	form.Set("name", "order.paid")
	form.Set("example", `{"a": 1}`)
	path := dev.post(tn.path+"/event-types", form).to(tn.path + "/event-types/order.paid")
	viewer.get(path).want(200, "&lt;b&gt;paid", "the shop", `<span class="json-name">&#34;a&#34;</span>: <span class="json-number">1</span>`).lacks("<b>paid", "Change")
	dev.post(tn.path+"/event-types", form).want(http.StatusConflict, "with this name already exists")
	dev.get(path+"/edit").want(200, "&lt;b&gt;paid")
	dev.post(path, url.Values{"schema_check": {"off"}, "description": {"when it is paid"}, "deprecated": {"true"}}).to(path)
	dev.get(tn.path+"/event-types").want(200, "when it is paid", "deprecated")
	for _, format := range []string{"openapi", "asyncapi", "json-schema"} {
		viewer.get(tn.path+"/event-types").want(200, "/catalog/"+format)
		file := viewer.get(tn.path + "/catalog/" + format)
		if name := file.Header.Get("Content-Disposition"); file.Status != 200 || name != `attachment; filename="event-types.`+format+`.json"` || !strings.Contains(file.Body, `"order.paid"`) {
			t.Errorf("%s: %d %s %s", format, file.Status, name, file.Body)
		}
	}
	viewer.get(tn.path + "/catalogue/raml").want(http.StatusNotFound)
	dev.post(path+"/delete", nil).to(tn.path + "/event-types")
	dev.get(path).want(http.StatusNotFound)
	for _, action := range []string{"created", "updated", "deleted"} {
		if w.audited(tn, "event_type."+action) != 1 {
			t.Errorf("%s is not audited once", action)
		}
	}
}

func TestAnEventTypeShowsWhatWasSentOfItAndItsVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	w.SQL(`INSERT INTO event_types (tenant_id, name, versions) VALUES ($1, 'order.paid', '{"2":{"schema":{"type":"object"},"example":{"a":"<2>"}},"10":{}}'), ($1, 'cart.left', NULL)`, tn.id.String())
	w.SQL(`INSERT INTO endpoint_stats (tenant_id, endpoint_id, event_type, width, bucket, kind, n, us)
		SELECT $1, $2, t, 3600, date_trunc('hour', now()) - make_interval(days => 3), 0, n, 1000 FROM (VALUES ('order.paid', 4217), ('cart.left', 66)) x(t, n)`, tn.id.String(), ep.String())
	viewer := tn.of[access.Viewer]
	viewer.get(tn.path+"/event-types/order.paid").want(200, "4,217", "Version 2", "&lt;2&gt;", "no example or schema").keep("event-type").lacks("No attempts in these days")
	viewer.get(tn.path+"/event-types/cart.left").want(200, "66").lacks("4,217", "Version")
}

func TestNoticesAreSeenByRoleAndMailedByChoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	ep := w.endpoint(tn, "https://hooks.example.com/in")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	viewer.get(tn.path+"/notices").want(200, "No notices")
	err := w.db.Tenant(t.Context(), tn.id, func(q *db.Tx) error {
		for kind, details := range map[notice.Kind]any{
			notice.EndpointDisabled: notice.EndpointDetails{URL: "https://hooks.example.com/in", Reason: "gone"},
			notice.KeyCreated:       notice.KeyDetails{Name: "<i>Shop</i>"},
		} {
			if _, err := accounts.PostNotice(t.Context(), q, accounts.Notice{
				Tenant:   tn.id,
				Kind:     kind,
				Key:      string(kind),
				Endpoint: &ep,
				Details:  details,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dev.get(tn.path+"/notices").want(200, "An endpoint was disabled", "Reason: gone", "&lt;i&gt;Shop").lacks("<i>Shop")
	dev.get(tn.path+"/alerts").want(200, `value="key.created" checked`).lacks("quota.reached")
	viewer.get(tn.path+"/notices").want(200, "An endpoint was disabled").lacks("API key was created", "Shop")
	dev.post(tn.path+"/notices/preferences", url.Values{"kind": {"digest", "delivery.failed", "quota.reached"}}).to(tn.path + "/alerts")
	dev.get(tn.path+"/alerts").want(200, `value="digest" checked`, `value="delivery.failed" checked`).lacks(`value="key.created" checked`, "quota.reached")
	dev.post(tn.path+"/notices/preferences", url.Values{"kind": {"digest", "delivery.failed"}}).to(tn.path + "/alerts")
	if n := w.audited(tn, "notice_preferences.changed"); n != 1 {
		t.Errorf("the choice is audited %d times", n)
	}
}
