package api

import (
	"encoding/json"

	"github.com/oapi-codegen/nullable"

	"posthorn/domain/catalogue"
)

// entry is a new event type as the request describes it.
func (in EventTypeInput) entry() catalogue.Entry {
	e := catalogue.Entry{Name: in.Name, Check: catalogue.Off}
	in.patch().apply(&e)
	return e
}

// patch is the input for a new event type as a change.
func (in EventTypeInput) patch() EventTypePatch {
	return EventTypePatch{
		Description: in.Description,
		Group:       in.Group,
		Schema:      in.Schema,
		Example:     in.Example,
		SchemaCheck: in.SchemaCheck,
		Deprecated:  in.Deprecated,
		Versions:    in.Versions,
	}
}

// apply changes the given fields of an entry.
func (p EventTypePatch) apply(e *catalogue.Entry) {
	set(&e.Description, p.Description)
	set(&e.Group, p.Group)
	set(&e.Deprecated, p.Deprecated)
	if p.SchemaCheck != nil {
		e.Check = catalogue.Mode(*p.SchemaCheck)
	}
	setJSON(&e.Schema, p.Schema)
	setJSON(&e.Example, p.Example)
	if p.Versions.IsSpecified() {
		e.Versions = nil
		given, err := p.Versions.Get()
		if err != nil { // null: none
			return
		}
		e.Versions = make(map[string]catalogue.Version, len(given))
		for name, v := range given {
			var version catalogue.Version
			setJSON(&version.Schema, v.Schema)
			setJSON(&version.Example, v.Example)
			e.Versions[name] = version
		}
	}
}

// setJSON sets a JSON field that is given; null removes it.
func setJSON(into *json.RawMessage, from nullable.Nullable[json.RawMessage]) {
	if from.IsSpecified() {
		text, _ := from.Get()
		*into = text
	}
}

func eventTypeView(e catalogue.Entry) EventType {
	out := EventType{
		Name:        e.Name,
		Description: e.Description,
		Group:       e.Group,
		Schema:      jsonOrNull(e.Schema),
		Example:     jsonOrNull(e.Example),
		SchemaCheck: SchemaCheck(e.Check),
		Deprecated:  e.Deprecated,
		Versions:    map[string]EventTypeVersion{},
		CreatedAt:   Time(e.CreatedAt),
		UpdatedAt:   Time(e.UpdatedAt),
	}
	for name, v := range e.Versions {
		out.Versions[name] = EventTypeVersion{Schema: jsonOrNull(v.Schema), Example: jsonOrNull(v.Example)}
	}
	return out
}

func jsonOrNull(text json.RawMessage) nullable.Nullable[json.RawMessage] {
	if text == nil {
		return nullable.NewNullNullable[json.RawMessage]()
	}
	return nullable.NewNullableWithValue(text)
}
