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
	"posthorn/domain/trace"
)

// The range of a page's rows.
const (
	DefaultLimit = 50
	MaxLimit     = 250
)

// List says which parameters a list has besides limit, cursor, and order.
type List struct {
	Name      string   // names the list in its cursors; never changes
	Ascending bool     // the default order
	Statuses  []string // the values of status; nil if the list has no such filter
	Filters   []Filter
	Whole     bool // the list has no pages: no limit, no cursor, and no order
	Choices   []Choice
}

// Choice is a query parameter with a few permitted values.
type Choice struct {
	Name  string
	Words []string // the first is the default
}

// Filter is a query parameter that narrows a list.
type Filter string

// The filters of lists. List.Statuses defines the filter by status.
const (
	BySince    Filter = "since"
	ByUntil    Filter = "until"
	ByType     Filter = "type"
	ByChannel  Filter = "channel"
	ByTrace    Filter = "trace_id"
	ByEventID  Filter = "event_id"
	ByEndpoint Filter = "endpoint"
	ByArchived Filter = "archived"
	ByJob      Filter = "job"
	ByAction   Filter = "action"
	ByWait     Filter = "wait"
	ByState    Filter = "condition"
)

// Page says which rows of a list were requested. Zero values of filters were not given.
type Page struct {
	Limit     int
	Ascending bool
	After     []byte // the position after which the page starts; nil at the start of the list
	Since     time.Time
	Until     time.Time
	Type      string
	Channel   string
	TraceID   string
	EventID   string // the producer's own
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

// Page reads a list's query parameters. It rejects, by name, unknown ones, repeated ones, and values outside their
// range. An endpoint's id selects nothing if it is malformed, unknown, or another tenant's.
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
	if p.page.Endpoint == noEndpoint && !c.Actor.Tenant.IsZero() {
		if p.page.Endpoint, err = c.FindEndpoint(query.Get(string(ByEndpoint))); err != nil {
			return Page{}, err
		}
	}
	p.page.list = c.listKey(l, p.page.Ascending, query)
	if cursor := query.Get("cursor"); cursor != "" {
		if p.page.After, err = readCursor(p.page.list, cursor); err != nil {
			return Page{}, err
		}
	}
	return p.page, nil
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

// Next is the cursor after a position.
func (p Page) Next(position []byte) string { return makeCursor(p.list, position) }

// NextID is the cursor after a row with an id.
func (p Page) NextID(uuid id.UUID) string { return p.Next(uuid[:]) }

// AfterID is After for a list by id; the zero id at the start of the list.
func (p Page) AfterID() (uuid id.UUID, err error) {
	if p.After == nil {
		return uuid, nil
	}
	if len(p.After) != len(uuid) {
		return uuid, errCursor // never: the checksum binds it to this list
	}
	return id.UUID(p.After), nil
}

// AfterOrEdge is AfterID. At the start of the list it is an id beyond all: the zero id, or in descending order the
// highest.
func (p Page) AfterOrEdge() (uuid id.UUID, err error) {
	if p.After == nil && !p.Ascending {
		return id.Last, nil
	}
	return p.AfterID()
}

// Between is the page's bounds for a list by id: the requested rows have ids strictly between low and high. Ids are
// ordered by time, so both also bound created_at, inclusively: partitions prune by low.Time() and high.Time(). floor is
// the oldest time that can be shown. now bounds the newest, with a minute's tolerance for a process whose clock is
// ahead.
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

// first is at or below every id of a moment or later. A moment between two milliseconds counts as the later one,
// because the times in ids are whole milliseconds.
func first(at time.Time) (uuid id.UUID) {
	ms := max(at.UnixMilli(), 0)
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	binary.BigEndian.PutUint64(uuid[:8], uint64(ms)<<16)
	return uuid
}

// beforeFirst is below every id of a moment or later, and above every older one.
func beforeFirst(at time.Time) id.UUID {
	uuid := first(at)
	ms := binary.BigEndian.Uint64(uuid[:8]) >> 16
	if ms == 0 {
		return id.UUID{}
	}
	binary.BigEndian.PutUint64(uuid[:8], (ms-1)<<16|0xffff)
	binary.BigEndian.PutUint64(uuid[8:], 1<<64-1)
	return uuid
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
			p.refuse(shorten(name), "unknown_parameter", fmt.Sprintf("Unknown parameter %q. This list accepts %s.", shorten(name), takes))
		case len(values) > 1:
			p.refuse(name, "duplicate_parameter", fmt.Sprintf("The parameter %s appears %d times. Send it once.", name, len(values)))
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
			p.refuse(name, "choice_unknown", fmt.Sprintf("%s must be one of %s.", name, strings.Join(words, ", ")))
			return
		}
		p.page.Chosen[name] = value
		return
	}
	switch name {
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxLimit {
			p.refuse(name, "limit_range", fmt.Sprintf("limit must be a number from 1 to %d.", MaxLimit))
			return
		}
		p.page.Limit = n
	case "order":
		if value != "asc" && value != "desc" {
			p.refuse(name, "order_unknown", "order must be asc or desc.")
			return
		}
		p.page.Ascending = value == "asc"
	case "cursor":
		if value == "" {
			p.refuse(name, "cursor_invalid", "The cursor is empty. Leave it out to get the first page.")
		}
	case "status":
		if !slices.Contains(p.list.Statuses, value) {
			p.refuse(name, "status_unknown", fmt.Sprintf("status must be one of %s.", strings.Join(p.list.Statuses, ", ")))
			return
		}
		p.page.Status = value
	default:
		filters[Filter(name)](p, value)
	}
}

// filters read the values of a list's filters into the page.
var filters = map[Filter]func(p *pageParser, value string){
	BySince:    func(p *pageParser, value string) { p.time(string(BySince), value, &p.page.Since) },
	ByUntil:    func(p *pageParser, value string) { p.time(string(ByUntil), value, &p.page.Until) },
	ByEndpoint: func(p *pageParser, value string) { p.page.Endpoint = idOrNone(id.Endpoint, value) },
	ByJob:      func(p *pageParser, value string) { p.id(id.Job, "job", value, &p.page.Job) },
	ByType: func(p *pageParser, value string) {
		p.page.Type = value
		if !event.ValidType(strings.TrimSuffix(value, ".*")) {
			p.refuse("type", event.CodeTypeMalformed,
				"type is an event type, such as order.completed, or all types below a prefix, such as order.*.")
		}
	},
	ByChannel: func(p *pageParser, value string) {
		p.page.Channel = value
		if !event.ValidChannel(value) {
			p.refuse("channel", event.CodeChannelMalformed, fmt.Sprintf(
				"A channel can have 1 to %d letters, digits, and the characters . _ - : / @", event.MaxName))
		}
	},
	ByTrace: func(p *pageParser, value string) {
		p.page.TraceID = value
		if !trace.ValidID(value) {
			p.refuse("trace_id", "trace_id_malformed", "trace_id is the id of a W3C trace: 32 lowercase hexadecimal digits, such as 0af7651916cd43dd8448eb211c80319c.")
		}
	},
	ByEventID: func(p *pageParser, value string) {
		p.page.EventID = value
		if event.CheckEventID(value) != nil {
			p.refuse("event_id", event.CodeEventID, "event_id is the id that the producer gave the event: 1 to 256 visible ASCII characters without spaces, full stops, quotes and backslashes.")
		}
	},
	ByArchived: func(p *pageParser, value string) {
		p.page.Archived = value == "true"
		if value != "true" && value != "false" {
			p.refuse("archived", "archived_unknown", "archived must be true or false.")
		}
	},
	ByWait:  func(p *pageParser, value string) { p.page.Wait = oneOf(p, "wait", value, condition.Reasons()) },
	ByState: func(p *pageParser, value string) { p.page.Condition = oneOf(p, "condition", value, condition.States()) },
	ByAction: func(p *pageParser, value string) {
		p.page.Action = value
		if value == "" || len(value) > 100 || strings.ContainsFunc(value, notOfAction) {
			p.refuse("action", "action_malformed", "action must be one complete action, such as endpoint.created.")
		}
	},
}

func notOfAction(r rune) bool { return r != '.' && r != '_' && (r < 'a' || r > 'z') }

// noEndpoint replaces a malformed id of an endpoint. No row has it, so the list is empty, as it is for an id of
// another tenant.
var noEndpoint = id.None

// idOrNone reads an id. A malformed id selects nothing, as the id of another tenant does.
func idOrNone(kind id.Kind, value string) id.UUID {
	uuid, err := kind.Parse(value)
	if err != nil {
		return noEndpoint
	}
	return uuid
}

// oneOf reads one of the words of a filter.
func oneOf[T ~string](p *pageParser, name, value string, words []T) T {
	if !slices.Contains(words, T(value)) {
		texts := make([]string, len(words))
		for i, w := range words {
			texts[i] = string(w)
		}
		p.refuse(name, name+"_unknown", fmt.Sprintf("%s must be one of %s.", name, strings.Join(texts, ", ")))
	}
	return T(value)
}

func (p *pageParser) id(kind id.Kind, name, value string, into *id.UUID) {
	u, err := kind.Parse(value)
	if err != nil {
		p.refuse(name, MalformedID, "This is not the id of a "+name+": "+kind.Rule()+".")
		return
	}
	*into = u
}

// MalformedID is the code for an invalid id in a filter or a body.
const MalformedID = "id_malformed"

func (p *pageParser) time(name, value string, into *time.Time) {
	var at time.Time
	// A plus sign that was not encoded arrives as a space.
	if err := at.UnmarshalText([]byte(strings.Replace(value, " ", "+", 1))); err != nil || at.Year() < 1970 ||
		at.Year() > 9999 {
		p.refuse(name, event.CodeTimeMalformed, name+" must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z.")
		return
	}
	*into = at.UTC()
}

// shorten keeps long or invalid input out of responses and logs.
func shorten(s string) string { return shortenTo(64, s) }

func shortenTo(most int, s string) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
