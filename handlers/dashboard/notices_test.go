package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

func TestUnreadNoticesAreCountedUntilTheyAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	dev, viewer := tn.of[access.Developer], tn.of[access.Viewer]
	dev.get(tn.path + "/events").want(200).lacks("nav-count")
	for i, kind := range []notice.Kind{notice.EndpointDisabled, notice.KeyCreated} {
		err := w.db.Tenant(t.Context(), tn.id, func(q *db.Tx) error {
			_, err := accounts.PostNotice(t.Context(), q, accounts.Notice{
				Tenant:  tn.id,
				Kind:    kind,
				Key:     string(rune('a' + i)),
				Details: notice.KeyDetails{Name: []string{"Erp", "Shop"}[i]},
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	count := func(b *browser) string {
		_, rest, _ := strings.Cut(b.get(tn.path+"/events").want(200).Body, `class="nav-count">`)
		n, _, _ := strings.Cut(rest, "<")
		return strings.TrimSpace(n)
	}
	if count(dev) != "2" || count(viewer) != "1" {
		t.Errorf("a developer has %q unread, a viewer %q", count(dev), count(viewer))
	}
	first := dev.get(tn.path+"/notices").want(200, "Shop", ">unread<", "Mark all as read").keep("notices")
	if count(dev) != "2" {
		t.Error("what was only shown counts as read")
	}
	dev.get(tn.path+"/notices?kind=endpoint.disabled").want(200, "An endpoint was disabled", `value="endpoint.disabled" selected`).lacks("Shop")
	dev.get(tn.path + "/notices?kind=nonsense").want(http.StatusBadRequest)
	viewer.get(tn.path + "/notices?kind=key.created").want(http.StatusBadRequest).lacks("Shop")
	dev.get(tn.path+"/notices?endpoint="+id.Endpoint.Format(db.NewID())).want(200, "No notices match these filters")
	dev.post(tn.path+"/notices/read", url.Values{"newest": {"nonsense"}}).to(tn.path + "/notices")
	dev.post(tn.path+"/notices/read", url.Values{"newest": {id.Notice.Format(id.Last)}}).to(tn.path + "/notices")
	if count(dev) != "2" {
		t.Error("what can't be shown yet counts as read")
	}
	dev.post(tn.path+"/notices/read", confirmed(first)).to(tn.path + "/notices")
	if count(dev) != "" || count(viewer) != "1" {
		t.Errorf("after reading a developer has %q, a viewer %q", count(dev), count(viewer))
	}
	dev.get(tn.path+"/notices?unread=true").want(200, "No notices match these filters").keep("notices-filtered")
	dev.get(tn.path+"/notices").want(200, "Shop").lacks(">unread<", "Mark all as read")
}
