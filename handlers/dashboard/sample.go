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

// fill changes the data of a form as one of its buttons asks, and redirects to the form's page, which shows it. asked
// is false if the form is sent by another button. An error is left to the caller, which shows the form again.
func (a *dashboard) fill(c *handlers.Call, form url.Values, page string) (asked bool, err error) {
	what := form.Get("fill")
	if what == "" {
		return false, nil
	}
	data, err := a.filling(c, what, strings.TrimSpace(form.Get("type")), form.Get("data"))
	if err != nil {
		return true, err
	}
	form.Set("data", data)
	form.Del("fill")
	if err := c.KeepOnce(page, form); err != nil {
		return true, err
	}
	return true, c.Redirect(page)
}

// filling is the data that a button fills in.
func (a *dashboard) filling(c *handlers.Call, what, kind, typed string) (data string, err error) {
	read, missing := a.lastOf, errNoLast
	switch what {
	case pages.FillFormat:
		return indented([]byte(typed)), checkJSON(typed)
	case pages.FillExample:
		read, missing = exampleOf, errNoExample
	}
	err = c.Tx(func(q *db.Tx) (err error) {
		data, err = read(c, q, kind)
		return err
	})
	if err == nil && data == "" {
		err = missing
	}
	return data, err
}
