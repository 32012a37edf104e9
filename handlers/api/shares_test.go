package api_test

import (
	"net/http"
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestALinkToADeliveryIsCreatedListedAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn, other := w.tenant("a"), w.tenant("b")
	w.active(tn, nil)
	dlv := w.dead(tn, 1, nil)[0]
	path := "/api/v1/deliveries/" + dlv + "/shares"
	w.do("POST", path, tn.key, `{"expires_in":60}`).problem(http.StatusBadRequest, "share_expiry_range", "expires_in")
	w.do("POST", path, w.scoped(tn, access.WebhooksWrite), nil).problem(http.StatusForbidden, "scope_missing")
	w.do("POST", path, other.key, nil).problem(http.StatusNotFound, "not_found")
	made := w.do("POST", path, tn.key, `{"expires_in":604800}`).want(http.StatusCreated)
	if url := made.text("url"); !strings.Contains(url, "/shared/"+tn.id+"?token=") {
		t.Errorf("the link is %s", url)
	}
	share := made.text("id")
	list := w.do("GET", path, tn.key, nil).want(http.StatusOK)
	if !strings.Contains(string(list.Body), share) || strings.Contains(string(list.Body), "token") {
		t.Errorf("the list: %s", list.Body)
	}
	w.do("GET", path, other.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("DELETE", path+"/"+share, other.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("DELETE", path+"/"+id.Share.Format(id.UUID{1}), tn.key, nil).problem(http.StatusNotFound, "not_found")
	w.do("DELETE", path+"/"+share, tn.key, nil).want(http.StatusNoContent)
	w.do("DELETE", path+"/"+share, tn.key, nil).problem(http.StatusNotFound, "not_found")
	for range 10 {
		w.do("POST", path, tn.key, nil).want(http.StatusCreated)
	}
	w.do("POST", path, tn.key, nil).problem(http.StatusConflict, "delivery_shares_limit")
	if w.audited(tn, "delivery.share") != 11 || w.audited(tn, "delivery.share_revoke") != 1 {
		t.Error("links are not audited one by one")
	}
}
