package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"posthorn/db/accounts"
	"posthorn/domain/access"
)

func TestASignInLinkIsMadeShownOnceAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	admin, page := tn.of[access.Admin], tn.path+"/portal"
	for _, role := range []access.Role{access.Developer, access.Viewer} {
		tn.of[role].get(page).want(http.StatusForbidden)
		tn.of[role].get(tn.path + "/").want(200).lacks("Customer portal")
	}
	admin.get(tn.path+"/").want(200, "Customer portal")
	admin.get(page).want(200, "No links yet").keep("links-empty")
	form := url.Values{"role": {"owner"}, "session_seconds": {"59"}, "brand_name": {strings.Repeat("x", 101)}, "accent": {"red"}, "return_url": {"/settings"}}
	admin.post(page, form).want(http.StatusBadRequest, "No link was created", `id="f-role-error"`, `id="f-session_seconds-error"`, `id="f-brand_name-error"`, `id="f-accent-error"`, `id="f-return_url-error"`, "xxx").keep("links-refused")
	form = url.Values{"role": {"viewer"}, "session_seconds": {"3600"}, "brand_name": {"Shop <b>"}, "allow_secrets": {"true"}}
	made := admin.next(page, form).want(http.StatusOK, base+"/portal/open?token=", "Shop &lt;b&gt;", "waiting", "secrets").keep("links-made")
	token := regexp.MustCompile(`token=([A-Za-z0-9_%-]+)`).FindStringSubmatch(made.Body)[1]
	admin.get(page).want(200, "Shop &lt;b&gt;").lacks(token)
	if n := w.audited(tn, "portal_link.created"); n != 1 {
		t.Errorf("it is audited %d times", n)
	}
	link := regexp.MustCompile(page + "/[a-z]+_[a-z0-9]{26}/revoke").FindString(made.Body)
	if link == "" {
		t.Fatal("nothing revokes it")
	}
	for range 2 {
		admin.post(link, nil).to(page)
	}
	admin.get(page).want(200, "revoked").lacks("waiting", "/revoke")
	if n := w.audited(tn, "portal_link.revoked"); n != 1 {
		t.Errorf("its end is audited %d times", n)
	}
	if _, _, err := accounts.OpenPortalLink(t.Context(), w.db, token, "192.0.2.1", "test"); err == nil {
		t.Error("a revoked link opens")
	}
	w.SQL(`UPDATE platform SET settings = '{"features":{"portal":false}}'`)
	admin.post(page, form).want(http.StatusForbidden, "turned off on this server", `value="Shop &lt;b&gt;"`)
}
