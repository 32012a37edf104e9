package cli

import (
	"context"
	"strconv"
	"time"

	"posthorn/client"
)

// feedsCommands read feeds and manage their consumers.
type feedsCommands struct {
	Read   feedReadCommand   `cmd:"" help:"Print the events of a feed as lines of JSON."`
	List   feedListCommand   `cmd:"" help:"List the consumers of a feed, and how far each is behind."`
	Create feedCreateCommand `cmd:"" help:"Create a consumer of a feed. Its token is shown once."`
	Rotate feedRotateCommand `cmd:"" help:"Create a new token for a consumer. The old one ends."`
	Rewind feedRewindCommand `cmd:"" help:"Read events again, or skip some."`
	Delete feedDeleteCommand `cmd:"" help:"Delete a consumer and its token."`
}

// oneConsumer are the flags of a command about one consumer of a feed.
type oneConsumer struct {
	one
	Consumer string `arg:"" name:"consumer" help:"The consumer's name."`
}

type feedReadCommand struct {
	one
	Consumer string `placeholder:"NAME" help:"Read for a consumer and acknowledge what is printed."`
	Start    string `placeholder:"START" help:"Without a consumer, where to begin: now, oldest, or a time." default:"oldest"`
	Follow   bool   `short:"f" help:"Wait for more events, until Ctrl-C."`
}

// feedWait is how long one request waits for events, in seconds.
const feedWait = 20

// Run prints events. What was printed is acknowledged with the next page, so that a command that is stopped prints its
// last page again.
func (c feedReadCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	params := client.ReadFeedParams{Consumer: nonEmpty(c.Consumer), Start: nonEmpty(c.Start)}
	if c.Follow {
		params.Wait = new(feedWait)
	}
	for {
		page, err := sdk.ReadFeed(ctx, c.ID, params)
		if err != nil {
			if ctx.Err() != nil {
				return nil // Ctrl-C
			}
			return err
		}
		if page.Truncated {
			e.notef("Retention has dropped events before the next one.\n")
		}
		for _, one := range page.Data {
			if err := e.json(one); err != nil {
				return err
			}
		}
		if c.Consumer != "" && len(page.Data) > 0 {
			if _, err := sdk.AcknowledgeFeed(ctx, c.ID, client.FeedAck{Cursor: page.Cursor, Consumer: &c.Consumer}); err != nil {
				return err
			}
		}
		params.Cursor, params.Start = &page.Cursor, nil
		if page.CaughtUp && !c.Follow {
			return nil
		}
	}
}

type feedListCommand struct{ one }

// Run lists consumers.
func (c feedListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	page, err := sdk.ListFeedConsumers(ctx, c.ID)
	return listing[client.FeedConsumer]{
		empty: "No consumers.",
		head:  []string{"CONSUMER", "BEHIND", "FOR", "LAST READ", "ACKNOWLEDGED"},
		row: func(v client.FeedConsumer) []string {
			return []string{v.Name, behind(v.Lag), (time.Duration(v.Lag.Seconds) * time.Second).String(), optional(v.ReadAt), local(v.AcknowledgedAt)}
		},
	}.print(c.shared, e, page.Data, err)
}

// behind is a lag in events.
func behind(l client.FeedLag) string {
	if l.More {
		return "> " + strconv.Itoa(l.Events)
	}
	return strconv.Itoa(l.Events)
}

type feedCreateCommand struct {
	oneConsumer
	Start string `placeholder:"START" help:"Where it begins: now, oldest, or a time." default:"now"`
}

// Run creates a consumer.
func (c feedCreateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	in := client.FeedConsumerInput{Name: c.Consumer, Start: &c.Start}
	return of(sdk.CreateFeedConsumer(ctx, c.ID, in)).print(c.shared, e, func(made client.FeedConsumerCreated) {
		e.pairs("Consumer", made.Name, "Token", made.Token)
		e.notef("The token is shown only once.\n")
	})
}

type feedRotateCommand struct{ oneConsumer }

// Run rotates the token of a consumer.
func (c feedRotateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.RotateFeedToken(ctx, c.ID, c.Consumer)).print(c.shared, e, func(made client.FeedToken) {
		e.pairs("Token", made.Token)
		e.notef("The token is shown only once. The old one has ended.\n")
	})
}

type feedRewindCommand struct {
	oneConsumer
	Start string `arg:"" help:"Where it continues: now, oldest, or a time."`
}

// Run moves a consumer.
func (c feedRewindCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	in := client.FeedRewind{Consumer: &c.Consumer, Start: &c.Start}
	return of(sdk.RewindFeed(ctx, c.ID, in)).print(c.shared, e, func(v client.FeedConsumer) {
		e.printf("%s continues after %s.\n", v.Name, v.Cursor)
	})
}

type feedDeleteCommand struct{ oneConsumer }

// Run deletes a consumer.
func (c feedDeleteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	if err := sdk.DeleteFeedConsumer(ctx, c.ID, c.Consumer); err != nil {
		return err
	}
	return c.show(e, map[string]string{"deleted": c.Consumer}, func() { e.printf("%s is deleted.\n", c.Consumer) })
}
