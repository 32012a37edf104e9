package api_test

import (
	"testing"

	"posthorn/db/accounts"
	"posthorn/domain/access"
)

func TestAPlatformKeyThatOnlyReadsGetsThePlatformsNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	before := w.do("GET", "/api/v1/platform/overview", w.platform, nil).want(200)
	w.tenant("Initech")
	reader := w.MakeKey(accounts.NewKey{Name: "another home", Scopes: []access.Scope{access.WebhooksRead}})
	after := w.do("GET", "/api/v1/platform/overview", reader, nil).want(200)
	if after.get("tenants").(float64) != before.get("tenants").(float64)+1 || after.get("workers").(float64) != 0 || len(after.get("findings").([]any)) != 1 {
		t.Errorf("%s, then %s", before.Body, after.Body) // no worker runs
	}
	w.do("GET", "/api/v1/platform/overview", acme.key, nil).problem(403, "platform_key_required")
	w.do("GET", "/api/v1/platform/overview?limit=1", reader, nil).problem(400, "unknown_parameter", "limit")
	w.do("GET", "/api/v1/platform/alerts", reader, nil).problem(403, "scope_missing")
}
