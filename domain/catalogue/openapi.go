package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"posthorn/domain/fault"
)

// openAPI is what an OpenAPI 3.1 document says of webhooks; the rest is not looked at.
type openAPI struct {
	OpenAPI    string                          `json:"openapi"`
	Webhooks   map[string]map[string]operation `json:"webhooks"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Deprecated  bool     `json:"deprecated"`
	RequestBody struct {
		Content map[string]struct {
			Schema   json.RawMessage `json:"schema"`
			Example  json.RawMessage `json:"example"`
			Examples map[string]struct {
				Value json.RawMessage `json:"value"`
			} `json:"examples"`
		} `json:"content"`
	} `json:"requestBody"`
}

// FromOpenAPI makes an entry of each webhook of an OpenAPI 3.1 document: its name, the summary or description of its
// POST, the first tag as group, and the schema and example of its JSON body. Schemas of the components that a webhook
// refers to go with it. A document that Publish wrote gives its entries back. Errors are *fault.Error with code
// openapi_invalid and field openapi.
func FromOpenAPI(document []byte) ([]Entry, error) {
	var doc openAPI
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, refuseDocument("The document isn't valid OpenAPI 3.1. Each webhook needs a method with a requestBody that has content.")
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		return nil, refuseDocument("The document must be OpenAPI 3.1, which describes webhooks. The field openapi must start with 3.1.")
	}
	if len(doc.Webhooks) == 0 {
		return nil, refuseDocument("The document has no webhooks.")
	}
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(doc.Webhooks)) {
		post, ok := doc.Webhooks[name]["post"]
		if !ok {
			return nil, refuseDocument(fmt.Sprintf("The webhook %.100q has no post.", name))
		}
		e := Entry{Name: name, Description: post.Description, Deprecated: post.Deprecated, Check: Off}
		if e.Description == "" {
			e.Description = post.Summary
		}
		if len(post.Tags) > 0 {
			e.Group = post.Tags[0]
		}
		body := post.RequestBody.Content["application/json"]
		e.Example = body.Example
		for _, key := range slices.Sorted(maps.Keys(body.Examples)) {
			if e.Example == nil {
				e.Example = body.Examples[key].Value
			}
		}
		e.Schema = body.Schema
		wrapped, err := doc.unwrap(&e)
		if err == nil && !wrapped {
			e.Schema, err = doc.whole(body.Schema)
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func refuseDocument(detail string) error {
	return fault.InvalidField("openapi", "openapi_invalid", detail)
}

const (
	componentPrefix = "#/components/schemas/"
	ownPrefix       = "#/$defs/"
)

// whole makes a schema self-contained: what it refers to in the components becomes its own $defs.
func (d *openAPI) whole(text json.RawMessage) (json.RawMessage, error) {
	if text == nil {
		return nil, nil
	}
	root, err := exactJSON(text)
	if err != nil {
		return nil, err
	}
	defs := map[string]any{}
	if err := d.gather(root, defs); err != nil {
		return nil, err
	}
	if len(defs) > 0 {
		if top, ok := root.(map[string]any); ok {
			if own, ok := top["$defs"].(map[string]any); ok {
				maps.Copy(defs, own)
			}
			top["$defs"] = defs
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(root)
	return bytes.TrimSpace(out.Bytes()), err
}

// gather rewrites references to components, and adds what they lead to.
func (d *openAPI) gather(v any, defs map[string]any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := d.gather(item, defs); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && strings.HasPrefix(ref, componentPrefix) {
			name, below, deep := strings.Cut(strings.TrimPrefix(ref, componentPrefix), "/")
			v["$ref"] = ownPrefix + name
			if deep {
				v["$ref"] = ownPrefix + name + "/" + below
			}
			if err := d.define(name, defs); err != nil {
				return err
			}
		}
		for _, member := range v {
			if err := d.gather(member, defs); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *openAPI) define(name string, defs map[string]any) error {
	if _, known := defs[name]; known {
		return nil
	}
	text, ok := d.Components.Schemas[name]
	if !ok {
		return refuseDocument(fmt.Sprintf("The document refers to the schema %.100q, which isn't in its components.", name))
	}
	target, err := exactJSON(text)
	if err != nil {
		return err
	}
	defs[name] = target
	return d.gather(target, defs)
}

// exactJSON keeps numbers as they are written.
func exactJSON(text []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
