package readers

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"posthorn/db/feeds"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/handlers"
)

// How long a request of a Durable Stream waits, and a stream stays open. The protocol asks for the latter, so that
// clients come together again behind a cache.
const (
	durableWait = 20 * time.Second
	durableOpen = time.Minute
)

// readDurable serves a feed as the read half of a Durable Stream in JSON mode. Its offsets are the feed's cursors.
func (h *handler) readDurable(c *handlers.Call) error {
	c.Writer.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	query, err := queryOf(c)
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
	case h.readers <- struct{}{}:
		defer func() { <-h.readers }()
	default:
		return errReaders
	}
	if live == "sse" {
		return h.streamDurable(c, r, query.Get("cursor"))
	}
	return h.answerDurable(c, r, tail && live == "", live == "long-poll", query.Get("cursor"))
}

// answerDurable responds with a JSON array, or with 204 if a wait brought nothing.
func (h *handler) answerDurable(c *handlers.Call, r feedRead, tail, waits bool, cursor string) error {
	var page feeds.Page
	var err error
	if tail {
		r.Limit = 0
	}
	if waits {
		r.wait = durableWait
		page, err = h.pull(c, r)
	} else {
		page, err = h.page(c, r)
	}
	if err != nil {
		return err
	}
	if page.Truncated {
		return &fault.Error{Kind: fault.Gone, Code: "feed_truncated", Detail: "Retention has dropped events behind this offset. Start again from -1."}
	}
	head := c.Writer.Header()
	head.Set("Stream-Next-Offset", page.Next.String())
	head.Set("Cache-Control", "no-store")
	if page.CaughtUp || tail {
		head.Set("Stream-Up-To-Date", "true")
	}
	if waits {
		head.Set("Stream-Cursor", h.durableCursor(cursor))
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
		head.Set("ETag", tag)
		if c.Request.Header.Get("If-None-Match") == tag {
			c.Writer.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return c.Answer(http.StatusOK, r.encodeAll(page.Events))
}

// durableCursor keeps caches from answering forever: the number of 20 seconds since the protocol's epoch, above the one
// that the client sent.
func (h *handler) durableCursor(sent string) string {
	now := h.Now().Unix() - time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC).Unix()
	n := now / 20
	if last, err := strconv.ParseInt(sent, 10, 64); err == nil && last >= n && last < 1<<53 {
		n = last + 1
	}
	return strconv.FormatInt(n, 10)
}

// streamDurable sends data and control events for a minute.
func (h *handler) streamDurable(c *handlers.Call, r feedRead, cursor string) error {
	page, err := h.page(c, r)
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Cache-Control", "no-cache, no-store")
	s, err := c.BeginStream()
	if err != nil {
		return nil // the client has disconnected: nobody would read the error
	}
	ends := h.Now().Add(durableOpen)
	for first := true; err == nil && !page.Truncated && h.Now().Before(ends) && !h.closing(); first = false {
		if len(page.Events) > 0 {
			err = s.Event(0, "data", r.encodeAll(page.Events))
		}
		if err == nil && (first || len(page.Events) > 0) {
			cursor = h.durableCursor(cursor)
			err = s.Event(0, "control", durableControl{Next: page.Next.String(), Cursor: cursor, UpToDate: page.CaughtUp})
		}
		r.From = &page.Next
		if err == nil && page.CaughtUp && !h.await(c, page.Next, min(beatEvery, ends.Sub(h.Now()))) {
			err = s.Beat()
		}
		if err == nil {
			err = c.Still()
		}
		if err == nil {
			page, err = h.page(c, r)
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
