package handlers

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mcp"
	"posthorn/domain/show"
	"posthorn/domain/trace"
)

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
	ByTenant   Filter = "tenant" // in lists of all tenants
	ByEndpoint Filter = "endpoint"
	ByHost     Filter = "host"
	ByArchived Filter = "archived"
	ByJob      Filter = "job"
	ByBatch    Filter = "batch"
	ByAction   Filter = "action"
	ByCode     Filter = "code" // of an error
	ByWait     Filter = "wait"
	ByState    Filter = "condition"
	ByKind     Filter = "kind" // of an endpoint
	BySearch   Filter = "q"    // any text
	// ByStoredDay lists a day in storage, instead of what is in the database.
	ByStoredDay Filter = "stored_day"
	// ByPrincipal filters subscriptions by who subscribed.
	ByPrincipal Filter = "principal"
	// BySource filters rejected messages by their source.
	BySource Filter = "source_id"
)

// ByOutcome filters events by what became of them: Page.Chosen[ByOutcome.Name] is one of show.Outcomes.
var ByOutcome = Choice{Name: "outcome", Words: show.Outcomes()}

// maxSearch bounds a text that is searched for.
const maxSearch = 256

// pageReader reads the query of a list into a page.
type pageReader struct {
	call  *Call
	query url.Values
	page  Page
	wrong []fault.Field
}

func (r *pageReader) refuse(name, code, detail string) {
	r.wrong = append(r.wrong, fault.Field{Name: name, Code: code, Detail: detail})
}

func (r *pageReader) read() error {
	l := r.page.list
	if r.page.Limit = DefaultLimit; l.Rows > 0 {
		r.page.Limit = l.Rows
	}
	r.page.Ascending = l.Ascending
	for _, c := range l.Choices {
		r.page.Chosen[c.Name] = c.Words[0]
	}
	accepted := l.parameters()
	for _, name := range sortedNames(r.query) {
		values := r.query[name]
		if l.Rows > 0 {
			if values[0] = formValue(name, values[0]); values[0] == "" && len(values) == 1 {
				continue // an empty field of the form
			}
			if slices.Contains(accepted, name) && name != "after" && name != "before" {
				r.page.Given[name] = values
			}
		}
		switch {
		case !slices.Contains(accepted, name):
			r.refuse(shorten(name), "unknown_parameter", fmt.Sprintf("Unknown parameter %q. This list accepts %s.", shorten(name), listOr(accepted, "none")))
		case len(values) > 1:
			r.refuse(name, "duplicate_parameter", fmt.Sprintf("The parameter %s appears %d times. Send it once.", name, len(values)))
		default:
			if err := r.parameter(name, values[0]); err != nil {
				return err
			}
		}
	}
	if len(r.wrong) > 0 {
		return fault.InvalidFields(r.wrong)
	}
	return nil
}

// formValue is the value of a field of a form. A time in a form has no offset: it is UTC.
func formValue(name, value string) string {
	value = strings.TrimSpace(value)
	if name == string(BySince) || name == string(ByUntil) {
		return FormTime(value)
	}
	return value
}

func listOr(words []string, none string) string {
	if len(words) == 0 {
		return none
	}
	return strings.Join(words, ", ")
}

// parameters are the names that the list accepts.
func (l List) parameters() (names []string) {
	switch {
	case l.Whole:
	case l.Rows > 0 && l.Back:
		names = []string{"after", "before"}
	case l.Rows > 0:
		names = []string{"after"}
	default:
		names = []string{"limit", "cursor", "order"}
	}
	for _, c := range l.Choices {
		names = append(names, c.Name)
	}
	if l.Statuses != nil {
		names = append(names, "status")
	}
	for _, f := range l.Filters {
		names = append(names, string(f))
	}
	return append(names, l.Own...)
}

func (r *pageReader) parameter(name, value string) error {
	p := &r.page
	for _, c := range p.list.Choices {
		if c.Name == name {
			if p.Chosen[name] = value; !slices.Contains(c.Words, value) {
				r.refuse(name, "choice_unknown", mustBe(name, c.Words))
			}
			return nil
		}
	}
	switch name {
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxLimit {
			r.refuse(name, "limit_range", fmt.Sprintf("limit must be a number from 1 to %d.", MaxLimit))
			return nil
		}
		p.Limit = n
	case "order":
		p.Ascending = oneOf(r, "order", value, []string{"asc", "desc"}) == "asc"
	case "cursor":
		if value == "" {
			r.refuse(name, "cursor_invalid", "The cursor is empty. Leave it out to get the first page.")
		}
	case "after", "before":
		r.position(name, value)
	case "status":
		before := len(r.wrong)
		p.Status = oneOf(r, "status", value, p.list.Statuses)
		if len(r.wrong) > before && slices.Contains(p.list.Statuses, delivery.Delivered.String()) {
			r.wrong[before].Detail += delivery.StatusHint(value)
		}
	case string(ByEndpoint):
		return r.endpoint(value)
	default:
		if read, known := filters[Filter(name)]; known {
			read(r, value)
		}
	}
	return nil
}

// position reads the row at which a page of HTML starts or ends.
func (r *pageReader) position(name, value string) {
	at, valid := r.page.list.position(value)
	switch {
	case !valid:
		r.refuse(name, "position_invalid", "This is not the position of a row in this list. Leave "+name+" out to get the first page.")
	case r.page.After != nil:
		r.refuse(name, "position_invalid", "Send either after or before.")
	}
	if r.page.After = at; name == "before" {
		r.page.back, r.page.Ascending = true, !r.page.list.Ascending
	}
}

// endpoint reads Posthorn's id of an endpoint or, in a list of one tenant, its external id.
func (r *pageReader) endpoint(value string) (err error) {
	into := &r.page.Endpoint
	if *into, err = id.Endpoint.Parse(value); err == nil {
		return nil
	}
	if r.call.Actor.Tenant.IsZero() {
		r.id(id.Endpoint, string(ByEndpoint), value, into)
		return nil
	}
	if *into, err = r.call.FindEndpoint(value); err == nil && *into == id.None {
		r.refuse(string(ByEndpoint), MalformedID, "This is not the id of an endpoint ("+id.Endpoint.Rule()+"), and no endpoint has it as its external id.")
	}
	return err
}

// filters read the values of a list's filters into the page.
var filters = map[Filter]func(r *pageReader, value string){
	BySince: func(r *pageReader, value string) { r.time(string(BySince), value, &r.page.Since) },
	ByUntil: func(r *pageReader, value string) { r.time(string(ByUntil), value, &r.page.Until) },
	ByStoredDay: func(r *pageReader, value string) {
		at, err := time.Parse(time.DateOnly, value)
		if r.page.StoredDay = at; err != nil {
			r.refuse(string(ByStoredDay), "stored_day_malformed", "stored_day must be a UTC day, such as 2031-03-30.")
		}
	},
	ByTenant: func(r *pageReader, value string) { r.id(id.Tenant, "tenant", value, &r.page.Tenant) },
	ByJob:    func(r *pageReader, value string) { r.id(id.Job, "job", value, &r.page.Job) },
	ByBatch:  func(r *pageReader, value string) { r.id(id.Batch, "batch", value, &r.page.Batch) },
	ByType: func(r *pageReader, value string) {
		r.page.Type = value
		if !event.ValidType(strings.TrimSuffix(value, ".*")) {
			r.refuse(
				"type",
				event.CodeTypeMalformed,
				"type is an event type, such as order.completed, or all types below a prefix, such as order.*.",
			)
		}
	},
	ByChannel: func(r *pageReader, value string) {
		r.page.Channel = value
		if !event.ValidChannel(value) {
			r.refuse("channel", event.CodeChannelMalformed, fmt.Sprintf(
				"A channel can have 1 to %d letters, digits, and the characters . _ - : / @", event.MaxName))
		}
	},
	ByTrace: func(r *pageReader, value string) {
		r.page.TraceID = value
		if !trace.ValidID(value) {
			r.refuse("trace_id", "trace_id_malformed", "trace_id is the id of a W3C trace: 32 lowercase hexadecimal digits, such as 0af7651916cd43dd8448eb211c80319c.")
		}
	},
	ByEventID: func(r *pageReader, value string) {
		r.page.EventID = value
		if event.CheckUnsentID(value) != nil {
			r.refuse("event_id", event.CodeEventID, "event_id is the id that the producer gave the event: 1 to 256 visible ASCII characters without spaces, quotes and backslashes.")
		}
	},
	ByHost:   func(r *pageReader, value string) { r.page.Host = r.text("host", strings.ToLower(value)) },
	ByCode:   func(r *pageReader, value string) { r.page.Code = r.text("code", value) },
	BySearch: func(r *pageReader, value string) { r.page.Search = r.text("q", value) },
	ByArchived: func(r *pageReader, value string) {
		r.page.Archived = oneOf(r, "archived", value, []string{"true", "false"}) == "true"
	},
	ByWait: func(r *pageReader, value string) {
		r.page.Wait = oneOf(r, "wait", condition.Reason(value), condition.Reasons())
	},
	ByState: func(r *pageReader, value string) {
		r.page.Condition = oneOf(r, "condition", condition.State(value), condition.Shown())
	},
	ByKind: func(r *pageReader, value string) {
		r.page.Kind = endpoint.Kind(value)
		if !slices.Contains(endpoint.ListedKinds(), r.page.Kind) {
			r.refuse("kind", "choice_unknown", mustBe("kind", endpoint.ListedKinds()))
		}
	},
	BySource: func(r *pageReader, value string) { r.id(id.Source, "source_id", value, &r.page.Source) },
	ByPrincipal: func(r *pageReader, value string) {
		r.page.Principal = value
		if err := mcp.CheckPrincipal(value); err != nil {
			r.refuse("principal", "principal_malformed", fault.As(err).Detail)
		}
	},
	ByAction: func(r *pageReader, value string) {
		r.page.Action = value
		if value == "" || len(value) > 100 || strings.ContainsFunc(value, notOfAction) {
			r.refuse("action", "action_malformed", "action must be one complete action, such as endpoint.created.")
		}
	},
}

func notOfAction(r rune) bool { return r != '.' && r != '_' && (r < 'a' || r > 'z') }

// oneOf reads one of the words of a parameter. Any other is refused with the code name_unknown.
func oneOf[T ~string](r *pageReader, name string, value T, words []T) T {
	if !slices.Contains(words, value) {
		r.refuse(name, name+"_unknown", mustBe(name, words))
	}
	return value
}

// mustBe says which words a parameter can have: "asc or desc", or "one of a, b, c". The empty one is not offered.
func mustBe[T ~string](name string, words []T) string {
	var offered []string
	for _, w := range words {
		if w != "" {
			offered = append(offered, string(w))
		}
	}
	if len(offered) <= 2 {
		return name + " must be " + strings.Join(offered, " or ") + "."
	}
	return name + " must be one of " + strings.Join(offered, ", ") + "."
}

func (r *pageReader) id(kind id.Kind, name, value string, into *id.UUID) {
	uuid, err := kind.Parse(value)
	if err != nil {
		r.refuse(name, MalformedID, "This is not the id of a "+name+": "+kind.Rule()+".")
		return
	}
	*into = uuid
}

func (r *pageReader) text(name, value string) string {
	if len(value) > maxSearch {
		detail := fmt.Sprintf("%s can have at most %d bytes.", name, maxSearch)
		if r.page.list.Rows > 0 {
			detail = fmt.Sprintf("This text is too long. Enter at most %d characters.", maxSearch)
		}
		r.refuse(name, "text_length", detail)
	}
	return value
}

// MalformedID is the code for an invalid id in a filter or a body.
const MalformedID = "id_malformed"

func (r *pageReader) time(name, value string, into *time.Time) {
	var at time.Time
	// A plus sign that was not encoded arrives as a space.
	if err := at.UnmarshalText([]byte(strings.Replace(value, " ", "+", 1))); err != nil || at.Year() < 1970 || at.Year() > 9999 {
		detail := name + " must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z."
		if r.page.list.Rows > 0 {
			detail = "Enter a date and a time of the years 1970 to 9999, such as 2026-01-31 12:00."
		}
		r.refuse(name, event.CodeTimeMalformed, detail)
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
