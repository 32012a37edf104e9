package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/analytics"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// showEndpoint answers an endpoint's first page.
func (a *dashboard) showEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	now := a.Now()
	var e endpoints.Full
	var hours []analytics.Row
	var window analytics.Window
	var feed []deliveries.State
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		if e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, u); err != nil {
			return err
		}
		if hours, window, err = lastDay(c, q, &u, now); err != nil {
			return err
		}
		feed, err = newest(c, q, &u)
		return err
	})
	if err != nil {
		return err
	}
	v := pages.EndpointView{
		EndpointHead: a.head(c, e, "overview"), Facts: facts(e), Verification: verificationView(c, e.Endpoint, e.Verification),
		Feed: feedView(c, feed, map[id.UUID]string{u: e.URL}),
	}
	v.Feed.Poll, v.Feed.One = endpointPath(c, u)+"/live", true
	v.Waiting = v.Verification.State == "pending"
	v.Volume, v.Success, v.Latency = attemptCharts(hours, window, analytics.Hour)
	var day analytics.Cell
	for _, r := range hours {
		day.Merge(r.Cell)
	}
	v.Day, v.P50, v.P95 = day.Attempts.Rate(), day.Quantile(0.5), day.Quantile(0.95)
	describe(&v, e, now)
	return c.Render(http.StatusOK, pages.Endpoint(v))
}

// describe says what is behind the endpoint's condition.
func describe(v *pages.EndpointView, e endpoints.Full, now time.Time) {
	counters := endpoints.Counters(e.Record.EndpointHealth)
	v.Failures = counters.ConsecutiveFailures + counters.AuthStreak
	v.LastSuccess, v.LastFailure = counters.LastSuccessAt, counters.LastFailureAt
	verdict := endpoints.Verdict(e.Record.EndpointHealth, e.Record.Policy, now)
	switch {
	case v.Condition.State == condition.Disabled:
		v.DisableWhy = e.Record.Policy.Sentence(health.Reason(e.StatusReason))
	case !v.Condition.DisableAt.IsZero() && len(verdict.Warn) > 0 && !verdict.Warn[0].Since.IsZero():
		v.DisableWhy = "Every attempt has failed since " + components.Stamp(verdict.Warn[0].Since) + "."
	case !v.Condition.DisableAt.IsZero():
		v.DisableWhy = "Attempts keep failing."
	}
	if v.Failures > 0 {
		v.LastError = lastError(e.Record.EndpointHealth)
	}
}

// lastError is what went wrong last: what answered says so itself.
func lastError(h sql.EndpointHealth) string {
	text := h.LastError
	if text == "" || h.LastFailure != delivery.FailNone {
		text = strings.TrimSuffix(components.AnswerText(int(h.LastStatus), h.LastFailure)+": "+text, ": ")
	}
	return text
}

// liveEndpoint answers the newest deliveries of an endpoint, for its page to renew.
func (a *dashboard) liveEndpoint(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return err
	}
	var e sql.Endpoint
	var feed []deliveries.State
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) (err error) {
		if e, err = q.GetEndpoint(c.Ctx(), sql.GetEndpointParams{TenantID: c.Actor.Tenant, ID: u}); err != nil {
			return err
		}
		feed, err = newest(c, q, &u)
		return err
	})
	if err != nil {
		return err
	}
	v := feedView(c, feed, map[id.UUID]string{u: e.URL})
	v.Poll, v.One = endpointPath(c, u)+"/live", true
	return c.Render(http.StatusOK, pages.Feed(v))
}

// showVerification answers how far a verification is, for the pages that wait for it. Once it is over the whole page is
// another one.
func (a *dashboard) showVerification(c *handlers.Call) error {
	e, err := a.read(c)
	if err != nil {
		return err
	}
	v := verificationView(c, e.Endpoint, e.Verification)
	if v.State == "succeeded" && strings.HasSuffix(c.GetHeader("HX-Current-URL"), endpointPath(c, e.ID)) {
		c.Writer.Header().Set("HX-Refresh", "true")
	}
	return c.Render(http.StatusOK, pages.Verification(v))
}

// read is the endpoint that the path names.
func (a *dashboard) read(c *handlers.Call) (e endpoints.Full, err error) {
	u, err := c.ID(id.Endpoint, "endpoint_id")
	if err != nil {
		return e, err
	}
	err = a.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *sql.Queries) error {
		e, err = endpoints.Read(c.Ctx(), q, a.Keys, c.Actor.Tenant, u)
		return err
	})
	return e, err
}

func (a *dashboard) head(c *handlers.Call, e endpoints.Full, tab string) pages.EndpointHead {
	url := egress.Mask(e.URL)
	return pages.EndpointHead{
		Shell: c.Shell(url, "endpoints"), Root: root(c), Href: endpointPath(c, e.ID), ID: id.Endpoint.Format(e.ID), URL: url,
		Description: e.Description, Status: endpoint.Status(e.Status), Condition: e.Condition(a.Now()), Tab: tab,
		InQueue: e.Record.Waiting, InQueueMore: !e.Record.WaitingExact,
		MayChange: c.Actor.May(access.ChangeEndpoints), MaySecrets: c.Actor.May(access.RotateSecrets), Inbox: endpoint.Kind(e.Kind) == endpoint.Inbox,
	}
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
		Limits:  fmt.Sprintf("%s, %d at once, %d s each", limits, s.MaxInFlight, s.TimeoutSeconds),
	}
}

// verifiable are the states that a verification ends.
var verifiable = []endpoint.Status{endpoint.Unverified, endpoint.Disabled}

func verificationView(c *handlers.Call, e sql.Endpoint, v *sql.Verification) pages.VerificationView {
	out := pages.VerificationView{Poll: endpointPath(c, e.ID) + "/verification", Mode: e.Verification, Kind: e.Kind, URL: egress.Mask(e.URL)}
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
