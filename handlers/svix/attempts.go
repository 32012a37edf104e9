package svix

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/handlers"
	"posthorn/handlers/api"
)

// attempt is an attempt in Svix's form.
type attempt struct {
	ID                 string   `json:"id"`
	EndpointID         string   `json:"endpointId"`
	MsgID              string   `json:"msgId"`
	URL                string   `json:"url"`
	Response           string   `json:"response"`
	ResponseStatusCode int      `json:"responseStatusCode"`
	ResponseDurationMs int64    `json:"responseDurationMs"`
	Status             int      `json:"status"`
	StatusText         string   `json:"statusText"`
	TriggerType        int      `json:"triggerType"` // 0: scheduled, 1: by hand
	Timestamp          api.Time `json:"timestamp"`
	Msg                *message `json:"msg,omitempty"`
}

// attemptsOf are the attempts of a delivery, newest first.
func attemptsOf(d api.DeliveryWithAttempts) []attempt {
	out := make([]attempt, 0, len(d.Attempts))
	for _, a := range d.Attempts {
		v := attempt{
			ID:                 a.ID,
			EndpointID:         d.EndpointID,
			MsgID:              d.EventID,
			URL:                a.URL,
			Status:             statusFail,
			Timestamp:          a.StartedAt,
			ResponseDurationMs: int64(a.Phases.TotalUs / 1000),
		}
		if code, err := a.Status.Get(); err == nil {
			v.ResponseStatusCode = code
		}
		if v.ResponseStatusCode >= 200 && v.ResponseStatusCode < 300 && !present(a.Failure.Get()) {
			v.Status = statusSuccess
		}
		if text, err := a.ResponseExcerpt.Get(); err == nil {
			v.Response = text
		} else if text, err := a.Error.Get(); err == nil {
			v.Response = text
		}
		if present(d.ReplayOf.Get()) {
			v.TriggerType = 1
		}
		v.StatusText = statusTexts[v.Status]
		out = append(out, v)
	}
	slices.Reverse(out)
	return out
}

func present(_ string, err error) bool { return err == nil }

// attemptFilter says which attempts a list was asked for.
type attemptFilter struct {
	status        *int
	class         int // of the HTTP status: 200 is 200 to 299; 0: any
	endpoint      string
	typeAsked     func(string) bool
	before, after time.Time
}

// readAttemptFilter reads the parameters of lists of attempts. query gets what Posthorn's own list of deliveries can
// narrow by.
func readAttemptFilter(c *handlers.Call, query url.Values) (f attemptFilter, err error) {
	f.typeAsked = byType(c, query)
	if f.status, err = statusAsked(c); err != nil {
		return f, err
	}
	if f.status != nil && *f.status == statusSuccess {
		query.Set("status", "delivered") // an attempt that succeeds makes its delivery delivered
	}
	if text := c.Query("status_code_class"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 500 || n%100 != 0 {
			return f, refuseQuery("status_code_class", "The class is 100, 200, 300, 400 or 500, or 0 for attempts without a response.")
		}
		f.class = max(n, noResponse)
	}
	for name, into := range map[string]*time.Time{"before": &f.before, "after": &f.after} {
		if text := c.Query(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return f, refuseQuery(name, "The time is RFC 3339 with an offset, such as 2026-01-31T12:00:00Z.")
			}
		}
	}
	// Deliveries are older than their attempts: by at most retriesLast, unless somebody retries one later.
	if query.Del("since"); !f.after.IsZero() {
		query.Set("since", f.after.Add(-retriesLast).Format(time.RFC3339))
	}
	return f, nil
}

// noResponse is the class of attempts without a response. Svix writes it as 0.
const noResponse = 1

// retriesLast is longer than Posthorn keeps trying.
const retriesLast = 31 * 24 * time.Hour

// possible reports whether the delivery can have an attempt that was asked for, before its attempts are read.
func (f attemptFilter) possible(d api.Delivery) bool {
	failed := f.status != nil && *f.status == statusFail
	return d.AttemptCount > 0 && (f.endpoint == "" || d.EndpointID == f.endpoint) && f.typeAsked(d.EventType) &&
		!(failed && d.Status == "delivered" && d.AttemptCount == 1)
}

func (f attemptFilter) matches(a attempt) bool {
	at, class := time.Time(a.Timestamp), max(a.ResponseStatusCode/100*100, noResponse)
	return (f.status == nil || *f.status == a.Status) && (f.class == 0 || f.class == class) &&
		(f.before.IsZero() || at.Before(f.before)) && (f.after.IsZero() || at.After(f.after))
}

// listAttempts lists the attempts of deliveries. Its iterator is the one of the deliveries, so a page can hold a few
// more attempts than its limit, and fewer.
func (s *svix) listAttempts(c *handlers.Call, path string, query url.Values, f attemptFilter) error {
	if f.status != nil && *f.status != statusSuccess && *f.status != statusFail {
		return answer(c, http.StatusOK, page[attempt]{Data: []attempt{}, Done: true}) // an attempt is listed when it has ended
	}
	withMessage, messages := c.Query("with_msg") == "true", map[string]*message{}
	out, err := gather(s, c, path, query, func(row api.Delivery) (found []attempt, err error) {
		if !f.possible(row) {
			return nil, nil
		}
		var d api.DeliveryWithAttempts
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/deliveries/"+row.ID, nil, &d); err != nil {
			return nil, err
		}
		for _, a := range attemptsOf(d) {
			if !f.matches(a) {
				continue
			}
			if c.Query("with_content") == "false" {
				a.Response = ""
			}
			if withMessage && messages[a.MsgID] == nil {
				m, err := s.readMessage(c, a.MsgID, false)
				if err != nil && !missing(err) {
					return nil, err
				}
				messages[a.MsgID] = &m
			}
			a.Msg = messages[a.MsgID]
			found = append(found, a)
		}
		return found, nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(out.Data, func(a, b attempt) int { return time.Time(b.Timestamp).Compare(time.Time(a.Timestamp)) })
	return answer(c, http.StatusOK, out)
}

func (s *svix) listAttemptsByEndpoint(c *handlers.Call) error {
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	f, err := readAttemptFilter(c, query)
	if err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, nil); err != nil {
		return err
	}
	query.Set("endpoint", c.Param(handlers.EndpointParam))
	return s.listAttempts(c, tenantPath(c)+"/deliveries", query, f)
}

// listAttemptsByMessage lists the attempts of one event. Posthorn's own list of its deliveries has no filters.
func (s *svix) listAttemptsByMessage(c *handlers.Call) error {
	asked, err := listQuery(c)
	if err != nil {
		return err
	}
	f, err := readAttemptFilter(c, url.Values{})
	if err != nil {
		return err
	}
	types := typesAsked(c)
	f.typeAsked = func(t string) bool { return types == nil || slices.Contains(types, t) }
	if given := c.Query("endpoint_id"); given != "" {
		var e api.Endpoint
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/endpoints/"+url.PathEscape(given), nil, &e); err != nil {
			return err
		}
		f.endpoint = e.ID
	}
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	if c.Query("channel") != "" {
		m, err := s.messageAt(c, path, false)
		if err != nil {
			return err
		}
		if !slices.Contains(m.Channels, c.Query("channel")) {
			return answer(c, http.StatusOK, page[attempt]{Data: []attempt{}, Done: true})
		}
	}
	query := url.Values{}
	for _, name := range []string{"limit", "cursor"} {
		if v := asked.Get(name); v != "" {
			query.Set(name, v)
		}
	}
	return s.listAttempts(c, path+"/deliveries", query, f)
}

// getAttempt finds an attempt among those of the message's deliveries.
func (s *svix) getAttempt(c *handlers.Call) error {
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	var rows own[api.Delivery]
	if _, err := s.call(c, http.MethodGet, path+"/deliveries?limit=250", nil, &rows); err != nil {
		return err
	}
	for _, row := range rows.Data {
		var d api.DeliveryWithAttempts
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/deliveries/"+row.ID, nil, &d); err != nil {
			return err
		}
		for _, a := range attemptsOf(d) {
			if a.ID == c.Param("attempt_id") {
				m, err := s.messageAt(c, path, true)
				if err != nil {
					return err
				}
				a.Msg = &m
				return answer(c, http.StatusOK, a)
			}
		}
	}
	return &refusal{status: http.StatusNotFound, code: "not_found", detail: "The message has no such attempt."}
}

// getTask reads a bulk job. The task's id names its application.
func (s *svix) getTask(c *handlers.Call) error {
	tenant, job, ok := strings.Cut(strings.TrimPrefix(c.Param("task_id"), "qtask_"), ".")
	if !ok {
		return &refusal{status: http.StatusNotFound, code: "not_found", detail: "There is no such task."}
	}
	var j api.BulkJob
	if _, err := s.call(c, http.MethodGet, "/tenants/"+url.PathEscape(tenant)+"/bulk-jobs/"+url.PathEscape(job), nil, &j); err != nil {
		return err
	}
	t := taskView(tenant, "endpoint.recover", j)
	if strict(c) {
		t.UpdatedAt = nil
	}
	return answer(c, http.StatusOK, t)
}
