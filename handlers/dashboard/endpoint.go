package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// showEndpoint shows the first page of an endpoint.
func (a *dashboard) showEndpoint(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	now := a.Now()
	var e endpoints.Full
	chosen := readSpan(c, endpointID.Time(), now)
	var last *span
	var feed []show.Delivery
	err = c.Tx(func(q *db.Tx) (err error) {
		if e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID); err != nil {
			return err
		}
		if err = chosen.read(c, q, &endpointID, now); err != nil {
			return err
		}
		if last, err = chosen.lastDay(c, q, &endpointID, now); err != nil {
			return err
		}
		feed, err = newest(c, q, endpointID)
		return err
	})
	if err != nil {
		return err
	}
	v := pages.EndpointView{
		EndpointHead: a.head(c, e, "overview"), Facts: facts(e), Verification: verificationView(c, e.Endpoint, e.Verification),
		Feed: feedView(c, feed),
	}
	v.Feed.Poll, v.Feed.One = endpointPath(c, endpointID)+"/live", true
	v.Waiting = v.Verification.State == "pending"
	v.Volume, v.Success, v.Latency = chosen.charts()
	v.Range = chosen.view(endpointPath(c, endpointID))
	day := last.sum()
	v.Day, v.P50, v.P95 = day.Attempts.Rate(), day.Quantile(0.5), day.Quantile(0.95)
	describe(&v, e, now)
	return c.Render(http.StatusOK, pages.Endpoint(v))
}

// describe explains the endpoint's condition.
func describe(v *pages.EndpointView, e endpoints.Full, now time.Time) {
	counters := endpoints.Counters(e.Health.EndpointHealth)
	v.Failures = counters.ConsecutiveFailures + counters.AuthStreak
	v.LastSuccess, v.LastFailure = counters.LastSuccessAt, counters.LastFailureAt
	verdict := endpoints.Verdict(e.Health.EndpointHealth, e.Health.Policy, now)
	switch {
	case v.Condition.State == condition.Disabled:
		v.DisableWhy = e.Health.Policy.Sentence(health.Reason(e.StatusReason))
	case !v.Condition.DisableAt.IsZero() && len(verdict.Warn) > 0 && !verdict.Warn[0].Since.IsZero():
		v.DisableWhy = "Every attempt has failed since " + components.Stamp(verdict.Warn[0].Since) + "."
	case !v.Condition.DisableAt.IsZero():
		v.DisableWhy = "Attempts keep failing."
	}
	if v.Failures > 0 {
		v.LastError = lastError(e.Health.EndpointHealth)
	}
}

// lastError is the last error. A response needs no explanation.
func lastError(h sql.EndpointHealth) string {
	text := h.LastError
	if text == "" || h.LastFailure != delivery.FailNone {
		text = strings.TrimSuffix(delivery.AnswerText(int(h.LastStatus), h.LastFailure)+": "+text, ": ")
	}
	return text
}

// liveEndpoint shows the newest deliveries of an endpoint, for its page to refresh.
func (a *dashboard) liveEndpoint(c *handlers.Call) error {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var feed []show.Delivery
	err = c.Tx(func(q *db.Tx) (err error) {
		if _, err := q.GetEndpoint(c.Ctx(), sql.GetEndpointParams{
			TenantID: c.Actor.Tenant,
			ID:       endpointID,
		}); err != nil {
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
	v := verificationView(c, e.Endpoint, e.Verification)
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
func (a *dashboard) read(c *handlers.Call) (e endpoints.Full, err error) {
	endpointID, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return e, err
	}
	err = c.Tx(func(q *db.Tx) error {
		e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, endpointID)
		return err
	})
	return e, err
}

func (a *dashboard) head(c *handlers.Call, e endpoints.Full, tab string) pages.EndpointHead {
	url := egress.Mask(e.URL)
	return pages.EndpointHead{
		Shell: c.Shell(titleOf(e, url), "endpoints"), Root: root(c), Href: endpointPath(c, e.ID), ID: id.Endpoint.Format(e.ID),
		URL:         url,
		Description: e.Description, Status: endpoint.Status(e.Status), Condition: e.Condition(a.Now()), Tab: tab,
		InQueue: e.Health.Waiting, InQueueMore: !e.Health.WaitingExact,
		MayChange: c.Actor.May(access.ChangeEndpoints), MaySecrets: c.Actor.May(access.RotateSecrets),
		Inbox: endpoint.Kind(e.Kind) == endpoint.Inbox,
	}
}

// titleOf is the title of an endpoint's pages in the browser: its description if it has one. The URL of a test inbox
// contains its token.
func titleOf(e endpoints.Full, url string) string {
	switch {
	case e.Description != "":
		return e.Description
	case endpoint.Kind(e.Kind) == endpoint.Inbox:
		return "Test inbox"
	}
	return url
}

func facts(e endpoints.Full) pages.EndpointFacts {
	s := e.Settings
	limits := "No rate limit"
	if s.RateLimit != nil {
		limits = components.Count(int64(*s.RateLimit)) + " requests/s"
	}
	return pages.EndpointFacts{
		EventTypes: s.EventTypes, Format: string(s.Format), Ordering: s.Ordering, Created: e.CreatedAt,
		Retries: fmt.Sprintf("%s, %d attempts", s.RetryPolicy, s.Schedule().Attempts()),
		Limits:  fmt.Sprintf("%s, %d concurrent, %d s timeout", limits, s.MaxInFlight, s.TimeoutSeconds),
	}
}

// verifiable lists the states that end with a verification.
var verifiable = []endpoint.Status{endpoint.Unverified, endpoint.Disabled}

func verificationView(c *handlers.Call, e sql.Endpoint, v *sql.Verification) pages.VerificationView {
	out := pages.VerificationView{
		Poll: endpointPath(c, e.ID) + "/verification", Mode: e.Verification, Kind: e.Kind, URL: egress.Mask(e.URL),
	}
	if c.Actor.May(access.ChangeEndpoints) && slices.Contains(verifiable, endpoint.Status(e.Status)) {
		out.Verify = endpointPath(c, e.ID) + "/verify"
	}
	if v == nil {
		return out
	}
	out.State, out.Tries, out.Detail, out.At = v.State, int(v.Tries), v.LastDetail, v.RequestedAt
	if v.State == "pending" && v.Tries > 0 {
		out.NextAt = v.DueAt
	}
	if v.LastStatus != nil {
		out.Status = int(*v.LastStatus)
	}
	return out
}
