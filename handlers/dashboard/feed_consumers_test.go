package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"posthorn/domain/access"
)

func TestAnOwnerManagesTheConsumersOfAFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	owner := tn.of[access.Owner]
	owner.get(tn.path+"/endpoints/new").want(200, `value="feed"`, "Your program reads the events itself")
	form := newForm("kind", "feed", "url", "", "description", "Orders to pull")
	made := owner.next(tn.path+"/endpoints", form).want(200, "Orders to pull", "Signing secret", "whsec_", "No consumers yet")
	feed := regexp.MustCompile(`action="([^"]+/endpoints/ep_[0-9a-z]+)/consumers"`).FindStringSubmatch(made.Body)[1]
	owner.get(feed).want(200, "Create consumer").lacks("whsec_", "Send test event", "Verify again", "Replay missing")
	owner.post(feed+"/consumers", url.Values{"name": {"a b"}}).want(http.StatusBadRequest, "The name of a consumer has 1 to 64", `value="a b"`)
	shown := owner.next(feed+"/consumers", url.Values{"name": {"warehouse"}, "start": {"oldest"}}).want(200, "Token of warehouse", "Shown only once")
	token := regexp.MustCompile(`phk_[0-9A-Za-z]{49}`).FindString(shown.Body)
	if token == "" || shown.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("the token is not shown, or kept by browsers: %v", shown.Header)
	}
	owner.post(feed+"/consumers", url.Values{"name": {"warehouse"}}).want(http.StatusConflict, "has a consumer of this name")
	owner.get(feed).want(200, "warehouse", "never").lacks(token)
	owner.next(feed+"/consumers/warehouse/rewind", url.Values{"start": {"now"}}).want(200, "Rewound: warehouse.")
	again := owner.next(feed+"/consumers/warehouse/rotate", nil).want(200, "Token of warehouse")
	if next := regexp.MustCompile(`phk_[0-9A-Za-z]{49}`).FindString(again.Body); next == "" || next == token {
		t.Error("the token is the same")
	}
	tn.of[access.Viewer].get(feed).want(200, "warehouse").lacks("Rotate token", "Create consumer")
	tn.of[access.Viewer].post(feed+"/consumers/warehouse/delete", nil).want(http.StatusForbidden)
	owner.get(feed+"/settings").want(200, "Signing").lacks("Retries")
	owner.next(feed+"/consumers/warehouse/delete", nil).want(200, "Deleted: warehouse.", "No consumers yet")
	for _, action := range []string{"feed.consumer.create", "feed.consumer.rewind", "feed.consumer.rotate", "feed.consumer.delete"} {
		if w.audited(tn, action) != 1 {
			t.Errorf("%s is not audited once", action)
		}
	}
}

func TestAnEndpointIsRewoundOnItsPage(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner, path := w.as(access.Owner), w.add()
	w.activate(path)
	owner.get(path).want(200, "Rewind this endpoint?", "Everything within retention").lacks("is catching up")
	owner.next(path+"/rewind", url.Values{"start": {"oldest"}}).want(200, "Everything is sent again from there", "This endpoint is catching up", "Skip the backlog?").keep("endpoint-catching-up")
	owner.next(path+"/rewind", url.Values{"start": {"now"}}).want(200, "The rest of the backlog is not sent")
	owner.post(path+"/rewind", url.Values{"start": {"other"}, "at": {"2999-01-01T00:00"}}).want(http.StatusBadRequest)
	owner.post(path+"/rewind", url.Values{"start": {"other"}, "at": {"2020-01-01T00:00"}}).want(http.StatusSeeOther)
	w.as(access.Viewer).post(path+"/rewind", url.Values{"start": {"oldest"}}).want(http.StatusForbidden)
	w.as(access.Viewer).get(path).want(200, "is catching up").lacks("Skip the backlog", "Rewind…")
}
