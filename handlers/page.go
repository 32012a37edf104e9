package handlers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// The range of a page's rows.
const (
	DefaultLimit = 50
	MaxLimit     = 250
)

// List says which parameters a list takes beside limit, cursor and order.
type List struct {
	Name      string   // names the list in its cursors; never changes
	Ascending bool     // the order where the request names none
	Statuses  []string // the values of status; nil where the list has no such filter
	Filters   []Filter
	Whole     bool // there are no pages: neither limit nor cursor nor order
	Choices   []Choice
}

// Choice is a query parameter that takes one of a few words.
type Choice struct {
	Name  string
	Words []string // the first where the request names none
}

// Filter is a query parameter that narrows a list.
type Filter string

// The filters that lists may have. Status goes by List.Statuses.
const (
	BySince    Filter = "since"
	ByUntil    Filter = "until"
	ByType     Filter = "type"
	ByChannel  Filter = "channel"
	ByEndpoint Filter = "endpoint"
	ByArchived Filter = "archived"
	ByJob      Filter = "job"
	ByAction   Filter = "action"
	ByWait     Filter = "wait"
	ByState    Filter = "condition"
)

// Page is which rows of a list were asked for. Zero values of filters say that they were not given.
type Page struct {
	Limit     int
	Ascending bool
	After     []byte // the position behind which the page begins; nil at the list's beginning
	Since     time.Time
	Until     time.Time
	Type      string
	Channel   string
	Endpoint  id.UUID
	Job       id.UUID
	Status    string
	Wait      condition.Reason // why a delivery waits
	Condition condition.State  // of an endpoint
	Action    string
	Archived  bool
	Chosen    map[string]string // the words of the list's choices

	list string // what its cursors are bound to
}

// Page reads a list's query parameters. Unknown ones, repeated ones and values outside their range are refused by name.
// An endpoint that is none selects nothing, whether its id is malformed, unknown or of another tenant.
func (c *Call) Page(l List) (Page, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return Page{}, fault.New(fault.Invalid, "query_malformed", "The query string can't be read. Encode each parameter, as in type=order.completed&limit=50.")
	}
	p := pageParser{list: l, query: query}
	p.read()
	if len(p.wrong) > 0 {
		return Page{}, fault.InvalidFields(p.wrong)
	}
	p.page.list = c.listKey(l, p.page.Ascending, query)
	if cursor := query.Get("cursor"); cursor != "" {
		if p.page.After, err = readCursor(p.page.list, cursor); err != nil {
			return Page{}, err
		}
	}
	return p.page, nil
}

// listKey is everything that a cursor is bound to but its position. The path parameters belong to it: the deliveries of
// one event are not those of another.
func (c *Call) listKey(l List, ascending bool, query url.Values) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%t", l.Name, c.Actor.Tenant, ascending)
	for _, p := range c.Params {
		if p.Key != TenantParam {
			fmt.Fprintf(&b, "\x00%s=%s", p.Key, p.Value)
		}
	}
	names := make([]string, 0, len(query))
	for name := range query {
		if name != "cursor" && name != "limit" && name != "order" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\x00%s=%s", name, query.Get(name))
	}
	return b.String()
}

// Next is the cursor behind a position.
func (p Page) Next(position []byte) string { return makeCursor(p.list, position) }

// NextID is the cursor behind a row with an id.
func (p Page) NextID(u id.UUID) string { return p.Next(u[:]) }

// AfterID is After of a list by id; the zero id at the list's beginning.
func (p Page) AfterID() (u id.UUID, err error) {
	if p.After == nil {
		return u, nil
	}
	if len(p.After) != len(u) {
		return u, errCursor // never: the sum binds it to this list
	}
	return id.UUID(p.After), nil
}

// AfterOrEdge is AfterID, and at the list's beginning an id beyond all: the zero id, or in descending order the highest.
func (p Page) AfterOrEdge() (u id.UUID, err error) {
	if p.After == nil && !p.Ascending {
		return id.Last, nil
	}
	return p.AfterID()
}

// Between is the page's bounds for a list by id: the rows asked for have ids strictly between low and high. Ids are
// ordered by time, so both also bound created_at, inclusively: partitions prune by low.Time() and high.Time(). floor is
// the oldest moment that may be shown; now bounds the newest, with a minute's grace for a node whose clock runs ahead.
func (p Page) Between(floor, now time.Time) (low, high id.UUID, err error) {
	after, err := p.AfterID()
	if err != nil {
		return low, high, err
	}
	from, until := floor, now.Add(time.Minute)
	if p.Since.After(from) {
		from = p.Since
	}
	if !p.Until.IsZero() && p.Until.Before(until) {
		until = p.Until
	}
	low, high = beforeFirst(from), first(until)
	if p.After == nil {
		return low, high, nil
	}
	if p.Ascending {
		if bytes.Compare(after[:], low[:]) > 0 {
			low = after
		}
	} else if bytes.Compare(after[:], high[:]) < 0 {
		high = after
	}
	return low, high, nil
}

// first is not above any id of a moment or later; a moment between two milliseconds counts as the later one, since the
// times in ids are whole.
func first(at time.Time) (u id.UUID) {
	ms := max(at.UnixMilli(), 0)
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	binary.BigEndian.PutUint64(u[:8], uint64(ms)<<16)
	return u
}

// beforeFirst is below every id of a moment or later, and above every older one.
func beforeFirst(at time.Time) id.UUID {
	u := first(at)
	ms := binary.BigEndian.Uint64(u[:8]) >> 16
	if ms == 0 {
		return id.UUID{}
	}
	binary.BigEndian.PutUint64(u[:8], (ms-1)<<16|0xffff)
	binary.BigEndian.PutUint64(u[8:], 1<<64-1)
	return u
}

type pageParser struct {
	list  List
	query url.Values
	page  Page
	wrong []fault.Field
}

func (p *pageParser) refuse(name, code, detail string) {
	p.wrong = append(p.wrong, fault.Field{Name: name, Code: code, Detail: detail})
}

func (p *pageParser) read() {
	p.page = Page{Limit: DefaultLimit, Ascending: p.list.Ascending, Chosen: map[string]string{}}
	for _, c := range p.list.Choices {
		p.page.Chosen[c.Name] = c.Words[0]
	}
	names := make([]string, 0, len(p.query))
	for name := range p.query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := p.query[name]
		switch {
		case !p.known(name):
			takes := strings.Join(p.takes(), ", ")
			if takes == "" {
				takes = "none"
			}
			p.refuse(shorten(name), "unknown_parameter", fmt.Sprintf("There is no parameter %q here. This list takes %s.", shorten(name), takes))
		case len(values) > 1:
			p.refuse(name, "duplicate_parameter", fmt.Sprintf("The parameter %s is given %d times. Give it once.", name, len(values)))
		default:
			p.parameter(name, values[0])
		}
	}
}

func (p *pageParser) takes() []string {
	names := []string{"limit", "cursor", "order"}
	if p.list.Whole {
		names = nil
	}
	for _, c := range p.list.Choices {
		names = append(names, c.Name)
	}
	if p.list.Statuses != nil {
		names = append(names, "status")
	}
	for _, f := range p.list.Filters {
		names = append(names, string(f))
	}
	return names
}

func (p *pageParser) known(name string) bool { return slices.Contains(p.takes(), name) }

func (p *pageParser) parameter(name, value string) {
	if i := slices.IndexFunc(p.list.Choices, func(c Choice) bool { return c.Name == name }); i >= 0 {
		if words := p.list.Choices[i].Words; !slices.Contains(words, value) {
			p.refuse(name, "choice_unknown", fmt.Sprintf("%s is one of %s.", name, strings.Join(words, ", ")))
			return
		}
		p.page.Chosen[name] = value
		return
	}
	switch name {
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxLimit {
			p.refuse(name, "limit_range", fmt.Sprintf("limit is a number from 1 to %d.", MaxLimit))
			return
		}
		p.page.Limit = n
	case "order":
		if value != "asc" && value != "desc" {
			p.refuse(name, "order_unknown", "order is asc or desc.")
			return
		}
		p.page.Ascending = value == "asc"
	case "cursor":
		if value == "" {
			p.refuse(name, "cursor_invalid", "The cursor is empty. Leave it out to begin at the beginning.")
		}
	case "status":
		if !slices.Contains(p.list.Statuses, value) {
			p.refuse(name, "status_unknown", fmt.Sprintf("status is one of %s.", strings.Join(p.list.Statuses, ", ")))
			return
		}
		p.page.Status = value
	default:
		p.filter(Filter(name), value)
	}
}

func (p *pageParser) filter(f Filter, value string) {
	switch f {
	case BySince:
		p.time(string(f), value, &p.page.Since)
	case ByUntil:
		p.time(string(f), value, &p.page.Until)
	case ByType:
		if !event.ValidType(value) {
			p.refuse("type", event.CodeTypeMalformed, "type is one whole event type, such as order.completed.")
			return
		}
		p.page.Type = value
	case ByChannel:
		if !event.ValidChannel(value) {
			p.refuse("channel", event.CodeChannelMalformed, fmt.Sprintf("A channel has 1 to %d letters, digits and the characters . _ - : / @ and nothing else.", event.MaxName))
			return
		}
		p.page.Channel = value
	case ByEndpoint:
		u, err := id.Endpoint.Parse(value)
		if err != nil {
			u = NoEndpoint
		}
		p.page.Endpoint = u
	case ByJob:
		u, err := id.Job.Parse(value)
		if err != nil {
			u = NoEndpoint
		}
		p.page.Job = u
	case ByArchived:
		if value != "true" && value != "false" {
			p.refuse("archived", "archived_unknown", "archived is true or false.")
			return
		}
		p.page.Archived = value == "true"
	case ByWait:
		if !oneOf(p, "wait", value, condition.Reasons()) {
			return
		}
		p.page.Wait = condition.Reason(value)
	case ByState:
		if !oneOf(p, "condition", value, condition.States()) {
			return
		}
		p.page.Condition = condition.State(value)
	case ByAction:
		if value == "" || len(value) > 100 || strings.ContainsFunc(value, func(r rune) bool { return r != '.' && r != '_' && (r < 'a' || r > 'z') }) {
			p.refuse("action", "action_malformed", "action is one whole action, such as endpoint.created.")
			return
		}
		p.page.Action = value
	}
}

// oneOf reports whether a value is one of the words of a filter.
func oneOf[T ~string](p *pageParser, name, value string, words []T) bool {
	if slices.Contains(words, T(value)) {
		return true
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	p.refuse(name, name+"_unknown", fmt.Sprintf("%s is one of %s.", name, strings.Join(texts, ", ")))
	return false
}

// NoEndpoint stands for a text that is no endpoint's id: no row has it, so the list is empty, as it is for an id of
// another tenant.
var NoEndpoint = id.UUID{15: 1}

func (p *pageParser) time(name, value string, into *time.Time) {
	var at time.Time
	// A plus sign that was not encoded arrives as a space.
	if err := at.UnmarshalText([]byte(strings.Replace(value, " ", "+", 1))); err != nil || at.Year() < 1970 || at.Year() > 9999 {
		p.refuse(name, event.CodeTimeMalformed, name+" is an RFC 3339 time with its offset, such as 2026-01-31T12:00:00Z.")
		return
	}
	*into = at.UTC()
}

// shorten keeps what a caller sent out of answers and logs where it is long or no text.
func shorten(s string) string { return shortenTo(64, s) }

func shortenTo(most int, s string) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
