package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// showEndpoint shows the first page of an endpoint.
func (a *dashboard) showEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	now := a.Now()
	e, err := a.read(c)
	if err != nil {
		return err
	}
	if e.Settings.Kind.Pulls() {
		return a.showConsumers(c, e, http.StatusOK, nil, nil)
	}
	chosen := readSpan(c, endpointID.Time(), now)
	var last *span
	var feed []show.Delivery
	var failed pages.FailuresView
	err = c.Tx(func(q *db.Tx) (err error) {
		if err = chosen.read(c, q, &endpointID, now); err != nil {
			return err
		}
		if last, err = chosen.lastDay(c, q, &endpointID, now); err != nil {
			return err
		}
		if feed, err = newest(c, q, endpointID); err != nil {
			return err
		}
		failed, err = a.failuresOf(c, q, e)
		return err
	})
	if err != nil {
		return err
	}
	v := pages.EndpointView{
		Failures:     failed,
		EndpointHead: a.head(c, e, "overview"),
		Verification: verificationView(c, e),
		Feed:         feedView(c, feed),
	}
	v.Feed.Poll, v.Feed.One = endpointPath(c, endpointID)+"/live", true
	v.Volume, v.Success, v.Latency = chosen.charts()
	v.Range = chosen.view(endpointPath(c, endpointID))
	day := last.sum()
	v.P50, v.P95 = day.Quantile(0.5), day.Quantile(0.95)
	describe(&v, e)
	return c.Render(http.StatusOK, pages.Endpoint(v))
}

// describe explains the endpoint's condition.
func describe(v *pages.EndpointView, e show.Endpoint) {
	warned := e.Verdict.Warn
	switch {
	case e.Condition.State == condition.Disabled:
		v.DisableWhy = e.Policy.Sentence(health.Reason(e.StatusReason))
	case !e.Condition.DisableAt.IsZero() && len(warned) > 0 && !warned[0].Since.IsZero():
		v.DisableWhy = "Every attempt has failed since " + components.Stamp(warned[0].Since) + "."
	case !e.Condition.DisableAt.IsZero():
		v.DisableWhy = "Attempts keep failing."
	}
	if e.Counters.ConsecutiveFailures+e.Counters.AuthStreak > 0 {
		v.LastError = lastError(e)
	}
}

// lastError is the last error. A response needs no explanation.
func lastError(e show.Endpoint) string {
	if e.LastError == "" || e.Last.Failure != delivery.FailNone {
		return strings.TrimSuffix(delivery.AnswerText(e.Last.Status, e.Last.Failure)+": "+e.LastError, ": ")
	}
	return e.LastError
}

// liveEndpoint shows the newest deliveries of an endpoint, for its page to refresh.
func (a *dashboard) liveEndpoint(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var feed []show.Delivery
	err := c.Tx(func(q *db.Tx) (err error) {
		if _, err := endpoints.Status(c.Ctx(), q, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		feed, err = newest(c, q, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	v := feedView(c, feed)
	v.Poll, v.One = endpointPath(c, endpointID)+"/live", true
	return c.Render(http.StatusOK, pages.Feed(v))
}

// showVerification shows the progress of a verification, for the pages that wait for it. When it has ended, the whole
// page changes.
func (a *dashboard) showVerification(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	v := verificationView(c, e)
	if v.State == "succeeded" && strings.HasSuffix(c.GetHeader("HX-Current-URL"), endpointPath(c, e.ID)) {
		c.Writer.Header().Set("HX-Refresh", "true")
	}
	if strings.HasSuffix(c.GetHeader("HX-Current-URL"), endpointPath(c, e.ID)+"/created") {
		v.First = true
		first := pages.FirstEvent{Ready: v.State == "succeeded", Swap: true}
		if c.Actor.May(access.ChangeEndpoints) {
			first.Test = endpointPath(c, e.ID) + "/test"
		}
		return c.Render(http.StatusOK, templ.Join(pages.Verification(v), pages.FirstTest(first)))
	}
	return c.Render(http.StatusOK, pages.Verification(v))
}

// read is the endpoint that the path names.
func (a *dashboard) read(c *handlers.Call) (e show.Endpoint, err error) {
	endpointID := c.PathID("endpoint_id")
	err = c.Tx(func(q *db.Tx) error {
		e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
		return err
	})
	return e, err
}

func (a *dashboard) head(c *handlers.Call, e show.Endpoint, tab string) pages.EndpointHead {
	return pages.EndpointHead{
		Shell:      c.Shell(titleOf(e), "endpoints"),
		Root:       root(c),
		Href:       endpointPath(c, e.ID),
		Endpoint:   e.Masked(),
		Now:        a.Now(),
		Tab:        tab,
		MayChange:  c.Actor.May(access.ChangeEndpoints),
		MaySecrets: c.Actor.May(access.RotateSecrets),
	}
}

// titleOf is the title of an endpoint's pages in the browser: its description if it has one. The URL of a test inbox
// contains its token.
func titleOf(e show.Endpoint) string {
	if e.Settings.Kind == endpoint.Inbox && e.Settings.Description == "" {
		return "Test inbox"
	}
	return e.Name()
}

// verifiable lists the states that end with a verification.
var verifiable = []endpoint.Status{endpoint.Unverified, endpoint.Disabled}

func verificationView(c *handlers.Call, e show.Endpoint) pages.VerificationView {
	out := pages.VerificationView{Poll: endpointPath(c, e.ID) + "/verification", Endpoint: e.Masked()}
	if c.Actor.May(access.ChangeEndpoints) && slices.Contains(verifiable, e.Status) {
		out.Verify = endpointPath(c, e.ID) + "/verify"
	}
	if e.Verification != nil {
		out.Verification = *e.Verification
	}
	return out
}
