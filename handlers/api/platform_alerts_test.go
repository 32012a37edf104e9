package api_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
)

func TestAPlatformKeyReadsTheAlertsOfThePlatformAndMutesKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	const all = "/api/v1/platform/alerts"
	if data := w.do("GET", all, w.platform, nil).want(200).get("data").([]any); len(data) != 0 {
		t.Errorf("%v", data)
	}
	w.Connection(func(c *pgx.Conn) error {
		if _, err := c.Exec(t.Context(), "RESET ROLE"); err != nil {
			return err
		}
		if _, err := c.Exec(t.Context(), `INSERT INTO posthorn.platform_alerts (id, kind, key, title, message, page, opened_at, seen_at, ended_at)
			VALUES ($1, 'worker_lost', '', '1 worker stopped', 'facts', '', now(), now(), now())`, db.NewID().String()); err != nil {
			return err
		}
		_, err := c.Exec(t.Context(), `INSERT INTO posthorn.platform_alerts (id, kind, key, title, message, page, about_tenant, opened_at, seen_at, sent)
			VALUES ($1, 'deliveries_overdue', 'x', 'overdue', 'facts', '/console/x', $2, now(), now(), true)`, db.NewID().String(), acme.uuid.String())
		return err
	})
	data := w.do("GET", all, w.platform, nil).want(200).get("data").([]any)
	if len(data) != 2 {
		t.Fatalf("%v", data)
	}
	open, ended := data[0].(map[string]any), data[1].(map[string]any)
	if open["status"] != "triggered" || open["severity"] != "critical" || open["tenant_id"] != acme.id || open["resolved_at"] != nil || open["sent"] != true ||
		ended["status"] != "resolved" || ended["kind"] != "worker_lost" || ended["resolved_at"] == nil || ended["tenant_id"] != nil {
		t.Errorf("%v\n%v", open, ended)
	}
	w.do("GET", all, acme.key, nil).problem(403, "platform_key_required")
	w.do("GET", all+"?limit=1", w.platform, nil).problem(400, "unknown_parameter", "limit")
	w.do("PATCH", "/api/v1/platform", w.platform, `{"settings":{"alerts.host_down":"off"}}`).want(200)
	if got := w.do("GET", "/api/v1/platform", w.platform, nil).want(200).get("settings").(map[string]any); got["alerts.host_down"] != "off" {
		t.Errorf("%v", got)
	}
	w.do("PATCH", "/api/v1/platform", w.platform, `{"settings":{"alerts.host_down":"perhaps"}}`).want(400)
}
