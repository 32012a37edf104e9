package svix

import (
	"encoding/json"
	"net/http"
	"net/url"

	"posthorn/handlers"
	"posthorn/handlers/api"
)

// catalogue is the tenant whose event types Svix's API shows. In Svix, event types belong to the environment; in
// Posthorn, to a tenant.
const catalogue = "svix-event-types"

const typesPath = "/tenants/" + catalogue + "/event-types"

// eventType is an entry of the catalog in Svix's form.
type eventType struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Archived    bool           `json:"archived"`
	Deprecated  bool           `json:"deprecated"`
	GroupName   *string        `json:"groupName"`
	Schemas     map[string]any `json:"schemas"`
	CreatedAt   api.Time       `json:"createdAt"`
	UpdatedAt   api.Time       `json:"updatedAt"`
}

func typeView(t api.EventType) eventType {
	v := eventType{
		Name:        t.Name,
		Description: t.Description,
		Archived:    t.Deprecated,
		Deprecated:  t.Deprecated,
		CreatedAt:   t.CreatedAt,
		UpdatedAt:   t.UpdatedAt,
	}
	if t.Group != "" {
		v.GroupName = &t.Group
	}
	if schema, err := t.Schema.Get(); err == nil {
		var text any
		if json.Unmarshal(encode(schema), &text) == nil {
			v.Schemas = map[string]any{"1": text}
		}
	}
	return v
}

type typeInput struct {
	Name        string                     `json:"name"`
	Description *string                    `json:"description"`
	Archived    *bool                      `json:"archived"`
	Deprecated  *bool                      `json:"deprecated"`
	GroupName   *string                    `json:"groupName"`
	Schemas     map[string]json.RawMessage `json:"schemas"`
}

// change converts the input to a change of an event type. The schema of the newest version is for documentation; it
// validates nothing.
func (in typeInput) change() map[string]any {
	out := map[string]any{}
	if in.Description != nil {
		out["description"] = *in.Description
	}
	if in.Deprecated != nil || in.Archived != nil {
		out["deprecated"] = in.Deprecated != nil && *in.Deprecated || in.Archived != nil && *in.Archived
	}
	if in.GroupName != nil {
		out["group"] = *in.GroupName
	}
	newest := ""
	for version := range in.Schemas {
		if len(version) > len(newest) || len(version) == len(newest) && version > newest {
			newest = version
		}
	}
	if newest != "" {
		out["schema"], out["schema_check"] = in.Schemas[newest], "off"
	}
	return out
}

// ensureCatalogue creates the tenant that holds the event types.
func (s *svix) ensureCatalogue(c *handlers.Call) error {
	_, err := s.call(c, http.MethodGet, "/tenants/"+catalogue, nil, nil)
	if missing(err) {
		_, err = s.call(c, http.MethodPut, "/tenants/"+catalogue, map[string]string{"name": "Event types of the Svix API"}, nil)
	}
	return err
}

func (s *svix) listEventTypes(c *handlers.Call) error {
	if err := s.ensureCatalogue(c); err != nil {
		return err
	}
	query, err := listQuery(c)
	if err != nil {
		return err
	}
	query.Del("order") // by name
	return list(s, c, typesPath, query, each(typeView))
}

func (s *svix) createEventType(c *handlers.Call) error {
	var in typeInput
	if err := decode(c, &in); err != nil {
		return err
	}
	return s.addEventType(c, in)
}

func (s *svix) addEventType(c *handlers.Call, in typeInput) error {
	if err := s.ensureCatalogue(c); err != nil {
		return err
	}
	body := in.change()
	body["name"] = in.Name
	var t api.EventType
	if _, err := s.call(c, http.MethodPost, typesPath, body, &t); err != nil {
		return err
	}
	return answerType(c, http.StatusCreated, t)
}

func answerType(c *handlers.Call, status int, t api.EventType) error {
	return answer(c, status, typeView(t))
}

func typePath(c *handlers.Call) string { return typesPath + "/" + url.PathEscape(c.Param("name")) }

func (s *svix) getEventType(c *handlers.Call) error {
	var t api.EventType
	if _, err := s.call(c, http.MethodGet, typePath(c), nil, &t); err != nil {
		return err
	}
	return answerType(c, http.StatusOK, t)
}

// putEventType changes the event type, or creates it under the name in the path.
func (s *svix) putEventType(c *handlers.Call) error {
	var in typeInput
	if err := decode(c, &in); err != nil {
		return err
	}
	err := s.changeEventType(c, in)
	if !missing(err) {
		return err
	}
	in.Name = c.Param("name")
	return s.addEventType(c, in)
}

func (s *svix) patchEventType(c *handlers.Call) error {
	var in typeInput
	if err := decode(c, &in); err != nil {
		return err
	}
	return s.changeEventType(c, in)
}

func (s *svix) changeEventType(c *handlers.Call, in typeInput) error {
	var t api.EventType
	if _, err := s.call(c, http.MethodPatch, typePath(c), in.change(), &t); err != nil {
		return err
	}
	return answerType(c, http.StatusOK, t)
}

// deleteEventType deletes the entry. Without expunge Svix keeps it as archived, which is deprecated here.
func (s *svix) deleteEventType(c *handlers.Call) error {
	var err error
	if c.Query("expunge") == "true" {
		_, err = s.call(c, http.MethodDelete, typePath(c), nil, nil)
	} else {
		_, err = s.call(c, http.MethodPatch, typePath(c), map[string]bool{"deprecated": true}, nil)
	}
	if err != nil {
		return err
	}
	return c.AnswerNothing()
}
