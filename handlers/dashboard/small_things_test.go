package dashboard_test

import (
	"strings"
	"testing"

	"posthorn/domain/access"
	"posthorn/views/pages"
)

// What people stumbled over once, each too small for a test of its own.
func TestPagesSayWhatPeopleNeed(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	form := newForm()
	form.Set("channels", "eu, us")
	created := owner.post(w.root+"/endpoints", form).to(w.root + "/endpoints/")
	owner.get(strings.TrimSuffix(created, "/created")+"/settings").want(200, `value="eu, us"`)
	w.things(w.tn)
	owner.get(w.root+"/deliveries").want(200, `aria-label="Select all on this page"`)
	owner.get(w.root+"/members").want(200, `value="viewer" selected`)
	owner.get(w.root+"/").want(200, `href="/docs"`)
	owner.get(w.root+"/nothing").want(404, "There&#39;s no page at this address").lacks("API reference")
	for _, o := range pages.NewKeyFields(nil, nil, "", access.PlatformScopes()).Scopes {
		if o.Hint == "" {
			t.Errorf("the form of keys does not explain %s", o.Value)
		}
	}
}
