package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/tools/pagetest"
)

const routingKey = "0123456789abcdef0123456789abcdef"

func TestOperatorsAddAndDeleteAnAlertChannel(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	add := url.Values{
		"preset": {"pagerduty"}, "pagerduty_routing_key": {routingKey}, "url": {"https://events.pagerduty.com/v2/enqueue"}, "description": {"On-call"},
	}
	if res := w.send("POST", "/console/alerts/channels", add, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	page := w.page("/console/alerts")
	if !strings.Contains(page, "On-call") || !strings.Contains(page, "whsec_") || !strings.Contains(page, `id="new-key"`) || strings.Contains(page, routingKey) {
		t.Error("the page after lacks the channel, its secret or the key, or has the variable")
	}
	if again := w.page("/console/alerts"); strings.Contains(again, "whsec_") || strings.Contains(again, `id="new-key"`) || strings.Count(again, "On-call") < 9 {
		t.Error("a secret is shown twice, or a kind lacks its channel")
	}
	if n := w.ask(`SELECT count(*) FROM endpoints e JOIN platform p ON true WHERE e.event_types = '{posthorn.platform.*}' AND e.transformation IS NOT NULL
		AND e.status = 'unverified' AND e.verification = 'simple'`); n != 1 {
		t.Errorf("%d channels", n)
	}
	add.Set("description", "Second")
	if res := w.send("POST", "/console/alerts/channels", add, w.cookie); res.Code != http.StatusSeeOther {
		t.Fatalf("%d %s", res.Code, res.Body)
	}
	if page := w.page("/console/alerts"); strings.Contains(page, `id="new-key"`) || !strings.Contains(page, "Second") {
		t.Error("the platform's tenant was created twice, or the second channel is not listed")
	}
	var channel [16]byte
	if err := w.sql.QueryRow(t.Context(), "SELECT id FROM endpoints WHERE description = 'On-call'").Scan(&channel); err != nil {
		t.Fatal(err)
	}
	remove := "/console/alerts/channels/" + id.Endpoint.Format(channel) + "/delete"
	if res := w.send("POST", remove, nil, w.cookie); res.Code != http.StatusSeeOther {
		t.Errorf("%d %s", res.Code, res.Body)
	}
	if res := w.send("POST", remove, nil, w.cookie); res.Code != http.StatusNotFound {
		t.Errorf("deleted twice: %d", res.Code)
	}
	acme := w.tenant("Acme")
	theirs := w.endpoint(acme, "https://a.example.com/", "active", 0)
	if res := w.send("POST", "/console/alerts/channels/"+id.Endpoint.Format(theirs)+"/delete", nil, w.cookie); res.Code != http.StatusNotFound {
		t.Errorf("a tenant's endpoint as a channel: %d", res.Code)
	}
	if n := w.ask("SELECT count(*) FROM endpoints WHERE deleted_at IS NULL"); n != 2 {
		t.Errorf("%d endpoints are left", n)
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE actor_kind = 'operator' AND action IN ('endpoint.create', 'endpoint.delete', 'platform.tenant_created') AND details::text NOT LIKE '%" + routingKey + "%'"); n != 4 {
		t.Errorf("%d entries in the audit log, want 4", n)
	}
}

func TestAChannelWithAnErrorIsNotAdded(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	for name, form := range map[string]url.Values{
		"no address":      {"preset": {"slack"}},
		"a private one":   {"preset": {"slack"}, "url": {"https://10.0.0.1/x"}},
		"no https":        {"url": {"ftp://a.example.com"}},
		"a long name":     {"url": {"https://a.example.com"}, "description": {strings.Repeat("x", 5000)}},
		"a long variable": {"preset": {"pagerduty"}, "url": {"https://a.example.com"}, "pagerduty_routing_key": {strings.Repeat("x", 9000)}},
	} {
		res := w.send("POST", "/console/alerts/channels", form, w.cookie)
		if page := res.Body.String(); res.Code != http.StatusBadRequest || !strings.Contains(page, "No channel added") || len(pagetest.Faults(page)) > 0 {
			t.Errorf("%s: %d %v", name, res.Code, pagetest.Faults(page))
		}
	}
	if n := w.ask("SELECT count(*) FROM endpoints"); n != 0 {
		t.Errorf("%d endpoints", n)
	}
}

func TestOperatorsMuteAKindOfAlertAndSeeWhatIsOpen(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	if page := w.page("/console/alerts"); !strings.Contains(page, "No alerts") || !strings.Contains(page, "op@example.com") {
		t.Error("an empty page does not say what will be there, or who gets mails")
	}
	w.exec("RESET ROLE")
	w.exec(`INSERT INTO posthorn.platform_alerts (id, kind, key, title, message, page, opened_at, seen_at, sent)
		VALUES ($1, 'host_down', 'a.example', 'a.example: down for 2 tenants.', '<b>facts</b>', '', now(), now(), true)`, db.NewID())
	w.exec(`INSERT INTO posthorn.platform_alerts (id, kind, key, title, message, page, opened_at, seen_at, ended_at)
		VALUES ($1, 'worker_lost', '', '1 worker stopped', 'facts', '', now(), now(), now())`, db.NewID())
	w.exec("SET ROLE posthorn_console")
	if page := w.page("/console/alerts"); !strings.Contains(page, "down for 2 tenants") || !strings.Contains(page, "resolved") || strings.Contains(page, "<b>facts") {
		t.Error("the page lacks an alert, or has its text as markup")
	}
	mute := func(kind, muted string) int {
		return w.send("POST", "/console/alerts/mute", url.Values{"kind": {kind}, "muted": {muted}}, w.cookie).Code
	}
	if code := mute("host_down", "true"); code != http.StatusSeeOther || !strings.Contains(w.page("/console/alerts"), ">muted<") {
		t.Errorf("%d, or the page does not say that it is muted", code)
	}
	if n := w.ask("SELECT count(*) FROM platform WHERE settings #>> '{alerts,host_down}' = 'false'"); n != 1 {
		t.Error("it is not stored")
	}
	if code := mute("host_down", "false"); code != http.StatusSeeOther || strings.Contains(w.page("/console/alerts"), ">muted<") {
		t.Errorf("%d, or it is muted still", code)
	}
	for _, kind := range []string{"", "junk", "no_worker", "tenant"} {
		if code := mute(kind, "true"); code != http.StatusNotFound {
			t.Errorf("%q was muted: %d", kind, code)
		}
	}
	if n := w.ask("SELECT count(*) FROM audit_log WHERE action = 'platform.updated' AND actor_kind = 'operator'"); n != 2 {
		t.Errorf("%d entries in the audit log, want 2", n)
	}
}
