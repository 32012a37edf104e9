package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/events"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// The data that a test event has if nothing is known of its type.
const (
	testData   = "{\n  \"test\": true\n}"
	sampleData = "{\n  \"id\": 42,\n  \"amount\": 19.9,\n  \"currency\": \"EUR\"\n}"
)

// maxSample is the longest data that a form is filled with, in bytes.
const maxSample = 64 << 10

var (
	errNoExample = fault.InvalidField("data", event.CodeDataMissing, "The catalog has no example of this event type. Add one on the page of the event type.")
	errNoLast    = fault.InvalidField("data", event.CodeDataMissing, "There is no event of this type yet that fits here.")
)

// sampleOf is data for a test event of a type: the catalog's example, or else that of the last event.
func (a *dashboard) sampleOf(c *handlers.Call, kind string) (data string, err error) {
	data = sampleData
	if kind == endpoint.TestType {
		return testData, nil
	}
	if kind == "" {
		return data, nil
	}
	err = c.Tx(func(q *db.Tx) error {
		example, err := exampleOf(c, q, kind)
		if err == nil && example == "" {
			example, err = a.lastOf(c, q, kind)
		}
		data = cmp.Or(example, data)
		return err
	})
	return data, err
}

// exampleOf is the catalog's example of a type; empty: there is none, or the reader can't see it.
func exampleOf(c *handlers.Call, q *db.Tx, kind string) (string, error) {
	if !c.Actor.May(access.ReadEventTypes) {
		return "", nil
	}
	entry, err := events.ReadType(c.Ctx(), q, c.Actor.Tenant, kind)
	if db.IsMissing(err) {
		return "", nil
	}
	return indented(entry.Example), err
}

// lastOf is the data of the newest event of a type; empty: there is none, or the reader can't see it.
func (a *dashboard) lastOf(c *handlers.Call, q *db.Tx, kind string) (string, error) {
	if !event.ValidType(kind) {
		return "", nil
	}
	payloads, err := a.readsPayloads(c, q)
	if err != nil || !payloads {
		return "", err
	}
	newest, err := events.List(c.Ctx(), q, c.Actor.Tenant, events.Filter{Type: kind}, show.Range{Limit: 1}, a.Now())
	if err != nil || len(newest.Rows) == 0 {
		return "", err
	}
	e, err := events.Read(c.Ctx(), q, c.Actor.Tenant, newest.Rows[0].ID)
	if db.IsMissing(err) || len(e.Data) > maxSample {
		return "", nil
	}
	return indented(e.Data), err
}

// indented is JSON as people edit it. Numbers stay as they are written.
func indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// fill changes the data of a form as one of its buttons asks. asked is false if the form is sent by another button.
func (a *dashboard) fill(c *handlers.Call, form url.Values) (asked bool, err error) {
	kind, data := strings.TrimSpace(form.Get("type")), ""
	switch form.Get("fill") {
	case pages.FillFormat:
		if err := checkJSON(form.Get("data")); err != nil {
			return true, err
		}
		data = indented([]byte(form.Get("data")))
	case pages.FillExample:
		err = c.Tx(func(q *db.Tx) (err error) { data, err = exampleOf(c, q, kind); return err })
		if err == nil && data == "" {
			err = errNoExample
		}
	case pages.FillLast:
		err = c.Tx(func(q *db.Tx) (err error) { data, err = a.lastOf(c, q, kind); return err })
		if err == nil && data == "" {
			err = errNoLast
		}
	default:
		return false, nil
	}
	if err == nil {
		form.Set("data", data)
	}
	return true, err
}
