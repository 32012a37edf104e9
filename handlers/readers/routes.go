// Package readers serves the programs that take events themselves instead of being sent requests: the consumers of
// feeds, in each of the dialects that they read, and listeners.
package readers

import (
	"net/http"
	"time"

	"posthorn/db/feeds"
	"posthorn/domain/access"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// handler holds the handlers.
type handler struct {
	api.Deps
	streams chan struct{} // a slot for each stream of a listener
	readers chan struct{} // a slot for each reader of a feed
	watch   *feeds.Watch
}

const (
	maxStreams = 200  // of a process: each queries the database a few times a second
	maxReaders = 5000 // of a process: one that waits has no connection to the database
)

// How often a stream polls for deliveries, and after how much silence it sends a beat.
const (
	lookEvery = 250 * time.Millisecond
	beatEvery = 15 * time.Second
	// A beat of a feed's stream asks whether the key and the feed still are. Proxies close what is silent for a minute.
	feedBeat = 30 * time.Second
)

// Routes are the routes of readers in the API.
func Routes(d api.Deps) []handlers.Route {
	h := &handler{
		Deps:    d,
		streams: make(chan struct{}, maxStreams),
		readers: make(chan struct{}, maxReaders),
		watch:   feeds.NewWatch(d.DB),
	}
	route := func(method, path string, scope access.Scope, do handlers.Handler) handlers.Route {
		return handlers.Route{Method: method, Path: path, Access: handlers.Access{Scope: scope}, Handler: do}
	}
	durable := route(http.MethodGet, "/feeds/:endpoint_id/stream", access.FeedsRead, h.readDurable)
	durable.Timeout = durableOpen + beatEvery
	return []handlers.Route{
		route(http.MethodGet, "/feeds/:endpoint_id", access.FeedsRead, h.readFeed).Endless(),
		durable,
		route(http.MethodPost, "/feeds/:endpoint_id/ack", access.FeedsRead, h.acknowledgeFeed),
		route(http.MethodPost, "/feeds/:endpoint_id/rewind", access.FeedsRead, h.rewindFeed),
		route(http.MethodGet, "/feeds/:endpoint_id/consumers", access.WebhooksRead, h.listFeedConsumers),
		route(http.MethodPost, "/feeds/:endpoint_id/consumers", access.WebhooksWrite, h.createFeedConsumer),
		route(http.MethodDelete, "/feeds/:endpoint_id/consumers/:consumer", access.WebhooksWrite, h.deleteFeedConsumer),
		route(http.MethodPost, "/feeds/:endpoint_id/consumers/:consumer/rotate-token", access.WebhooksWrite, h.rotateFeedToken),
		route(http.MethodGet, "/listeners/:endpoint_id/stream", access.WebhooksWrite, h.streamListener).Endless(),
	}
}
