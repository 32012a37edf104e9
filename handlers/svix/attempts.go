package svix

import (
	"net/http"
	"net/url"
	"slices"
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

// listAttempts lists the attempts of a page of deliveries. Its iterator is the one of the deliveries, so a page can
// hold more or fewer attempts than its limit.
func (s *svix) listAttempts(c *handlers.Call, path string, query url.Values) error {
	var rows own[api.Delivery]
	if _, err := s.call(c, http.MethodGet, path+"?"+query.Encode(), nil, &rows); err != nil {
		return err
	}
	out := page[attempt]{Data: []attempt{}, Iterator: rows.NextCursor, Done: rows.NextCursor == nil}
	for _, row := range rows.Data {
		var d api.DeliveryWithAttempts
		if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/deliveries/"+row.ID, nil, &d); err != nil {
			return err
		}
		out.Data = append(out.Data, attemptsOf(d)...)
	}
	slices.SortStableFunc(out.Data, func(a,
		b attempt,
	) int {
		return time.Time(b.Timestamp).Compare(time.Time(a.Timestamp))
	})
	return c.Answer(http.StatusOK, out)
}

func (s *svix) listAttemptsByEndpoint(c *handlers.Call) error {
	query, err := deliveryQuery(c)
	if err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, nil); err != nil {
		return err
	}
	query.Set("endpoint", c.Param(handlers.EndpointParam))
	return s.listAttempts(c, tenantPath(c)+"/deliveries", query)
}

func (s *svix) listAttemptsByMessage(c *handlers.Call) error {
	query := url.Values{}
	for _, name := range []string{"limit", "cursor"} {
		if v := listQuery(c).Get(name); v != "" {
			query.Set(name, v)
		}
	}
	path, err := s.eventPath(c)
	if err != nil {
		return err
	}
	return s.listAttempts(c, path+"/deliveries", query)
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
				return c.Answer(http.StatusOK, a)
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
	return c.Answer(http.StatusOK, taskView(tenant, "endpoint.recover", j))
}
