package readers

import (
	"net/http"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/feeds"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/handlers/api"
)

// consumers changes the consumers of the feed that the path names.
func (h *handler) consumers(c *handlers.Call, endpointID id.UUID) feeds.Consumers {
	return feeds.Consumers{Tenant: c.Actor.Tenant, Feed: endpointID, By: c.Author(), Now: h.Now()}
}

var errConsumerMissing = fault.InvalidField("consumer", "consumer_missing", "Name the consumer, or use its token.")

func (h *handler) acknowledgeFeed(c *handlers.Call) error {
	var in api.FeedAck
	if err := c.Decode(&in); err != nil {
		return err
	}
	place, err := feed.ParsePlace(in.Cursor)
	if err != nil {
		return err
	}
	return h.onConsumer(c, in.Consumer, func(q *db.Tx, all feeds.Consumers, name string) (show.Consumer, error) {
		return all.Acknowledge(c.Ctx(), q, name, place)
	})
}

func (h *handler) rewindFeed(c *handlers.Call) error {
	var in api.FeedRewind
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
	start, err := feed.ParseStart(textOf(in.Start))
	if err != nil {
		return err
	}
	return h.onConsumer(c, in.Consumer, func(q *db.Tx, all feeds.Consumers, name string) (show.Consumer, error) {
		return all.Rewind(c.Ctx(), q, name, start, at)
	})
}

// textOf is a text of a request; one that it leaves out is empty.
func textOf(given *string) string {
	if given == nil {
		return ""
	}
	return *given
}

// onConsumer does something with the consumer that a call is for, and responds with it.
func (h *handler) onConsumer(c *handlers.Call, named *string, do func(*db.Tx, feeds.Consumers, string) (show.Consumer, error)) error {
	endpointID, name, err := consumerOf(c, textOf(named))
	if err != nil {
		return err
	}
	if name == "" {
		return errConsumerMissing
	}
	var found show.Consumer
	err = c.Tx(func(q *db.Tx) (err error) {
		found, err = do(q, h.consumers(c, endpointID), name)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeConsumer(found))
}

func (h *handler) listFeedConsumers(c *handlers.Call) error {
	all := h.consumers(c, c.PathID("endpoint_id"))
	var found []show.Consumer
	err := c.Tx(func(q *db.Tx) (err error) {
		found, err = all.List(c.Ctx(), q)
		return err
	})
	if err != nil {
		return err
	}
	out := api.FeedConsumerPage{Data: make([]api.FeedConsumer, len(found)), NextCursor: nullable.NewNullNullable[string]()}
	for i, one := range found {
		out.Data[i] = encodeConsumer(one)
	}
	return c.Answer(http.StatusOK, out)
}

func (h *handler) createFeedConsumer(c *handlers.Call) error {
	var in api.FeedConsumerInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	start, err := feed.ParseStart(textOf(in.Start))
	if err != nil {
		return err
	}
	all := h.consumers(c, c.PathID("endpoint_id"))
	var made show.Consumer
	var token string
	err = c.Tx(func(q *db.Tx) (err error) {
		made, token, err = all.Create(c.Ctx(), q, in.Name, start)
		return err
	})
	if err != nil {
		return err
	}
	v := encodeConsumer(made)
	return c.Answer(http.StatusCreated, api.FeedConsumerCreated{
		Name:           v.Name,
		Cursor:         v.Cursor,
		AcknowledgedAt: v.AcknowledgedAt,
		ReadAt:         v.ReadAt,
		CreatedAt:      v.CreatedAt,
		Lag:            v.Lag,
		Token:          token,
	})
}

func (h *handler) deleteFeedConsumer(c *handlers.Call) error {
	all := h.consumers(c, c.PathID("endpoint_id"))
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := c.Tx(func(q *db.Tx) error { return all.Delete(c.Ctx(), q, c.Param("consumer")) }); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (h *handler) rotateFeedToken(c *handlers.Call) error {
	all := h.consumers(c, c.PathID("endpoint_id"))
	if err := c.NoBody(); err != nil {
		return err
	}
	var token string
	err := c.Tx(func(q *db.Tx) (err error) {
		token, err = all.Rotate(c.Ctx(), q, c.Param("consumer"))
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusCreated, api.FeedToken{Token: token})
}

func encodeConsumer(v show.Consumer) api.FeedConsumer {
	readAt := nullable.NewNullNullable[api.Time]()
	if !v.ReadAt.IsZero() {
		readAt.Set(api.Time(v.ReadAt))
	}
	return api.FeedConsumer{
		Name:           v.Name,
		Cursor:         v.Cursor,
		AcknowledgedAt: api.Time(v.AckedAt),
		ReadAt:         readAt,
		CreatedAt:      api.Time(v.CreatedAt),
		Lag: api.FeedLag{
			Events:  v.Lag.Events,
			More:    v.Lag.More,
			Seconds: int(v.Lag.Waiting / time.Second),
		},
	}
}
