package readers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/feeds"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

const (
	eventStream = "text/event-stream"
	cloudEvents = "application/cloudevents-batch+json"
)

// readLimit is how long one page of a feed can take. The request as a whole waits for as long as its client asked for.
const readLimit = 5 * time.Second

var errReaders = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "feed_readers_limit",
	RetryAfter: 5,
	Detail:     "This server has its maximum of readers of feeds. Try again in a few seconds.",
}

// consumerOf is the consumer that a call reads for: that of its token, or the one that it names. Empty is none.
func consumerOf(c *handlers.Call, named string) (endpointID id.UUID, consumer string, err error) {
	endpointID = c.PathID("endpoint_id")
	switch {
	case c.Actor.Feed.IsZero():
		return endpointID, named, nil
	case c.Actor.Feed != endpointID:
		return endpointID, "", fault.ErrNotFound
	case named != "" && named != c.Actor.Consumer:
		return endpointID, "", fault.New(fault.Forbidden, "consumer_token_only", "This token reads the feed for its own consumer alone. Leave consumer out.")
	}
	return endpointID, c.Actor.Consumer, nil
}

// feedRead is a request for events.
type feedRead struct {
	feeds.Options
	endpoint id.UUID
	wait     time.Duration
	create   bool // the consumer, if there is none
	data     bool // show the data of events
}

// readFeed responds with a page of events, waits for some, or streams them.
func (h *handler) readFeed(c *handlers.Call) error {
	r, err := feedReadOf(c)
	if err != nil {
		return err
	}
	select {
	case h.readers <- struct{}{}:
		defer func() { <-h.readers }()
	default:
		return errReaders
	}
	if r.create && r.Consumer != "" {
		err := c.Tx(func(q *db.Tx) error { return h.consumers(c, r.endpoint).Ensure(c.Ctx(), q, r.Consumer, r.Start) })
		if err != nil {
			return err
		}
	}
	accept := c.Request.Header.Get("Accept")
	if strings.Contains(accept, eventStream) {
		return h.streamFeed(c, r)
	}
	page, err := h.pull(c, r)
	if err != nil {
		return err
	}
	head := c.Writer.Header()
	head.Set("Feed-Cursor", page.Next.String())
	head.Set("Feed-Caught-Up", strconv.FormatBool(page.CaughtUp))
	head.Set("Feed-Truncated", strconv.FormatBool(page.Truncated))
	head.Set("Cache-Control", "no-store")
	if strings.Contains(accept, cloudEvents) {
		return c.AnswerAs(http.StatusOK, cloudEvents, h.cloudEvents(r.endpoint, page.Events))
	}
	return c.Answer(http.StatusOK, api.FeedPage{
		Data:      r.encodeAll(page.Events),
		Cursor:    page.Next.String(),
		CaughtUp:  page.CaughtUp,
		Truncated: page.Truncated,
	})
}

// queryOf reads the parameters of a request, each of which can be given once.
func queryOf(c *handlers.Call) (url.Values, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.Invalid, "query_malformed", "The query string can't be read. Encode each parameter.")
	}
	for name, values := range query {
		if len(values) > 1 {
			return nil, fault.InvalidField(name, "duplicate_parameter", fmt.Sprintf("The parameter %s appears %d times. Send it once.", name, len(values)))
		}
	}
	return query, nil
}

// readParameters are those of a read, in each of its forms.
var readParameters = []string{"cursor", "limit", "wait", "consumer", "start", "create", "include_data", "lastEventId", "timeout"}

// readQuery is queryOf for a read, which has no other parameters.
func readQuery(c *handlers.Call) (url.Values, error) {
	query, err := queryOf(c)
	for name := range query {
		if !slices.Contains(readParameters, name) {
			return nil, fault.InvalidField(fmt.Sprintf("%.64s", name), "unknown_parameter", "Unknown parameter. This operation accepts "+strings.Join(readParameters, ", ")+".")
		}
	}
	return query, err
}

// feedReadOf reads the parameters of a read.
func feedReadOf(c *handlers.Call) (r feedRead, err error) {
	query, err := readQuery(c)
	if err != nil {
		return r, err
	}
	for name, into := range map[string]*bool{"create": &r.create, "include_data": &r.data} {
		if *into = query.Get(name) == "true"; !*into && query.Get(name) != "" && query.Get(name) != "false" {
			return r, fault.InvalidField(name, "choice_unknown", name+" must be true or false.")
		}
	}
	if r.endpoint, r.Consumer, err = consumerOf(c, query.Get("consumer")); err != nil {
		return r, err
	}
	var ok bool
	if r.Limit, ok = numberOf(query, "limit", feed.DefaultLimit, 1, feed.MaxLimit); !ok {
		return r, fault.InvalidField("limit", "limit_range", fmt.Sprintf("limit must be a number from 1 to %d.", feed.MaxLimit))
	}
	seconds, ok := numberOf(query, "wait", 0, 0, feed.MaxWait)
	if !ok {
		return r, fault.InvalidField("wait", "wait_range", fmt.Sprintf("wait must be a number of seconds from 0 to %d.", feed.MaxWait))
	}
	milliseconds, ok := numberOf(query, "timeout", 0, 0, feed.MaxWait*1000)
	if !ok {
		return r, fault.InvalidField("timeout", "wait_range", fmt.Sprintf("timeout must be a number of milliseconds from 0 to %d.", feed.MaxWait*1000))
	}
	r.wait = time.Duration(seconds)*time.Second + time.Duration(milliseconds)*time.Millisecond
	for _, text := range []string{query.Get("cursor"), query.Get("lastEventId"), c.Request.Header.Get("Last-Event-ID")} {
		if text == "" {
			continue
		}
		place, err := feed.ParsePlace(text)
		if err != nil {
			return r, err
		}
		r.From = &place
		break
	}
	r.Start = feed.Start{Oldest: true}
	if text := query.Get("start"); text != "" {
		r.Start, err = feed.ParseStart(text)
	}
	return r, err
}

func numberOf(query url.Values, name string, byDefault, low, high int) (n int, ok bool) {
	text := query.Get(name)
	if text == "" {
		return byDefault, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= low && n <= high
}

// pull reads a page, and waits for one if there is nothing to read.
func (h *handler) pull(c *handlers.Call, r feedRead) (page feeds.Page, err error) {
	ends := h.Now().Add(r.wait)
	for {
		if page, err = h.page(c, r); err != nil || len(page.Events) > 0 || page.Truncated {
			return page, err
		}
		left := ends.Sub(h.Now())
		if left <= 0 || c.Ctx().Err() != nil {
			return page, nil
		}
		r.From = &page.Next
		if page.CaughtUp && !h.await(c, page.Next, left) {
			return page, nil
		}
	}
}

// page reads one page.
func (h *handler) page(c *handlers.Call, r feedRead) (feeds.Page, error) {
	ctx, cancel := context.WithTimeout(c.Ctx(), readLimit)
	defer cancel()
	r.Now = h.Now()
	return feeds.Read(ctx, h.DB, h.Keys, c.Actor.Tenant, r.endpoint, r.Options)
}

// await waits for an event behind a place. False: the time is over, the client is gone, or this process stops.
func (h *handler) await(c *handlers.Call, behind feed.Place, most time.Duration) bool {
	return h.watch.Await(c.Ctx(), c.Actor.Tenant, behind, most, h.Closing)
}

// streamFeed sends events until the client disconnects, the feed or the key ends, or this process stops. The client
// continues after the last id that it has.
func (h *handler) streamFeed(c *handlers.Call, r feedRead) error {
	page, err := h.page(c, r)
	if err != nil {
		return err
	}
	s, err := c.BeginStream()
	if err != nil {
		return nil // the client has disconnected: nobody would read the error
	}
	for err == nil {
		if err = r.send(s, page); err != nil {
			break
		}
		r.From = &page.Next
		if page.CaughtUp && !h.await(c, page.Next, feedBeat) {
			if h.closing() || s.Beat() != nil {
				return nil
			}
		}
		if err = c.Still(); err == nil {
			page, err = h.page(c, r)
		}
	}
	if f := fault.As(err); f != nil && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		_ = s.Event(0, "end", struct {
			Code string `json:"code"`
		}{f.Code})
	} else if c.Ctx().Err() == nil && !errors.Is(err, context.Canceled) {
		h.Log.Error("a stream of a feed ended", "endpoint", c.Param("endpoint_id"), "error", err)
	}
	return nil
}

func (h *handler) closing() bool {
	select {
	case <-h.Closing:
		return true
	default:
		return false
	}
}

func (r feedRead) send(s *handlers.Stream, p feeds.Page) error {
	if p.Truncated {
		if err := s.Event(0, "truncated", struct{}{}); err != nil {
			return err
		}
	}
	for _, e := range p.Events {
		if err := s.EventAt(e.Place.String(), "event", r.encode(e)); err != nil {
			return err
		}
	}
	return nil
}

func (r feedRead) encode(e feeds.Event) api.FeedEvent {
	out := api.FeedEvent{
		EventID:    id.Event.Format(e.Event),
		Cursor:     e.Place.String(),
		EventType:  e.Type,
		AcceptedAt: api.Time(e.AcceptedAt),
		Headers:    make([]api.HandoutHeader, len(e.Headers)),
		Body:       string(e.Body),
	}
	if !e.DeliverAt.IsZero() {
		out.DeliverAt = new(api.Time(e.DeliverAt))
	}
	if r.data {
		out.Data, out.Channels = new(json.RawMessage(e.Data)), new(append([]string{}, e.Channels...))
	}
	for i, one := range e.Headers {
		out.Headers[i] = api.HandoutHeader{Name: one.Name, Value: one.Value}
	}
	return out
}

func (r feedRead) encodeAll(events []feeds.Event) []api.FeedEvent {
	out := make([]api.FeedEvent, len(events))
	for i, e := range events {
		out[i] = r.encode(e)
	}
	return out
}
