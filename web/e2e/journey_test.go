//go:build e2e && unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"posthorn/tools/look"
)

// TestPeopleReachTheirGoalsInABrowser follows people through the dashboard: a real server, a real browser, real
// receivers, and a tenant for each journey.
func TestPeopleReachTheirGoalsInABrowser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, j := range []struct {
		name string
		goes func(*testing.T, *stage)
	}{
		{"from sign-up to the first delivery", signUpToFirstDelivery},
		{"a failing endpoint is diagnosed and its delivery replayed", failureIsDiagnosedAndReplayed},
		{"failed deliveries are replayed together, with progress", bulkReplayShowsProgress},
		{"a paused endpoint's deliveries are held and then delivered", pauseHoldsAndResumeDelivers},
		{"secrets rotate with an overlap", rotationOverlaps},
		{"an API key is shown once and works", keyIsShownOnce},
		{"going back shows the filter of the address", backShowsTheFilterOfTheAddress},
		{"a viewer can do nothing", viewerCanDoNothing},
		{"a portal link leads into its tenant, once", portalLinkOpensOnce},
		{"a portal works in a frame of the provider's page", portalIsEmbedded},
		{"a second factor is set up and asked for", secondFactorIsAskedFor},
		{"a passkey is added, signs in, and is removed", passkeySignsIn},
		{"a passkey is required after the password", passkeyIsRequired},
		{"an operator signs in with a passkey", operatorsPasskeySignsIn},
		{"everything goes by keyboard", keyboardIsEnough},
		{"everything goes without a script", scriptsAreNotNeeded},
	} {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			j.goes(t, s)
		})
	}
}

// quiet checks that nothing was said in a tab's console.
func quiet(t *testing.T, tab *look.Tab) {
	t.Helper()
	for _, said := range tab.Complaints() {
		t.Errorf("%s: the console says %s", tab.Path(), said)
	}
}

// once reads what a page shows this once.
func once(tab *look.Tab, id string) string {
	return look.Run(tab, chromedp.Value(chromedp.ID(id)))
}

// verify holds a request against a secret, as a receiver does.
func verify(t *testing.T, secret string, r request) error {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return verifier.Verify(r.body, r.header)
}

func signUpToFirstDelivery(t *testing.T, s *stage) {
	email, shop := "newcomer@example.com", newCustomer(t)
	tab := s.browser.Visitor(t, look.View{})
	tab.Open(s.url)
	tab.Press("Create tenant")
	tab.Fill("Name of your organization", "Newcomers Ltd")
	tab.Fill("Your name", "Nora Newcomer")
	tab.Fill("Email address", email)
	tab.Press("Send link")
	tab.Sees("Check your email")
	tab.Open(s.url + s.mailed(t, email, "/verify-email?"))
	tab.Fill("New password", password)
	tab.Press("Set password")
	tab.Arrives("/t/ten_")
	tab.Sees("First steps")
	tab.Press("Add endpoint")
	tab.Fill("URL", shop.url+"/hooks")
	tab.Press("Add endpoint")
	tab.Sees("Endpoint added")
	tab.Sees("Shown only once")
	secret := once(tab, "secret")
	if early := shop.requests(); len(early) != 0 {
		t.Errorf("%d requests arrived before the secret could be installed", len(early))
	}
	tab.Press("I've installed it: verify now")
	tab.Sees("The endpoint is ready") // without a reload
	inspectOpen(t, tab)
	tab.Press("Send test event")
	tab.Sees("delivered")
	tab.Sees(`"answered":200`)
	tab.Press("Overview")
	tab.Sees("Latest deliveries")
	tab.Sees("200")
	if tab.Shows("First steps") {
		t.Error("the first steps are shown although they are done")
	}
	got := shop.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests arrived", len(got))
	}
	if err := verify(t, secret, got[0]); err != nil {
		t.Errorf("the secret that was shown does not verify: %v", err)
	}
	quiet(t, tab)
}

// inspectOpen holds the page that is open, which no address leads to, against axe-core.
func inspectOpen(t *testing.T, tab *look.Tab) {
	t.Helper()
	for _, wrong := range tab.Violations() {
		t.Errorf("%s: %s", tab.Path(), wrong)
	}
}

func failureIsDiagnosedAndReplayed(t *testing.T, s *stage) {
	o := s.office(t, "Failing Ltd")
	o.endpoint("/hooks", nil)
	o.customer.status.Store(http.StatusUnprocessableEntity)
	o.emitted("order.paid", `{"order_id":"ord_1"}`)
	o.await("failed", 1)
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root)
	tab.Press("Deliveries")
	tab.Choose("Status", "Failed")
	tab.Until("the list is filtered", `location.search.includes("status=failed")`)
	tab.Do(chromedp.Click(chromedp.CSS("td.cell-lead a")))
	tab.Sees("What to do:")
	tab.Sees("422")
	tab.Sees(`{ "answered": 422 }`)
	tab.Press("Raw body") // the bytes as they came
	tab.Sees(`{"answered":422}`)
	failed := tab.Path()
	o.customer.status.Store(http.StatusOK)
	tab.Press("Replay")
	tab.Fill("Reason", "the receiver is fixed")
	tab.Press("Replay")
	tab.Until("the replay has a page of its own", fmt.Sprintf(`location.pathname.includes("/deliveries/dlv_") && location.pathname !== %q`, failed))
	tab.Sees("delivered")
	tab.Sees(`{ "answered": 200 }`)
	got := o.customer.requests()
	if len(got) != 2 || got[1].header.Get("webhook-replayed") != "true" || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") ||
		string(got[0].body) != string(got[1].body) {
		t.Errorf("%d requests arrived, the last with %v", len(got), got[len(got)-1].header)
	}
	tab.Open(s.url + failed)
	tab.Sees("What to do:") // the original keeps its attempts
	quiet(t, tab)
}

func bulkReplayShowsProgress(t *testing.T, s *stage) {
	const n = 40
	o := s.office(t, "Bulk Ltd")
	o.endpoint("/hooks", nil)
	o.customer.status.Store(http.StatusUnprocessableEntity)
	for i := range n {
		o.emitted("order.paid", fmt.Sprintf(`{"n":%d}`, i))
	}
	o.await("failed", n)
	o.customer.status.Store(http.StatusOK)
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root + "/deliveries?status=failed")
	tab.Press("Actions on all results")
	tab.Press("Replay all results…")
	tab.Sees(fmt.Sprintf("Replay %d deliveries?", n))
	inspectOpen(t, tab)
	tab.Fill("Reason", "the receiver is fixed")
	tab.Press(fmt.Sprintf("Replay %d deliveries", n))
	tab.Arrives(o.root + "/bulk-jobs/job_")
	tab.Sees("done") // without a reload
	tab.Sees(fmt.Sprintf("%d of %d", n, n))
	o.await("delivered", n)
	if got := len(o.customer.requests()); got != 2*n {
		t.Errorf("%d requests arrived of %d", got, 2*n)
	}
	// Pressing again sends nothing twice.
	tab.Open(s.url + o.root + "/deliveries?status=failed")
	tab.Press("Actions on all results")
	tab.Press("Replay all results…")
	tab.Sees("None of these deliveries can be replayed")
	tab.Sees("already replayed")
	quiet(t, tab)
}

func pauseHoldsAndResumeDelivers(t *testing.T, s *stage) {
	o := s.office(t, "Pausing Ltd")
	ep, _ := o.endpoint("/hooks", nil)
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root + "/endpoints/" + ep)
	tab.Press("Pause")
	tab.Sees("none is lost")
	tab.Press("Pause")
	tab.Sees("Endpoint paused")
	for i := range 3 {
		o.emitted("order.paid", fmt.Sprintf(`{"n":%d}`, i))
	}
	o.await("held", 3)
	tab.Sees("held") // the feed, without a reload
	tab.Open(s.url + o.root + "/endpoints/" + ep)
	if got := len(o.customer.requests()); got != 0 {
		t.Errorf("%d requests arrived at a paused endpoint", got)
	}
	tab.Press("Resume")
	tab.Sees("3 deliveries")
	tab.Press("Resume")
	tab.Until("the endpoint is active", `document.querySelector(".page-head").innerText.toLowerCase().includes("active")`)
	o.await("delivered", 3)
	if got := len(o.customer.requests()); got != 3 {
		t.Errorf("%d requests arrived of 3 that were held", got)
	}
	quiet(t, tab)
}

func rotationOverlaps(t *testing.T, s *stage) {
	o := s.office(t, "Rotating Ltd")
	ep, old := o.endpoint("/hooks", nil)
	tab := o.owner.tab(look.View{})
	tab.Open(s.url + o.root + "/endpoints/" + ep)
	tab.Press("Secrets")
	tab.Press("Rotate secret")
	tab.Sees("New secret")
	inspectOpen(t, tab)
	fresh := once(tab, "secret")
	if fresh == old || !strings.HasPrefix(fresh, "whsec_") {
		t.Fatalf("the new secret is %q", fresh)
	}
	o.emitted("order.paid", `{}`)
	o.await("delivered", 1)
	got := o.customer.requests()
	for name, secret := range map[string]string{"old": old, "new": fresh} {
		if err := verify(t, secret, got[len(got)-1]); err != nil {
			t.Errorf("within the overlap the %s secret does not verify: %v", name, err)
		}
	}
	tab.Open(s.url + o.root + "/endpoints/" + ep + "/secrets")
	if tab.Shows(fresh) || tab.Shows("The new secret") {
		t.Error("the secret is shown a second time")
	}
	quiet(t, tab)
}
