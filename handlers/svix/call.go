package svix

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"

	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/inner"
)

// call sends a request to Posthorn's own API with the caller's key. in is sent as JSON, bytes unchanged; nil is no
// body. The response is read into out unless that is nil.
func (s *svix) call(c *handlers.Call, method, path string, in, out any) (status int, err error) {
	var body []byte
	switch v := in.(type) {
	case nil:
	case []byte:
		body = v
	default:
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	w, err := inner.Call(c, s.API, method, path, body)
	if err != nil {
		return 0, err
	}
	if w.Status >= http.StatusBadRequest {
		return w.Status, refusalOf(w)
	}
	if out == nil || w.Body.Len() == 0 {
		return w.Status, nil
	}
	return w.Status, json.Unmarshal(w.Body.Bytes(), out)
}

// decode reads the request's body. It ignores unknown fields, as Svix does.
func decode(c *handlers.Call, into any) error {
	body, err := c.JSONBody()
	if err != nil {
		return err
	}
	if json.Unmarshal(body, into) == nil {
		return nil
	}
	var wrong []fault.Field
	for _, name := range misfits(body, reflect.TypeOf(into).Elem()) {
		wrong = append(wrong, fault.Field{Name: name, Detail: "The value does not have the type that this operation takes."})
	}
	if wrong == nil {
		wrong = []fault.Field{{Name: "", Detail: "The body does not have the shape of this operation. Send a JSON object."}}
	}
	return &refusal{status: http.StatusBadRequest, kind: notShaped, fields: wrong}
}

// notShaped is Svix's code for it.
const notShaped = "value_error.jsondecode"

// misfits are the fields of a body that can't be read into a type, each tried by itself: the words of encoding/json
// name types of this program, and differ between Go's versions.
func misfits(body []byte, t reflect.Type) (names []string) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // what is not an object has none
	for name, value := range fields {
		if json.Unmarshal(encode(map[string]json.RawMessage{name: value}), reflect.New(t).Interface()) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tenantPath is the path in Posthorn's own API of the application that the path names.
func tenantPath(c *handlers.Call) string {
	return "/tenants/" + url.PathEscape(c.Param(handlers.TenantParam))
}

func endpointOf(c *handlers.Call) string {
	return tenantPath(c) + "/endpoints/" + url.PathEscape(c.Param(handlers.EndpointParam))
}

// encode is the JSON of a value that can't fail to encode.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("encode: %w", err))
	}
	return text
}
