package api

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
	"posthorn/domain/show"
	"posthorn/handlers"
)

// maxReaders bounds the requests that read feeds in a process. One that waits has no connection to the database.
const maxReaders = 5000

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
func (a *api) readFeed(c *handlers.Call) error {
	r, err := feedReadOf(c)
	if err != nil {
		return err
	}
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
	default:
		return errReaders
	}
	if r.create && r.Consumer != "" {
		err := c.Tx(func(q *db.Tx) error { return a.consumers(c, r.endpoint).Ensure(c.Ctx(), q, r.Consumer, r.Start) })
		if err != nil {
			return err
		}
	}
	accept := c.Request.Header.Get("Accept")
	if strings.Contains(accept, eventStream) {
		return a.streamFeed(c, r)
	}
	page, err := a.pull(c, r)
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	h.Set("Feed-Cursor", page.Next.String())
	h.Set("Feed-Caught-Up", strconv.FormatBool(page.CaughtUp))
	h.Set("Feed-Truncated", strconv.FormatBool(page.Truncated))
	h.Set("Cache-Control", "no-store")
	if strings.Contains(accept, cloudEvents) {
		return c.AnswerAs(http.StatusOK, cloudEvents, a.cloudEvents(r.endpoint, page.Events))
	}
	return c.Answer(http.StatusOK, FeedPage{
		Data:      views(page.Events, r.encode),
		Cursor:    page.Next.String(),
		CaughtUp:  page.CaughtUp,
		Truncated: page.Truncated,
	})
}

// feedQuery reads the parameters of a request, each of which can be given once.
func feedQuery(c *handlers.Call, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.Invalid, "query_malformed", "The query string can't be read. Encode each parameter.")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, fault.InvalidField(fmt.Sprintf("%.64s", name), "unknown_parameter", "Unknown parameter. This operation accepts "+strings.Join(known, ", ")+".")
		case len(values) > 1:
			return nil, fault.InvalidField(name, "duplicate_parameter", fmt.Sprintf("The parameter %s appears %d times. Send it once.", name, len(values)))
		}
	}
	return query, nil
}

// feedReadOf reads the parameters of a read.
func feedReadOf(c *handlers.Call) (r feedRead, err error) {
	query, err := feedQuery(c, "cursor", "limit", "wait", "consumer", "start", "create", "include_data", "lastEventId", "timeout")
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
	ok := false
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
func (a *api) pull(c *handlers.Call, r feedRead) (page feeds.Page, err error) {
	ends := a.Now().Add(r.wait)
	for {
		if page, err = a.page(c, r); err != nil || len(page.Events) > 0 || page.Truncated {
			return page, err
		}
		left := ends.Sub(a.Now())
		if left <= 0 || c.Ctx().Err() != nil {
			return page, nil
		}
		r.From = &page.Next
		if page.CaughtUp && !a.await(c, page.Next, left) {
			return page, nil
		}
	}
}

// page reads one page.
func (a *api) page(c *handlers.Call, r feedRead) (feeds.Page, error) {
	ctx, cancel := context.WithTimeout(c.Ctx(), readLimit)
	defer cancel()
	r.Now = a.Now()
	return feeds.Read(ctx, a.DB, a.Keys, c.Actor.Tenant, r.endpoint, r.Options)
}

// await waits for an event behind a place. False: the time is over, the client is gone, or this process stops.
func (a *api) await(c *handlers.Call, behind feed.Place, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.Ctx(), most)
	defer cancel()
	if a.Closing != nil {
		go func() {
			select {
			case <-a.Closing:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if behind.Position == feed.Older { // the log has not settled, which takes a moment
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookEvery):
			return true
		}
	}
	return a.watch.Wait(ctx, c.Actor.Tenant, behind.Position) == nil
}

// streamFeed sends events until the client disconnects, the feed or the key ends, or this process stops. The client
// continues after the last id that it has.
func (a *api) streamFeed(c *handlers.Call, r feedRead) error {
	page, err := a.page(c, r)
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
		if page.CaughtUp && !a.await(c, page.Next, beatEvery) {
			if a.closing() || s.Beat() != nil {
				return nil
			}
		}
		if err = c.Still(); err == nil {
			page, err = a.page(c, r)
		}
	}
	if f := fault.As(err); f != nil && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		_ = s.Event(0, "end", struct {
			Code string `json:"code"`
		}{f.Code})
	} else if c.Ctx().Err() == nil && !errors.Is(err, context.Canceled) {
		a.Log.Error("a stream of a feed ended", "endpoint", c.Param("endpoint_id"), "error", err)
	}
	return nil
}

func (a *api) closing() bool {
	select {
	case <-a.Closing:
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

func (r feedRead) encode(e feeds.Event) FeedEvent {
	out := FeedEvent{
		EventID:    id.Event.Format(e.Event),
		Cursor:     e.Place.String(),
		EventType:  e.Type,
		AcceptedAt: Time(e.AcceptedAt),
		Headers:    make([]HandoutHeader, len(e.Headers)),
		Body:       string(e.Body),
	}
	if !e.DeliverAt.IsZero() {
		out.DeliverAt = new(Time(e.DeliverAt))
	}
	if r.data {
		out.Data, out.Channels = new(json.RawMessage(e.Data)), new(append([]string{}, e.Channels...))
	}
	for i, one := range e.Headers {
		out.Headers[i] = HandoutHeader{Name: one.Name, Value: one.Value}
	}
	return out
}

// cloudEvent is an event as CloudEvents 1.0 has it. Names of extensions are lowercase letters and digits.
type cloudEvent struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Time            Time            `json:"time"`
	DataContentType string          `json:"datacontenttype"`
	DataVersion     string          `json:"dataversion,omitempty"`
	PartitionKey    string          `json:"partitionkey,omitempty"`
	Traceparent     string          `json:"traceparent,omitempty"`
	EventID         string          `json:"eventid"`
	Data            json.RawMessage `json:"data"`
}

// cloudEvents is a batch. The id of each is its cursor, so that a client of HTTP Feeds continues after it.
func (a *api) cloudEvents(endpointID id.UUID, events []feeds.Event) []cloudEvent {
	source := a.BaseURL + root + "/feeds/" + id.Endpoint.Format(endpointID)
	return views(events, func(e feeds.Event) cloudEvent {
		out := cloudEvent{
			SpecVersion:     "1.0",
			ID:              e.Place.String(),
			Source:          source,
			Type:            e.Type,
			Time:            Time(e.AcceptedAt),
			DataContentType: "application/json",
			DataVersion:     e.Version,
			PartitionKey:    e.Key,
			Traceparent:     e.Traceparent,
			EventID:         e.OwnID,
			Data:            e.Data,
		}
		if !e.OccurredAt.IsZero() {
			out.Time = Time(e.OccurredAt)
		}
		if e.ContentType != "" {
			out.DataContentType = e.ContentType
		}
		return out
	})
}

// How long a request of a Durable Stream waits, and a stream stays open. The protocol asks for the latter, so that
// clients come together again behind a cache.
const (
	durableWait = 20 * time.Second
	durableOpen = time.Minute
)

// readDurable serves a feed as the read half of a Durable Stream in JSON mode. Its offsets are the feed's cursors.
func (a *api) readDurable(c *handlers.Call) error {
	query, err := feedQuery(c, "offset", "live", "cursor")
	if err != nil {
		return err
	}
	offset, live := query.Get("offset"), query.Get("live")
	if !slices.Contains([]string{"", "long-poll", "sse"}, live) {
		return fault.InvalidField("live", "choice_unknown", "live must be long-poll or sse. Leave it out to read what is there.")
	}
	if offset == "" && (live != "" || query.Has("offset")) {
		return fault.InvalidField("offset", "feed_cursor_malformed", "Send one offset: Stream-Next-Offset of the last response, -1 for the beginning, or now.")
	}
	r := feedRead{Options: feeds.Options{Limit: feed.DefaultLimit, Start: feed.Start{Oldest: true}}, data: true}
	if r.endpoint, _, err = consumerOf(c, ""); err != nil {
		return err
	}
	tail := offset == feed.Now || c.Request.Method == http.MethodHead
	switch {
	case tail:
		r.Start = feed.Start{}
	case offset != "" && offset != "-1":
		place, err := feed.ParsePlace(offset)
		if err != nil {
			return err
		}
		r.From = &place
	}
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
	default:
		return errReaders
	}
	if live == "sse" {
		return a.streamDurable(c, r, query.Get("cursor"))
	}
	return a.answerDurable(c, r, tail && live == "", live == "long-poll", query.Get("cursor"))
}

// answerDurable responds with a JSON array, or with 204 if a wait brought nothing.
func (a *api) answerDurable(c *handlers.Call, r feedRead, tail, waits bool, cursor string) error {
	var page feeds.Page
	var err error
	if tail {
		r.Limit = 0
	}
	if waits {
		r.wait = durableWait
		page, err = a.pull(c, r)
	} else {
		page, err = a.page(c, r)
	}
	if err != nil {
		return err
	}
	if page.Truncated {
		return &fault.Error{Kind: fault.Gone, Code: "feed_truncated", Detail: "Retention has dropped events behind this offset. Start again from -1."}
	}
	h := c.Writer.Header()
	h.Set("Stream-Next-Offset", page.Next.String())
	h.Set("Cache-Control", "no-store")
	if page.CaughtUp || tail {
		h.Set("Stream-Up-To-Date", "true")
	}
	if waits {
		h.Set("Stream-Cursor", a.durableCursor(cursor))
		if len(page.Events) == 0 {
			return c.AnswerNothing()
		}
	}
	if !tail {
		from := "-1"
		if r.From != nil {
			from = r.From.String()
		}
		tag := `"` + from + ":" + page.Next.String() + `"`
		h.Set("ETag", tag)
		if c.Request.Header.Get("If-None-Match") == tag {
			c.Writer.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.Answer(http.StatusOK, views(page.Events, r.encode))
}

// durableCursor keeps caches from answering forever: the number of 20 seconds since the protocol's epoch, above the one
// that the client sent.
func (a *api) durableCursor(sent string) string {
	now := a.Now().Unix() - time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC).Unix()
	n := now / 20
	if last, err := strconv.ParseInt(sent, 10, 64); err == nil && last >= n && last < 1<<53 {
		n = last + 1
	}
	return strconv.FormatInt(n, 10)
}

// streamDurable sends data and control events for a minute.
func (a *api) streamDurable(c *handlers.Call, r feedRead, cursor string) error {
	page, err := a.page(c, r)
	if err != nil {
		return err
	}
	s, err := c.BeginStream()
	if err != nil {
		return nil // the client has disconnected: nobody would read the error
	}
	ends := a.Now().Add(durableOpen)
	for first := true; err == nil && !page.Truncated && a.Now().Before(ends) && !a.closing(); first = false {
		if len(page.Events) > 0 {
			err = s.Event(0, "data", views(page.Events, r.encode))
		}
		if err == nil && (first || len(page.Events) > 0) {
			cursor = a.durableCursor(cursor)
			err = s.Event(0, "control", durableControl{Next: page.Next.String(), Cursor: cursor, UpToDate: page.CaughtUp})
		}
		r.From = &page.Next
		if err == nil && page.CaughtUp && !a.await(c, page.Next, min(beatEvery, ends.Sub(a.Now()))) {
			err = s.Beat()
		}
		if err == nil {
			err = c.Still()
		}
		if err == nil {
			page, err = a.page(c, r)
		}
	}
	return nil // the client connects again, and gets the error if there is one
}

// durableControl is the event after each batch of data.
type durableControl struct {
	Next     string `json:"streamNextOffset"`
	Cursor   string `json:"streamCursor"`
	UpToDate bool   `json:"upToDate,omitempty"`
}

// consumers changes the consumers of the feed that the path names.
func (a *api) consumers(c *handlers.Call, endpointID id.UUID) feeds.Consumers {
	return feeds.Consumers{Tenant: c.Actor.Tenant, Feed: endpointID, By: c.Author(), Now: a.Now()}
}

var errConsumerMissing = fault.InvalidField("consumer", "consumer_missing", "Name the consumer, or use its token.")

func (a *api) acknowledgeFeed(c *handlers.Call) error {
	var in FeedAck
	if err := c.Decode(&in); err != nil {
		return err
	}
	place, err := feed.ParsePlace(in.Cursor)
	if err != nil {
		return err
	}
	return a.onConsumer(c, in.Consumer, func(q *db.Tx, all feeds.Consumers, name string) (show.Consumer, error) {
		return all.Acknowledge(c.Ctx(), q, name, place)
	})
}

func (a *api) rewindFeed(c *handlers.Call) error {
	var in FeedRewind
	if err := c.Decode(&in); err != nil {
		return err
	}
	var at *feed.Place
	if in.Cursor != nil {
		place, err := feed.ParsePlace(*in.Cursor)
		if err != nil {
			return err
		}
		at = &place
	}
	if in.Start == nil && at == nil || in.Start != nil && at != nil {
		return fault.InvalidField("start", "start_malformed", "Send start (now, oldest, or a time) or cursor.")
	}
	text := ""
	set(&text, in.Start)
	start, err := feed.ParseStart(text)
	if err != nil {
		return err
	}
	return a.onConsumer(c, in.Consumer, func(q *db.Tx, all feeds.Consumers, name string) (show.Consumer, error) {
		return all.Rewind(c.Ctx(), q, name, start, at)
	})
}

// onConsumer does something with the consumer that a call is for, and responds with it.
func (a *api) onConsumer(c *handlers.Call, named *string, do func(*db.Tx, feeds.Consumers, string) (show.Consumer, error)) error {
	name := ""
	set(&name, named)
	endpointID, name, err := consumerOf(c, name)
	if err != nil {
		return err
	}
	if name == "" {
		return errConsumerMissing
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Consumer, error) {
		return do(q, a.consumers(c, endpointID), name)
	}, encodeFeedConsumer)
}

func (a *api) listFeedConsumers(c *handlers.Call) error {
	all := a.consumers(c, c.PathID("endpoint_id"))
	return respond(c, http.StatusOK, func(q *db.Tx) ([]show.Consumer, error) { return all.List(c.Ctx(), q) }, func(list []show.Consumer) FeedConsumerPage {
		return FeedConsumerPage{Data: views(list, encodeFeedConsumer), NextCursor: cursorOrNull("")}
	})
}

func (a *api) createFeedConsumer(c *handlers.Call) error {
	var in FeedConsumerInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	text := ""
	set(&text, in.Start)
	start, err := feed.ParseStart(text)
	if err != nil {
		return err
	}
	all := a.consumers(c, c.PathID("endpoint_id"))
	var made show.Consumer
	var token string
	err = c.Tx(func(q *db.Tx) (err error) {
		made, token, err = all.Create(c.Ctx(), q, in.Name, start)
		return err
	})
	if err != nil {
		return err
	}
	v := encodeFeedConsumer(made)
	return c.Answer(http.StatusCreated, FeedConsumerCreated{
		Name:           v.Name,
		Cursor:         v.Cursor,
		AcknowledgedAt: v.AcknowledgedAt,
		ReadAt:         v.ReadAt,
		CreatedAt:      v.CreatedAt,
		Lag:            v.Lag,
		Token:          token,
	})
}

func (a *api) deleteFeedConsumer(c *handlers.Call) error {
	all := a.consumers(c, c.PathID("endpoint_id"))
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := c.Tx(func(q *db.Tx) error { return all.Delete(c.Ctx(), q, c.Param("consumer")) }); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) rotateFeedToken(c *handlers.Call) error {
	all := a.consumers(c, c.PathID("endpoint_id"))
	if err := c.NoBody(); err != nil {
		return err
	}
	return respond(c, http.StatusCreated, func(q *db.Tx) (string, error) {
		return all.Rotate(c.Ctx(), q, c.Param("consumer"))
	}, func(token string) FeedToken { return FeedToken{Token: token} })
}

func encodeFeedConsumer(v show.Consumer) FeedConsumer {
	return FeedConsumer{
		Name:           v.Name,
		Cursor:         v.Cursor,
		AcknowledgedAt: Time(v.AckedAt),
		ReadAt:         orNullTime(v.ReadAt),
		CreatedAt:      Time(v.CreatedAt),
		Lag: FeedLag{
			Events:  v.Lag.Events,
			More:    v.Lag.More,
			Seconds: int(v.Lag.Waiting / time.Second),
		},
	}
}
