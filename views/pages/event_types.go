package pages

import (
	"bytes"
	"encoding/json"
	"strings"

	"posthorn/domain/catalogue"
	"posthorn/domain/show"
	"posthorn/views/charts"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// EventTypesView is the catalog of event types.
type EventTypesView struct {
	Shell        layout.Shell
	Root         string
	Rows         []catalogue.Entry
	First, Older string
	Edits        bool
}

// exports are the formats in which the catalog can be downloaded.
func (v EventTypesView) exports() []components.MenuItem {
	return []components.MenuItem{
		{Label: "OpenAPI 3.1", Icon: icons.Book, Href: v.Root + "/catalog/openapi"},
		{Label: "AsyncAPI 3.0", Icon: icons.Send, Href: v.Root + "/catalog/asyncapi"},
		{Label: "JSON Schema", Icon: icons.Code, Href: v.Root + "/catalog/json-schema"},
	}
}

// EventTypeView is the page of one event type.
type EventTypeView struct {
	Shell                    layout.Shell
	Root                     string
	Type                     catalogue.Entry
	Subscribers              []show.Destination
	More                     bool // there are endpoints that were not checked
	Edits                    bool
	Volume, Success, Latency charts.Props // of the last days
}

// EventTypeFormView is the form of an event type.
type EventTypeFormView struct {
	Shell      layout.Shell
	Root       string
	Of         string // the changed type; empty: a new one
	Wrong      map[string]string
	Fields     []components.FieldProps // name (of a new one), group
	Texts      []components.FieldProps // description, schema, example
	Check      components.FieldProps
	Deprecated components.ChoiceProps
}

func (v EventTypeFormView) action() string {
	if v.Of == "" {
		return v.Root + "/event-types"
	}
	return v.Root + "/event-types/" + v.Of
}

// indentedShown bounds the JSON of an event type on a page, in bytes.
const indentedShown = 12 << 10

// indented indents a JSON text; one that is too long is cut, and does not change.
func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if len(text) > indentedShown || json.Indent(&b, text, "", "  ") != nil {
		return strings.ToValidUTF8(string(text[:min(len(text), indentedShown)]), "")
	}
	return b.String()
}

func (v EventTypeFormView) submit() string {
	if v.Of == "" {
		return "Create event type"
	}
	return "Save event type"
}

func (v EventTypeFormView) title() string {
	if v.Of == "" {
		return "Create event type"
	}
	return "Edit " + v.Of
}

func checkOptions() []components.Option {
	return []components.Option{
		{Value: "off", Label: "Don't check"}, {Value: "warn", Label: "Warn: accept invalid data and warn the producer"}, {Value: "enforce", Label: "Enforce: reject invalid data"},
	}
}
