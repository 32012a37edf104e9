package dashboard_test

import (
	"net/http"
	"testing"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/settings"
)

func TestTheMenuLeadsToTheStatusPageWhereThereIsOne(t *testing.T) {
	t.Parallel()
	const link = `href="/status"`
	on := newDesk(t)
	on.as(access.Viewer).get(on.root).want(http.StatusOK, link)
	off := newDesk(t)
	if _, err := accounts.ChangePlatform(t.Context(), off.db,
		accounts.PlatformChange{Texts: map[string]string{settings.StatusPage: settings.Off}},
		db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	off.as(access.Viewer).get(off.root).want(http.StatusOK).lacks(link)
}
