package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"posthorn/client"
	"posthorn/domain/show"
)

type emitCommand struct {
	shared
	Type           string   `arg:"" help:"The event's type, such as order.completed."`
	Data           *string  `arg:"" optional:"" help:"The event's data as JSON; - reads stdin, @FILE a file. Default: {} in a terminal, and stdin where something else is stdin."`
	Key            string   `placeholder:"KEY" help:"Ordering key: events with the same key stay in order."`
	Channel        []string `placeholder:"CHANNEL" help:"A channel; repeat the flag for more."`
	Version        string   `name:"data-version" placeholder:"VERSION" help:"Version of the data's shape."`
	OccurredAt     string   `placeholder:"TIME" help:"When it happened, if not now: a duration back from now, such as 2h, or a time, such as 2026-01-31T12:00:00Z."`
	DeliverAt      string   `placeholder:"TIME" help:"Deliver later: a duration from now, such as 1h or 7d, or a time in the future, such as 2026-01-31T12:00:00Z; at most 30 days ahead."`
	ExpiresAt      string   `placeholder:"TIME" help:"Don't deliver it later: a duration from now, such as 5m, or a time in the future; at most 30 days ahead."`
	IdempotencyKey string   `placeholder:"KEY" help:"Makes it safe to run the same command again."`
}

// Run emits the event and shows where it went.
func (c emitCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	data, err := c.data(ctx, e)
	if err != nil {
		return err
	}
	event := client.Emission{Type: c.Type, Data: data}
	event.Key, event.Version, event.IdempotencyKey = nonEmpty(c.Key), nonEmpty(c.Version), nonEmpty(c.IdempotencyKey)
	if len(c.Channel) > 0 {
		event.Channels = &c.Channel
	}
	if event.OccurredAt, err = moment("--occurred-at", c.OccurredAt, e.Now()); err != nil {
		return err
	}
	if event.DeliverAt, err = ahead("--deliver-at", c.DeliverAt, e.Now()); err != nil {
		return err
	}
	if event.ExpiresAt, err = ahead("--expires-at", c.ExpiresAt, e.Now()); err != nil {
		return err
	}
	return of(sdk.Emit(ctx, event)).print(c.shared, e, func(accepted client.Accepted) {
		e.printf("%s: %s created\n", accepted.ID, plural(accepted.Deliveries, "delivery", "deliveries"))
		if accepted.Warnings != nil {
			for _, w := range *accepted.Warnings {
				e.notef("Warning: %s: %s\n", w.Field, w.Detail)
			}
		}
	})
}

// data is the event's data. Without any, a person gets {}, and a program reads stdin.
func (c emitCommand) data(ctx context.Context, e *Env) (json.RawMessage, error) {
	source := "-"
	switch {
	case c.Data != nil:
		source = *c.Data
	case e.InTerminal:
		source = "{}"
	}
	text, err := input(ctx, e, source, withoutData)
	if err != nil {
		return nil, err
	}
	return text, notJSON(source, text)
}

// notJSON says that data is not JSON, and how a shell takes JSON that was typed.
func notJSON(source string, text []byte) error {
	switch {
	case json.Valid(text):
		return nil
	case source == "-":
		return fail(ExitUsage, "The data in stdin is not JSON.")
	case strings.HasPrefix(source, "@"):
		return fail(ExitUsage, "The data in %s is not JSON.", source[1:])
	}
	return fail(ExitUsage, "The data is not JSON. In a shell, quote it: '{\"order_id\":\"ord_1\"}'.")
}

type eventsCommands struct {
	List eventListCommand `cmd:"" help:"List events, newest first."`
	Get  eventGetCommand  `cmd:"" help:"Show an event with its data and its deliveries."`
	Data eventDataCommand `cmd:"" help:"Write the data of an event to stdout, byte for byte, also where it is in object storage."`
}

type eventListCommand struct {
	shared
	window
	Type    string `help:"Only events of this type." placeholder:"TYPE"`
	Channel string `help:"Only events of this channel." placeholder:"CHANNEL"`
	storedDay
	Outcome string `help:"Only events with failures (failed), or that no endpoint matched (unmatched)." placeholder:"OUTCOME" enum:",failed,unmatched" default:""`
}

// Run lists events.
func (c eventListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	params := client.ListEventsParams{Limit: c.pageSize(), Type: nonEmpty(c.Type), Channel: nonEmpty(c.Channel), StoredDay: c.day()}
	if c.Outcome != "" {
		params.Outcome = new(client.ListEventsParamsOutcome(c.Outcome))
	}
	var err error
	if params.Since, params.Until, err = c.bounds(e); err != nil {
		return err
	}
	return listing[client.Event]{
		limit: c.Limit,
		empty: "No events. `posthorn emit order.completed '{}'` makes one.",
		head:  []string{"EVENT", "TYPE", "DELIVERIES", "CREATED", "KEY", "CHANNELS"},
		row: func(v client.Event) []string {
			return []string{v.ID, v.Type, became(v.Outcome), local(v.CreatedAt), optional(v.Key), strings.Join(v.Channels, ",")}
		},
	}.collect(c.shared, e, sdk.Events(ctx, params))
}

// became is what became of an event, in the words of the pages.
func became(o *client.EventOutcome) string {
	if o == nil {
		return ""
	}
	shown := show.Outcome{Waiting: o.Waiting, Delivered: o.Delivered, Failed: o.Failed, Canceled: o.Canceled, Feeds: o.Feeds}
	if shown.Is(show.MatchedNothing) {
		return "matched nothing"
	}
	var parts []string
	for _, c := range shown.Counts() {
		parts = append(parts, strconv.Itoa(c.N)+" "+c.Word)
	}
	return strings.Join(parts, ", ")
}

type eventGetCommand struct {
	shared
	ID string `arg:"" name:"event" help:"The event's id (evt_...)."`
}

// Run shows an event.
func (c eventGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	event, err := sdk.GetEvent(ctx, c.ID)
	if err != nil {
		return err
	}
	deliveries, err := collect(sdk.EventDeliveries(ctx, c.ID, client.ListEventDeliveriesParams{}), 50)
	if err = ignoreScope(err); err != nil {
		return err
	}
	if c.JSON {
		return e.json(struct {
			client.EventWithData
			Deliveries []client.Delivery `json:"deliveries"`
		}{event, deliveries})
	}
	e.pairs("Event", event.ID, "Type", event.Type, "Created", local(event.CreatedAt), "Occurred", optional(event.OccurredAt),
		"Deliver at", optional(event.DeliverAt), "Expires at", optional(event.ExpiresAt), "Key", optional(event.Key), "Version", optional(event.Version), "Channels", strings.Join(event.Channels, ", "))
	var pretty bytes.Buffer
	if event.Expunged {
		e.printf("\nIts data was expunged.\n")
	} else if json.Indent(&pretty, event.Data, "", "  ") == nil {
		e.printf("\n%s\n", pretty.String())
	}
	if len(deliveries) > 0 {
		e.printf("\n")
		deliveryColumns.table(e, deliveries)
	}
	return nil
}

type eventDataCommand struct {
	shared
	ID string `arg:"" name:"event" help:"The event's id (evt_...)."`
}

// Run writes the data of an event.
func (c eventDataCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	res, err := sdk.GetEventData(ctx, c.ID)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(e.Stdout, res.Body)
	return err
}

// ignoreScope leaves out of a view what the key can't read.
func ignoreScope(err error) error {
	if client.Code(err) == "scope_missing" {
		return nil
	}
	return err
}

// nonEmpty is an optional flag: nil for an empty one.
func nonEmpty(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}
