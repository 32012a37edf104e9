package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Document is a format in which a catalogue is published.
type Document string

// The formats.
const (
	OpenAPI    Document = "openapi"     // 3.1, with a webhook for each type
	AsyncAPI   Document = "asyncapi"    // 3.0, with a message for each type
	JSONSchema Document = "json-schema" // draft 2020-12, one schema for the body of any type
)

// Documents lists the formats.
func Documents() []Document { return []Document{OpenAPI, AsyncAPI, JSONSchema} }

// About is what a document says of the catalogue as a whole.
type About struct {
	Title   string
	Version string // changes when the catalogue does
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// envelopeMark says in an exported document that a schema is Posthorn's envelope around an event's data.
// versionMark names the payload version that a schema of the data is for.
const (
	envelopeMark = "x-posthorn-envelope"
	versionMark  = "x-posthorn-version"
)

// Publish writes entries as a document: indented JSON, the same bytes for the same entries. The schemas describe the
// body of the standard format: an envelope with id, type, timestamp and, in data, what the type's own schema says.
// References within a type's schema lead to where it is in the document.
func Publish(as Document, about About, entries []Entry) ([]byte, error) {
	p := &publisher{names: map[string]bool{}, schemas: map[string]any{}, at: componentPrefix}
	if as == JSONSchema {
		p.at = ownPrefix
	}
	entries = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		p.names[e.Name] = true
	}
	var doc map[string]any
	var err error
	switch as {
	case OpenAPI:
		doc, err = p.openAPI(about, entries)
	case AsyncAPI:
		doc, err = p.asyncAPI(about, entries)
	case JSONSchema:
		doc, err = p.jsonSchema(about, entries)
	default:
		return nil, fmt.Errorf("catalogue: there is no format %q", as)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(doc)
	return out.Bytes(), err
}

type publisher struct {
	at      string          // where the document has its schemas: a pointer that ends in /
	names   map[string]bool // that schemas have
	schemas map[string]any
}

// body is the schema of a type's whole body. It adds the schemas of the data.
func (p *publisher) body(e Entry) (map[string]any, error) {
	data, err := p.data(e)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{
		"id":        map[string]any{"type": "string", "description": "Of the event; the same in each attempt and replay"},
		"type":      map[string]any{"const": e.Name},
		"timestamp": map[string]any{"type": "string", "format": "date-time"},
		"data":      data,
	}
	if len(e.Versions) > 0 {
		fields["version"] = map[string]any{"type": "string", "description": "Of the data, where the event has one"}
	}
	return map[string]any{"type": "object", "required": []any{"id", "type", "timestamp", "data"}, "properties": fields, envelopeMark: true}, nil
}

// data is the schema of an event's data: a reference to the type's own, or to any of its versions'.
func (p *publisher) data(e Entry) (any, error) {
	own, err := p.define(e.Name, e.Schema)
	if err != nil || len(e.Versions) == 0 {
		return own, err
	}
	choices := []any{own}
	for _, name := range VersionNames(e.Versions) {
		key := e.Name + "-" + name
		for p.names[key] {
			key += "_"
		}
		p.names[key] = true
		one, err := p.define(key, e.Versions[name].Schema)
		if err != nil {
			return nil, err
		}
		one[versionMark] = name
		choices = append(choices, one)
	}
	return map[string]any{"anyOf": choices}, nil
}

// define adds a schema to the document, and refers to it. A type without a schema has any data.
func (p *publisher) define(name string, text json.RawMessage) (map[string]any, error) {
	var v any = map[string]any{}
	if text != nil {
		var err error
		if v, err = exactJSON(text); err != nil {
			return nil, err
		}
		switch top := v.(type) {
		case map[string]any:
			delete(top, "$id") // references would begin there
		case bool: // AsyncAPI has no schemas true and false among its components
			v = map[string]any{}
			if !top {
				v = map[string]any{"not": map[string]any{}}
			}
		}
		move(v, "#", p.at+name)
	}
	p.schemas[name] = v
	return map[string]any{"$ref": p.at + name}, nil
}

// move rewrites the references of a schema to itself for where it is from now on.
func move(v any, from, to string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			move(item, from, to)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && (ref == from || strings.HasPrefix(ref, from+"/")) {
			v["$ref"] = to + strings.TrimPrefix(ref, from)
		}
		for keyword, member := range v {
			if !dataKeywords[keyword] {
				move(member, from, to)
			}
		}
	}
}

// dataKeywords are keywords whose values are data and no schemas.
var dataKeywords = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true}

// sample is an example of the whole body.
func sample(e Entry) (any, bool) {
	if e.Example == nil {
		return nil, false
	}
	data, err := exactJSON(e.Example)
	return map[string]any{"id": "evt_01jd3v8m1fe4fvv0s5c7xk9q2r", "type": e.Name, "timestamp": "2026-01-31T12:00:00.000Z", "data": data}, err == nil
}

func (p *publisher) openAPI(about About, entries []Entry) (map[string]any, error) {
	webhooks := map[string]any{}
	for _, e := range entries {
		body, err := p.body(e)
		if err != nil {
			return nil, err
		}
		content := map[string]any{"schema": body}
		if example, ok := sample(e); ok {
			content["example"] = example
		}
		post := map[string]any{
			"operationId": e.Name,
			"parameters": []any{
				map[string]any{"$ref": "#/components/parameters/webhook-id"},
				map[string]any{"$ref": "#/components/parameters/webhook-timestamp"},
				map[string]any{"$ref": "#/components/parameters/webhook-signature"},
			},
			"requestBody": map[string]any{"required": true, "content": map[string]any{"application/json": content}},
			"responses": map[string]any{
				"2XX":     map[string]any{"description": "Received"},
				"default": map[string]any{"description": "Not received: the delivery is retried, unless the status says that this is useless"},
			},
		}
		describe(post, e)
		webhooks[e.Name] = map[string]any{"post": post}
	}
	header := func(name, text string) map[string]any {
		return map[string]any{"name": name, "in": "header", "required": true, "description": text, "schema": map[string]any{"type": "string"}}
	}
	return map[string]any{
		"openapi":  "3.1.0",
		"info":     map[string]any{"title": about.Title, "version": about.Version},
		"webhooks": webhooks,
		"components": map[string]any{
			"schemas": p.schemas,
			"parameters": map[string]any{
				"webhook-id":        header("webhook-id", "Deduplicate by it"),
				"webhook-timestamp": header("webhook-timestamp", "Seconds since 1970"),
				"webhook-signature": header("webhook-signature", "See https://www.standardwebhooks.com"),
			},
		},
	}, nil
}

// describe adds what people read about a type.
func describe(to map[string]any, e Entry) {
	if e.Description != "" {
		to["description"] = e.Description
	}
	if e.Group != "" {
		to["tags"] = []any{e.Group}
	}
	if e.Deprecated {
		to["deprecated"] = true
	}
}

func (p *publisher) asyncAPI(about About, entries []Entry) (map[string]any, error) {
	messages, inChannel, sent := map[string]any{}, map[string]any{}, []any{}
	for _, e := range entries {
		body, err := p.body(e)
		if err != nil {
			return nil, err
		}
		message := map[string]any{
			"name":        e.Name,
			"title":       e.Name,
			"contentType": "application/json",
			"payload":     body,
			"headers": map[string]any{
				"type":     "object",
				"required": []any{"webhook-id", "webhook-timestamp", "webhook-signature"},
				"properties": map[string]any{
					"webhook-id":        map[string]any{"type": "string"},
					"webhook-timestamp": map[string]any{"type": "string"},
					"webhook-signature": map[string]any{"type": "string"},
				},
			},
		}
		if e.Description != "" {
			message["description"] = e.Description
		}
		if e.Group != "" {
			message["tags"] = []any{map[string]any{"name": e.Group}}
		}
		if e.Deprecated {
			message["x-deprecated"] = true
		}
		if example, ok := sample(e); ok {
			message["examples"] = []any{map[string]any{"payload": example}}
		}
		messages[e.Name] = message
		inChannel[e.Name] = map[string]any{"$ref": "#/components/messages/" + e.Name}
		sent = append(sent, map[string]any{"$ref": "#/channels/webhooks/messages/" + e.Name})
	}
	operation := map[string]any{"action": "send", "channel": map[string]any{"$ref": "#/channels/webhooks"}, "messages": sent}
	return map[string]any{
		"asyncapi":           "3.0.0",
		"info":               map[string]any{"title": about.Title, "version": about.Version},
		"defaultContentType": "application/json",
		"channels": map[string]any{"webhooks": map[string]any{
			"address":     nil,
			"description": "The endpoint that a receiver selected",
			"messages":    inChannel,
		}},
		"operations": map[string]any{"send": operation},
		"components": map[string]any{"messages": messages, "schemas": p.schemas},
	}, nil
}

func (p *publisher) jsonSchema(about About, entries []Entry) (map[string]any, error) {
	choices := []any{}
	for _, e := range entries {
		body, err := p.body(e)
		if err != nil {
			return nil, err
		}
		body["title"] = e.Name
		for keyword, v := range map[string]any{"description": e.Description, "deprecated": e.Deprecated} {
			if v != "" && v != false {
				body[keyword] = v
			}
		}
		if example, ok := sample(e); ok {
			body["examples"] = []any{example}
		}
		choices = append(choices, body)
	}
	doc := map[string]any{"$schema": draft, "title": about.Title, "$comment": "Version " + about.Version, "$defs": p.schemas}
	if len(choices) > 0 {
		doc["oneOf"] = choices
	}
	return doc, nil
}

// unwrap is the data's schema and example where a webhook's body is Posthorn's envelope, so that what was published can
// be imported. Versions of the data are versions again.
func (d *openAPI) unwrap(e *Entry) (bool, error) {
	var body struct {
		Mark       bool `json:"x-posthorn-envelope"`
		Properties struct {
			Data struct {
				Ref   string `json:"$ref"`
				AnyOf []struct {
					Ref     string `json:"$ref"`
					Version string `json:"x-posthorn-version"`
				} `json:"anyOf"`
			} `json:"data"`
		} `json:"properties"`
	}
	if json.Unmarshal(e.Schema, &body) != nil || !body.Mark {
		return false, nil
	}
	data := body.Properties.Data
	if data.Ref == "" && len(data.AnyOf) > 0 {
		data.Ref = data.AnyOf[0].Ref
	}
	var err error
	if e.Schema, err = d.own(data.Ref); err != nil {
		return true, err
	}
	for i, one := range data.AnyOf {
		if i == 0 {
			continue
		}
		text, err := d.own(one.Ref)
		if err != nil {
			return true, err
		}
		if e.Versions == nil {
			e.Versions = map[string]Version{}
		}
		e.Versions[one.Version] = Version{Schema: text}
	}
	var example struct {
		Data json.RawMessage `json:"data"`
	}
	if e.Example != nil && json.Unmarshal(e.Example, &example) == nil {
		e.Example = example.Data
	}
	return true, nil
}

// own is a published schema by itself again; nil where it says nothing.
func (d *openAPI) own(ref string) (json.RawMessage, error) {
	text, ok := d.Components.Schemas[strings.TrimPrefix(ref, componentPrefix)]
	if !ok {
		return nil, refuseDocument(fmt.Sprintf("The document refers to the schema %.100q, which isn't in its components.", ref))
	}
	v, err := exactJSON(text)
	if err != nil {
		return nil, err
	}
	if top, ok := v.(map[string]any); ok && len(top) == 0 {
		return nil, nil
	}
	move(v, ref, "#")
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(v)
	return bytes.TrimSpace(out.Bytes()), err
}
