package endpoint

import (
	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// Feed is the kind of an endpoint whose consumers read the tenant's events by a cursor. Nothing is sent to it, so it
// has no deliveries, no transport and no health.
const Feed Kind = "feed"

// FeedURL is the URL of every feed: nobody connects to it.
const FeedURL = "feed://pull"

// Pulls reports whether consumers read the events themselves.
func (k Kind) Pulls() bool { return k == Feed }

// ErrFeed refuses what makes no sense for a feed.
var ErrFeed = fault.New(
	fault.Conflict,
	"endpoint_is_feed",
	"This endpoint is a feed: nothing is sent to it. Its consumers read it with GET /feeds/{endpoint_id}, and rewind to read events again.",
)

// ErrNoFeed refuses to read an endpoint that is no feed.
var ErrNoFeed = fault.New(
	fault.Conflict,
	"endpoint_is_no_feed",
	"This endpoint is no feed, so it can't be read. Create an endpoint of the kind feed.",
)

// ErrFeedInactive refuses to read a feed that is paused or disabled. Nothing is lost: events stay in the log.
var ErrFeedInactive = fault.New(
	fault.Conflict,
	"feed_inactive",
	"This feed is paused or disabled. Resume it to read it; its consumers continue where they stopped.",
)

// ErrFeedHalted refuses to read while the operator of the platform lets nothing go to the feed.
var ErrFeedHalted = fault.New(
	fault.Conflict,
	"feed_halted",
	"The operator of this platform has paused this feed, or suspended the tenant. Its events stay in the log, and its consumers keep their place.",
)

func (c *collector) feed(s *Settings, _ egress.Policy) {
	if s.URL != "" && s.URL != FeedURL {
		c.refuse("url", "feed_url_unwanted", "A feed has no URL. Leave url out.")
	}
	s.URL = FeedURL
}
