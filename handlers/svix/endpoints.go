package svix

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// endpointOut is an endpoint in Svix's form, with the field names of both major lines of the libraries.
type endpointOut struct {
	ID           string            `json:"id"`
	UID          *string           `json:"uid"`
	URL          string            `json:"url"`
	Description  string            `json:"description"`
	Version      int               `json:"version"`
	FilterTypes  []string          `json:"filterTypes"`
	EventTypes   []string          `json:"eventTypes"`
	Channels     []string          `json:"channels"`
	Disabled     bool              `json:"disabled"`
	RateLimit    *int              `json:"rateLimit"`
	ThrottleRate *int              `json:"throttleRate"`
	Metadata     map[string]string `json:"metadata"`
	CreatedAt    api.Time          `json:"createdAt"`
	UpdatedAt    api.Time          `json:"updatedAt"`
}

func endpointView(e api.Endpoint) endpointOut {
	v := endpointOut{
		ID:          e.ID,
		URL:         e.URL,
		Description: e.Description,
		Version:     1,
		Disabled:    e.Status != "active",
		Metadata:    e.Metadata,
		CreatedAt:   e.CreatedAt,
		UpdatedAt:   e.UpdatedAt,
	}
	if uid, err := e.ExternalID.Get(); err == nil {
		v.UID = &uid
	}
	if !slices.Equal(e.EventTypes, []string{"*"}) {
		v.FilterTypes, v.EventTypes = e.EventTypes, e.EventTypes
	}
	if len(e.Channels) > 0 {
		v.Channels = e.Channels
	}
	if rate, err := e.RateLimit.Get(); err == nil {
		v.RateLimit, v.ThrottleRate = &rate, &rate
	}
	return v
}

// endpointInput is the body of a request that creates or changes an endpoint. Except in a patch, a null field counts as
// missing.
type endpointInput struct {
	URL          *string           `json:"url"`
	UID          json.RawMessage   `json:"uid"`
	Description  *string           `json:"description"`
	FilterTypes  json.RawMessage   `json:"filterTypes"`
	EventTypes   json.RawMessage   `json:"eventTypes"`
	Channels     json.RawMessage   `json:"channels"`
	Disabled     *bool             `json:"disabled"`
	RateLimit    json.RawMessage   `json:"rateLimit"`
	ThrottleRate json.RawMessage   `json:"throttleRate"`
	Secret       *string           `json:"secret"`
	Headers      map[string]string `json:"headers"`
	Metadata     json.RawMessage   `json:"metadata"`
}

// either is the first of two fields that is present.
func either(a, b json.RawMessage) json.RawMessage {
	if len(a) > 0 && string(a) != "null" || len(b) == 0 {
		return a
	}
	return b
}

// setGiven sets a field to what was given. A null, and with whole a missing one, is none.
func setGiven(out map[string]any, whole bool, name string, given json.RawMessage, none any) {
	switch {
	case len(given) > 0 && string(given) != "null":
		out[name] = given
	case len(given) > 0 || whole:
		out[name] = none
	}
}

// change converts the input to a change of an endpoint. With whole, missing fields get their defaults.
func (in endpointInput) change(whole bool) map[string]any {
	out := map[string]any{}
	if in.URL != nil {
		out["url"] = *in.URL
	}
	if in.Description != nil {
		out["description"] = *in.Description
	}
	setGiven(out, whole, "event_types", either(in.EventTypes, in.FilterTypes), []string{"*"})
	setGiven(out, whole, "channels", in.Channels, []string{})
	setGiven(out, whole, "rate_limit", either(in.ThrottleRate, in.RateLimit), nil)
	setGiven(out, whole, "metadata", in.Metadata, map[string]string{})
	if len(in.UID) > 0 {
		out["external_id"] = in.UID
	}
	return out
}

// retries is Svix's schedule: seven more attempts, over 28 hours.
var retries = map[string]any{"name": "custom", "delays": []int{5, 300, 1800, 7200, 18000, 36000, 36000}}

func (s *svix) listEndpoints(c *handlers.Call) error {
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	return list(s, c, tenantPath(c)+"/endpoints", query, each(endpointView))
}

func (s *svix) createEndpoint(c *handlers.Call) error {
	var in endpointInput
	if err := decode(c, &in); err != nil {
		return err
	}
	return s.addEndpoint(c, in)
}

// addEndpoint creates an endpoint that is rendered, signed and retried as by Svix, and is active immediately: Svix
// verifies none.
func (s *svix) addEndpoint(c *handlers.Call, in endpointInput) error {
	body := in.change(true)
	body["preset"], body["verification"], body["assume_verified"] = "svix", "simple", true
	body["retry_policy"], body["retry_client_errors"] = retries, true
	body["when_held"] = endpoint.Drop // a disabled endpoint of Svix gets nothing later
	if len(either(in.ThrottleRate, in.RateLimit)) == 0 {
		delete(body, "rate_limit") // the application's
	}
	if string(in.UID) == "null" {
		delete(body, "external_id")
	}
	if in.Secret != nil {
		body["secret"] = *in.Secret
	}
	if len(in.Headers) > 0 {
		body["custom_headers"] = in.Headers
	}
	var e api.Endpoint
	if _, err := s.call(c, http.MethodPost, tenantPath(c)+"/endpoints", body, &e); err != nil {
		return err
	}
	e, err := s.disable(c, e, in.Disabled)
	if err != nil {
		return err
	}
	return answerEndpoint(c, http.StatusCreated, e)
}

// disable pauses or resumes an endpoint, as requested. What is sent while it is disabled is dropped.
func (s *svix) disable(c *handlers.Call, e api.Endpoint, disabled *bool) (api.Endpoint, error) {
	if disabled == nil || *disabled == (e.Status != "active") {
		return e, nil
	}
	action := "/resume"
	if *disabled {
		action = "/pause"
	}
	path := tenantPath(c) + "/endpoints/" + url.PathEscape(e.ID)
	if *disabled && string(e.WhenHeld) != endpoint.Drop {
		if _, err := s.call(c, http.MethodPatch, path, map[string]string{"when_held": endpoint.Drop}, nil); err != nil {
			return e, err
		}
	}
	if _, err := s.call(c, http.MethodPost, path+action, nil, nil); err != nil {
		return e, err
	}
	_, err := s.call(c, http.MethodGet, path, nil, &e)
	return e, err
}

func answerEndpoint(c *handlers.Call, status int, e api.Endpoint) error {
	return answer(c, status, endpointView(e))
}

func (s *svix) getEndpoint(c *handlers.Call) error {
	var e api.Endpoint
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, &e); err != nil {
		return err
	}
	return answerEndpoint(c, http.StatusOK, e)
}

// putEndpoint changes the endpoint, or creates it under the uid in the path.
func (s *svix) putEndpoint(c *handlers.Call) error {
	var in endpointInput
	if err := decode(c, &in); err != nil {
		return err
	}
	err := s.changeEndpoint(c, in, true)
	if !missing(err) {
		return err
	}
	if len(in.UID) == 0 || string(in.UID) == "null" {
		in.UID = encode(c.Param(handlers.EndpointParam))
	}
	return s.addEndpoint(c, in)
}

func (s *svix) patchEndpoint(c *handlers.Call) error {
	var in endpointInput
	if err := decode(c, &in); err != nil {
		return err
	}
	return s.changeEndpoint(c, in, false)
}

func (s *svix) changeEndpoint(c *handlers.Call, in endpointInput, whole bool) error {
	var e api.Endpoint
	if _, err := s.call(c, http.MethodPatch, endpointOf(c), in.change(whole), &e); err != nil {
		return err
	}
	e, err := s.disable(c, e, in.Disabled)
	if err != nil {
		return err
	}
	return answerEndpoint(c, http.StatusOK, e)
}

func (s *svix) deleteEndpoint(c *handlers.Call) error {
	if _, err := s.call(c, http.MethodDelete, endpointOf(c), nil, nil); err != nil {
		return err
	}
	return c.AnswerNothing()
}

// getSecret shows the newest secret. Posthorn's own API never does that, but Svix's libraries have no other way to get
// the secret of an endpoint that they created. The audit log records who asked.
func (s *svix) getSecret(c *handlers.Call) error {
	u, err := c.ID(id.Endpoint, handlers.EndpointParam)
	if err != nil {
		return err
	}
	var text string
	err = s.DB.Tenant(c.Ctx(), c.Actor.Tenant, func(q *db.Tx) error {
		text, err = endpoints.Reveal(c.Ctx(), q, s.Keys, c.Actor.Tenant, u, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, map[string]string{"key": text})
}

func (s *svix) rotateSecret(c *handlers.Call) error {
	var in struct {
		Key   *string `json:"key"`
		Grace *int    `json:"gracePeriodSeconds"`
	}
	if c.Request.ContentLength != 0 {
		if err := decode(c, &in); err != nil {
			return err
		}
	}
	body := map[string]any{"overlap_seconds": endpoint.DefaultOverlap}
	if in.Grace != nil {
		body["overlap_seconds"] = *in.Grace
	}
	if in.Key != nil {
		body["secret"] = *in.Key
	}
	var made struct {
		Secret string `json:"secret"`
	}
	if _, err := s.call(c, http.MethodPost, endpointOf(c)+"/rotate-secret", body, &made); err != nil {
		return err
	}
	return answerRotated(c, made.Secret)
}

func (s *svix) getHeaders(c *handlers.Call) error {
	var e api.Endpoint
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, &e); err != nil {
		return err
	}
	shown, sensitive := map[string]string{}, []string{}
	for name, value := range e.CustomHeaders {
		if value == nil {
			sensitive = append(sensitive, name)
		} else {
			shown[name] = *value
		}
	}
	slices.Sort(sensitive)
	return c.Answer(http.StatusOK, map[string]any{"headers": shown, "sensitive": sensitive})
}

func (s *svix) putHeaders(c *handlers.Call) error {
	var in struct {
		Headers map[string]string `json:"headers"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	if in.Headers == nil {
		in.Headers = map[string]string{}
	}
	return s.setHeaders(c, in.Headers)
}

// patchHeaders changes some headers. It deletes null ones; the others do not change.
func (s *svix) patchHeaders(c *handlers.Call) error {
	var in struct {
		Headers       map[string]*string `json:"headers"`
		DeleteHeaders []string           `json:"deleteHeaders"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	var e api.Endpoint
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, &e); err != nil {
		return err
	}
	all := e.CustomHeaders // a null value keeps the header
	for name, value := range in.Headers {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	for _, name := range in.DeleteHeaders {
		delete(all, name)
	}
	return s.setHeaders(c, all)
}

func (s *svix) setHeaders(c *handlers.Call, headers any) error {
	if _, err := s.call(c, http.MethodPatch, endpointOf(c), map[string]any{"custom_headers": headers}, nil); err != nil {
		return err
	}
	return c.AnswerNothing()
}

// getTransformation responds that there is none, if the endpoint exists.
func (s *svix) getTransformation(c *handlers.Call) error {
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, nil); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, map[string]any{"code": nil, "enabled": false})
}

// endpointStats counts attempts by hour.
func (s *svix) endpointStats(c *handlers.Call) error {
	var e api.Endpoint
	if _, err := s.call(c, http.MethodGet, endpointOf(c), nil, &e); err != nil {
		return err
	}
	query := url.Values{"by": {"hour"}, "endpoint": {e.ID}}
	for _, name := range []string{"since", "until"} {
		if v := c.Query(name); v != "" {
			query.Set(name, v)
		}
	}
	var numbers api.Analytics
	if _, err := s.call(c, http.MethodGet, tenantPath(c)+"/analytics/deliveries?"+query.Encode(), nil, &numbers); err != nil {
		return err
	}
	out := map[string]int{"success": 0, "fail": 0, "pending": e.Condition.Waiting, "sending": 0, "canceled": 0}
	for _, row := range numbers.Data {
		out["success"] += row.Succeeded
		out["fail"] += row.Failed
	}
	return answer(c, http.StatusOK, out)
}

func (s *svix) recoverEndpoint(c *handlers.Call) error {
	return s.startTask(c, "/recover", "endpoint.recover")
}

func (s *svix) replayMissing(c *handlers.Call) error {
	return s.startTask(c, "/replay-missing", "endpoint.replay")
}

// task is a bulk job in Svix's form. Its id contains the application too, since Svix's path of a task does not.
type task struct {
	ID        string         `json:"id"`
	Status    string         `json:"status"`
	Task      string         `json:"task"`
	Data      map[string]any `json:"data,omitempty"`
	UpdatedAt *api.Time      `json:"updatedAt,omitempty"`
}

func taskView(tenant, kind string, j api.BulkJob) task {
	t := task{
		ID:        "qtask_" + tenant + "." + j.ID,
		Status:    "running",
		Task:      kind,
		Data:      map[string]any{"done": j.Done, "expected": j.Expected},
		UpdatedAt: &j.CreatedAt,
	}
	if at, err := j.EndedAt.Get(); err == nil {
		t.UpdatedAt, t.Status = &at, "finished"
		if _, err := j.Failure.Get(); err == nil {
			t.Status = "failed"
		}
	}
	return t
}

func (s *svix) startTask(c *handlers.Call, path, kind string) error {
	var in map[string]json.RawMessage
	if err := decode(c, &in); err != nil {
		return err
	}
	body := map[string]json.RawMessage{}
	for _, name := range []string{"since", "until"} {
		if v := in[name]; len(v) > 0 && string(v) != "null" {
			body[name] = v
		}
	}
	var t api.Tenant
	if _, err := s.call(c, http.MethodGet, tenantPath(c), nil, &t); err != nil {
		return err
	}
	var j api.BulkJob
	if _, err := s.call(c, http.MethodPost, endpointOf(c)+path, body, &j); err != nil {
		return err
	}
	started := taskView(t.ID, kind, j)
	if started.Data = nil; strict(c) { // they are of a task that is read alone
		started.UpdatedAt = nil
	}
	return answer(c, http.StatusAccepted, started)
}

// sendExample sends a test event to this endpoint alone, with the example of the event type's schema if it has one.
func (s *svix) sendExample(c *handlers.Call) error {
	var in struct {
		EventType string `json:"eventType"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	if in.EventType == "" {
		return refuseField("eventType", "An example needs an event type.")
	}
	body := map[string]any{"type": in.EventType}
	var t api.EventType
	switch _, err := s.call(c, http.MethodGet, typesPath+"/"+url.PathEscape(in.EventType), nil, &t); {
	case err == nil:
		if example := exampleOf(t); example != nil {
			body["data"] = example
		}
	case !missing(err):
		return err
	}
	var made api.TestAccepted
	if _, err := s.call(c, http.MethodPost, endpointOf(c)+"/test", body, &made); err != nil {
		return err
	}
	m, err := s.readMessage(c, made.ID, true)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, m)
}

// exampleOf is the example in the schema of an event type; nil: it has none.
func exampleOf(t api.EventType) json.RawMessage {
	schema, err := t.Schema.Get()
	if err != nil {
		return nil
	}
	var has struct {
		Example  json.RawMessage   `json:"example"`
		Examples []json.RawMessage `json:"examples"`
	}
	_ = json.Unmarshal(encode(schema), &has) // a schema of another shape has none
	if len(has.Examples) > 0 {
		return has.Examples[0]
	}
	return has.Example
}
