package svix

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"posthorn/handlers"
	"posthorn/handlers/api"
)

// application is a tenant in Svix's form. Both major lines of the libraries read it: rateLimit is the older name of
// throttleRate.
type application struct {
	ID           string            `json:"id"`
	UID          *string           `json:"uid"`
	Name         string            `json:"name"`
	RateLimit    *int              `json:"rateLimit"`
	ThrottleRate *int              `json:"throttleRate"`
	Metadata     map[string]string `json:"metadata"`
	CreatedAt    api.Time          `json:"createdAt"`
	UpdatedAt    api.Time          `json:"updatedAt"`
}

func appView(t api.Tenant) application {
	a := application{
		ID:        t.ID,
		Name:      t.Name,
		Metadata:  t.Metadata,
		CreatedAt: t.CreatedAt,
		UpdatedAt: t.CreatedAt,
	}
	if uid, err := t.ExternalID.Get(); err == nil {
		a.UID = &uid
	}
	if rate, err := t.RateLimit.Get(); err == nil {
		a.RateLimit, a.ThrottleRate = &rate, &rate
	}
	return a
}

// appInput is the body of a request that creates or changes an application. Except in a patch, a null field counts as
// missing.
type appInput struct {
	Name         *string         `json:"name"`
	UID          json.RawMessage `json:"uid"` // a text, or null for none
	RateLimit    json.RawMessage `json:"rateLimit"`
	ThrottleRate json.RawMessage `json:"throttleRate"`
	Metadata     json.RawMessage `json:"metadata"`
}

// change converts the input to a change of a tenant. With whole, missing fields get their defaults.
func (in appInput) change(whole bool) map[string]any {
	out := map[string]any{}
	if in.Name != nil {
		out["name"] = *in.Name
	}
	if len(in.UID) > 0 {
		out["external_id"] = in.UID
	}
	setGiven(out, whole, "rate_limit", either(in.ThrottleRate, in.RateLimit), nil)
	setGiven(out, whole, "metadata", in.Metadata, map[string]string{})
	return out
}

func (s *svix) listApps(c *handlers.Call) error {
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	return list(s, c, "/tenants", query, each(appView))
}

func (s *svix) createApp(c *handlers.Call) error {
	var in appInput
	if err := decode(c, &in); err != nil {
		return err
	}
	body := in.change(true)
	if in.Name == nil {
		return refuseField("name", "An application needs a name.")
	}
	if string(in.UID) == "null" {
		delete(body, "external_id")
	}
	var t api.Tenant
	_, err := s.call(c, http.MethodPost, "/tenants", body, &t)
	var r *refusal
	if errors.As(err, &r) && r.code == "external_id_in_use" && c.Query("get_if_exists") == "true" {
		var uid string
		_ = json.Unmarshal(in.UID, &uid) // it was accepted as a text
		if _, err := s.call(c, http.MethodGet, "/tenants/"+url.PathEscape(uid), nil, &t); err != nil {
			return err
		}
		return answerApp(c, http.StatusOK, t)
	}
	if err != nil {
		return err
	}
	return answerApp(c, http.StatusCreated, t)
}

func answerApp(c *handlers.Call, status int, t api.Tenant) error {
	return answer(c, status, appView(t))
}

func (s *svix) getApp(c *handlers.Call) error {
	var t api.Tenant
	if _, err := s.call(c, http.MethodGet, tenantPath(c), nil, &t); err != nil {
		return err
	}
	return answerApp(c, http.StatusOK, t)
}

// putApp changes the application, or creates it under the uid in the path.
func (s *svix) putApp(c *handlers.Call) error {
	var in appInput
	if err := decode(c, &in); err != nil {
		return err
	}
	body := in.change(true)
	err := s.changeApp(c, body)
	if !missing(err) {
		return err
	}
	body["external_id"] = c.Param(handlers.TenantParam)
	var t api.Tenant
	if _, err := s.call(c, http.MethodPost, "/tenants", body, &t); err != nil {
		return err
	}
	return answerApp(c, http.StatusCreated, t)
}

func (s *svix) patchApp(c *handlers.Call) error {
	var in appInput
	if err := decode(c, &in); err != nil {
		return err
	}
	return s.changeApp(c, in.change(false))
}

// changeApp changes the tenant. Endpoints that have the former rate of the application get the new one.
func (s *svix) changeApp(c *handlers.Call, body map[string]any) error {
	var was, t api.Tenant
	if _, err := s.call(c, http.MethodGet, tenantPath(c), nil, &was); err != nil {
		return err
	}
	if _, err := s.call(c, http.MethodPatch, tenantPath(c), body, &t); err != nil {
		return err
	}
	former, err := was.RateLimit.Get()
	if rate, none := t.RateLimit.Get(); err == nil && none == nil && rate != former {
		if err := s.changeRates(c, t.ID, former, rate); err != nil {
			return err
		}
	}
	return answerApp(c, http.StatusOK, t)
}

func (s *svix) changeRates(c *handlers.Call, tenant string, from, to int) error {
	path := "/tenants/" + tenant + "/endpoints"
	for query := "?limit=250"; ; {
		var rows own[api.Endpoint]
		if _, err := s.call(c, http.MethodGet, path+query, nil, &rows); err != nil {
			return err
		}
		for _, e := range rows.Data {
			if rate, err := e.RateLimit.Get(); err != nil || rate != from {
				continue
			}
			if _, err := s.call(c, http.MethodPatch, path+"/"+e.ID, map[string]int{"rate_limit": to}, nil); err != nil {
				return err
			}
		}
		if rows.NextCursor == nil {
			return nil
		}
		query = "?limit=250&cursor=" + url.QueryEscape(*rows.NextCursor)
	}
}

func (s *svix) deleteApp(c *handlers.Call) error {
	if _, err := s.call(c, http.MethodDelete, tenantPath(c), nil, nil); err != nil {
		return err
	}
	return c.AnswerNothing()
}

// portalAccess creates a portal link into the application's dashboard.
func (s *svix) portalAccess(c *handlers.Call) error {
	var in struct {
		Application *appInput `json:"application"`
		ReadOnly    *bool     `json:"readOnly"`
		Expiry      *int      `json:"expiry"`
	}
	if c.Request.ContentLength != 0 {
		if err := decode(c, &in); err != nil {
			return err
		}
	}
	body := map[string]any{"allow_secrets": true}
	if in.ReadOnly != nil && *in.ReadOnly {
		body["role"], body["allow_secrets"] = "viewer", false
	}
	if in.Expiry != nil {
		body["session_seconds"] = *in.Expiry
	}
	if in.Application != nil {
		body["create_tenant"] = true
	}
	var link api.PortalLinkCreated
	if _, err := s.call(c, http.MethodPost, tenantPath(c)+"/portal-links", body, &link); err != nil {
		return err
	}
	token := ""
	if u, err := url.Parse(link.URL); err == nil {
		token = u.Query().Get("token")
	}
	return answer(c, http.StatusOK, map[string]string{"url": link.URL, "token": token})
}
