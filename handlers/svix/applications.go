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

func appView(t api.Tenant) (application, error) {
	a := application{
		ID:        t.ID,
		Name:      t.Name,
		Metadata:  map[string]string{},
		CreatedAt: t.CreatedAt,
		UpdatedAt: t.CreatedAt,
	}
	if uid, err := t.ExternalID.Get(); err == nil {
		a.UID = &uid
	}
	return a, nil
}

// appInput is the body of a request that creates or changes an application.
type appInput struct {
	Name         *string           `json:"name"`
	UID          json.RawMessage   `json:"uid"` // a text, or null for none
	RateLimit    *int              `json:"rateLimit"`
	ThrottleRate *int              `json:"throttleRate"`
	Metadata     map[string]string `json:"metadata"`
}

// change converts the input to a change of a tenant.
func (in appInput) change() (map[string]any, error) {
	if in.RateLimit != nil || in.ThrottleRate != nil {
		return nil, notImplemented("An application has no rate of its own. Leave rateLimit and throttleRate out, and give them to its endpoints.")
	}
	if len(in.Metadata) > 0 {
		return nil, notImplemented("An application has no metadata. Leave it out, and keep it under the application's uid.")
	}
	out := map[string]any{}
	if in.Name != nil {
		out["name"] = *in.Name
	}
	if len(in.UID) > 0 {
		out["external_id"] = in.UID
	}
	return out, nil
}

func (s *svix) listApps(c *handlers.Call) error {
	return list(s, c, "/tenants", listQuery(c), appView)
}

func readApp(c *handlers.Call) (in appInput, change map[string]any, err error) {
	if err := decode(c, &in); err != nil {
		return in, nil, err
	}
	change, err = in.change()
	return in, change, err
}

func (s *svix) createApp(c *handlers.Call) error {
	in, body, err := readApp(c)
	if err != nil {
		return err
	}
	if in.Name == nil {
		return refuseField("name", "An application needs a name.")
	}
	if string(in.UID) == "null" {
		delete(body, "external_id")
	}
	var t api.Tenant
	_, err = s.call(c, http.MethodPost, "/tenants", body, &t)
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
	v, err := appView(t)
	if err != nil {
		return err
	}
	return c.Answer(status, v)
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
	_, body, err := readApp(c)
	if err != nil {
		return err
	}
	var t api.Tenant
	_, err = s.call(c, http.MethodPatch, tenantPath(c), body, &t)
	if !missing(err) {
		if err != nil {
			return err
		}
		return answerApp(c, http.StatusOK, t)
	}
	body["external_id"] = c.Param(handlers.TenantParam)
	if _, err := s.call(c, http.MethodPost, "/tenants", body, &t); err != nil {
		return err
	}
	return answerApp(c, http.StatusCreated, t)
}

func (s *svix) patchApp(c *handlers.Call) error {
	_, body, err := readApp(c)
	if err != nil {
		return err
	}
	var t api.Tenant
	if _, err := s.call(c, http.MethodPatch, tenantPath(c), body, &t); err != nil {
		return err
	}
	return answerApp(c, http.StatusOK, t)
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
	return c.Answer(http.StatusOK, map[string]string{"url": link.URL, "token": token})
}
