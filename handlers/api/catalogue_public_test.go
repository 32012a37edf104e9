package api_test

import (
	"net/http"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
)

func TestThePlatformShowsItsOwnCatalogueWhereOperatorsSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acme := w.tenant("Acme")
	w.do("POST", "/api/v1/event-types", acme.key, `{"name":"acme.secret"}`).want(http.StatusCreated)
	own, key, err := accounts.EnsurePlatformTenant(t.Context(), w.db, db.Author{Kind: "command"})
	if err != nil {
		t.Fatal(err)
	}
	w.do("POST", "/api/v1/event-types", key, `{"name":"order.completed","description":"An order was paid","schema":{"type":"object"},"versions":{"2":{}}}`).want(http.StatusCreated)
	w.do("GET", "/api/v1/catalogue", acme.key, nil).problem(http.StatusNotFound, "catalogue_off")
	w.SQL(`UPDATE platform SET settings = settings || '{"features":{"catalogue":"public"}}'`)
	for path, with := range map[string]string{"/api/v1/catalogue": acme.key, "/api/v1/tenants/" + id.Tenant.Format(own) + "/catalogue": w.platform} {
		got := w.do("GET", path, with, nil).want(http.StatusOK)
		if text := string(got.Body); !strings.Contains(text, `"order.completed"`) || strings.Contains(text, "acme.secret") ||
			!strings.Contains(text, `"2"`) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
