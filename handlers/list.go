package handlers

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// The range of the rows of a page in the API.
const (
	DefaultLimit = 50
	MaxLimit     = 250
)

// List says which query parameters a list takes. A list of the API also takes limit, order and cursor. A list of a page
// has Rows: it takes after and before, which are the position of a row, and leaves out empty fields of its form.
//
// Each surface reads a list in the same way. Call.Page reads the parameters; a function of db reads a show.Page of
// nouns in Page.Range. The API responds with the nouns and Page.Cursor of the next position. A page calls ReadPage,
// which also knows the addresses of the pages before and after, and shows what is wrong with the filters (FormErrors)
// beside them.
type List struct {
	Name      string   // names the list in its cursors; never changes
	Ascending bool     // the default order
	Statuses  []string // the values of status; nil if the list has no such filter
	Filters   []Filter
	Choices   []Choice
	Whole     bool // the list has no pages: no limit, no cursor, and no order

	Rows int      // how many rows a page of HTML shows; 0: a list of the API
	Of   id.Kind  // what the rows of a page of HTML are; empty: they have names instead of ids
	Back bool     // the page before one can be read too
	Own  []string // parameters that the page reads itself
	Path string   // of the page, if it is not the request's
}

// Shown is the list on a page of HTML with this many rows, and with further filters.
func (l List) Shown(rows int, filters ...Filter) List {
	l.Rows = rows
	l.Filters = append(slices.Clip(l.Filters), filters...)
	return l
}

// Choice is a query parameter with a few permitted values.
type Choice struct {
	Name  string
	Words []string // the first is the default; an empty one is not offered
}

// Page says which rows of a list were requested. Zero values of filters were not given.
type Page struct {
	show.Range
	Type      string
	Channel   string
	TraceID   string
	EventID   string // the producer's own
	Tenant    id.UUID
	Endpoint  id.UUID
	Job       id.UUID
	Batch     id.UUID
	Host      string // of an endpoint's URL
	Search    string
	Status    string
	Wait      condition.Reason // why a delivery waits
	Condition condition.State  // of an endpoint
	Kind      endpoint.Kind    // of an endpoint
	Action    string
	Principal string // of a subscription
	Source    id.UUID
	Code      string
	Archived  bool
	StoredDay time.Time         // the day in storage that the list is of
	Chosen    map[string]string // the words of the list's choices
	Given     url.Values        // the filters as they were given, also invalid ones

	list   List
	back   bool   // the page before a row was asked for
	path   string // of the page
	cursor string // what the list's cursors are bound to
	rest   []byte // where a list of a day in storage goes on after the rows that were read
}

// EndpointKind is the kind of the endpoints of a list: listeners alone are disconnected.
func (p Page) EndpointKind(state condition.State) endpoint.Kind {
	if p.Kind == "" && state == condition.Disconnected {
		return endpoint.Listen
	}
	return p.Kind
}

// Page reads a list's query parameters. It rejects, by name, unknown ones, repeated ones, and values outside their
// range. The id of an endpoint that is unknown or another tenant's selects nothing. With an error, Page.Given is known.
func (c *Call) Page(l List) (Page, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return Page{}, fault.New(fault.Invalid, "query_malformed", "The query string can't be read. Encode each parameter, as in type=order.completed&limit=50.")
	}
	r := pageReader{call: c, query: query, page: Page{Given: url.Values{}, Chosen: map[string]string{}, list: l, path: cmp.Or(l.Path, c.Request.URL.Path)}}
	if err := r.read(); err != nil {
		return r.page, err
	}
	p := &r.page
	p.cursor = c.listKey(l, p.Ascending, query)
	if cursor := query.Get("cursor"); cursor != "" {
		if p.After, err = readCursor(p.cursor, cursor); err != nil {
			return r.page, err
		}
	}
	if !p.StoredDay.IsZero() {
		err = c.lendList(p, query)
	}
	return r.page, err
}

// listKey is everything that a cursor is bound to except for its position. It includes the path parameters: the
// deliveries of one event are not those of another.
func (c *Call) listKey(l List, ascending bool, query url.Values) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%t", l.Name, c.Actor.Tenant, ascending)
	for _, p := range c.Params {
		if p.Key != TenantParam {
			fmt.Fprintf(&b, "\x00%s=%s", p.Key, p.Value)
		}
	}
	for _, name := range sortedNames(query) {
		if name != "cursor" && name != "limit" && name != "order" {
			fmt.Fprintf(&b, "\x00%s=%s", name, query.Get(name))
		}
	}
	return b.String()
}

// Cursor is the API's cursor after a position; empty at the end of the list.
func (p Page) Cursor(position []byte) string {
	if position == nil {
		position = p.rest
	}
	if position == nil {
		return ""
	}
	return makeCursor(p.cursor, position)
}

// Address is the address of the list from its start, with its filters.
func (p Page) Address() string { return p.at("", nil) }

// Here is the address of the page itself.
func (p Page) Here() string {
	if p.back {
		return p.at("before", p.After)
	}
	return p.at("after", p.After)
}

func (p Page) at(side string, position []byte) string {
	query := url.Values{}
	for name, values := range p.Given {
		if !slices.Contains(p.list.Own, name) {
			query[name] = values
		}
	}
	if position != nil {
		query.Set(side, p.list.text(position))
	}
	if len(query) == 0 {
		return p.path
	}
	return p.path + "?" + query.Encode()
}

// text is a position in the address of a page.
func (l List) text(position []byte) string {
	if l.Of == "" {
		return string(position)
	}
	return l.Of.Format(id.UUID(position))
}

// position reads one. Rows without ids are event types, whose names are their positions.
func (l List) position(text string) ([]byte, bool) {
	if l.Of == "" {
		return []byte(text), event.ValidType(text)
	}
	uuid, err := l.Of.Parse(text)
	return uuid[:], err == nil
}

// Listed is a page of a list with the addresses of the pages beside it; empty where there is none.
type Listed[T any] struct {
	Rows  []T
	Newer string
	Older string
	Short bool // the page ended early: few rows match
}

// ReadPage reads a page of HTML by a function that reads a range. position is that of a row. A page before the first
// rows is shown as the start of the list.
func ReadPage[T any](p Page, position func(T) []byte, read func(show.Range) (show.Page[T], error)) (v Listed[T], err error) {
	found, err := read(p.Range)
	if found.Next == nil {
		found.Next = p.rest
	}
	if err == nil && p.back && found.Next == nil {
		p.back, p.Ascending, p.After = false, p.list.Ascending, nil
		found, err = read(p.Range)
		if n := len(found.Rows); n > 0 && found.Next == nil && !p.StoredDay.IsZero() {
			found.Next = position(found.Rows[n-1]) // the row that the page was before is not among those read from storage
		}
	}
	if err != nil {
		return v, err
	}
	v.Rows = found.Rows
	if p.back {
		slices.Reverse(v.Rows)
		found.Next = p.After
	}
	if n := len(v.Rows); n > 0 && p.back {
		found.Next = position(v.Rows[n-1])
	}
	if found.Next != nil {
		v.Older = p.at("after", found.Next)
		v.Short = !p.back && len(v.Rows) < p.Limit
	}
	switch {
	case p.After == nil:
	case p.list.Back && len(v.Rows) > 0:
		v.Newer = p.at("before", position(v.Rows[0]))
	case !p.back:
		v.Newer = p.Address()
	}
	return v, nil
}

// FormErrors says what is wrong with a filter or a form, by field. It returns an error that the person can't fix.
func FormErrors(err error) (map[string]string, error) {
	if other := NotInput(err); other != nil || err == nil {
		return nil, other
	}
	return WrongFields(err), nil
}
