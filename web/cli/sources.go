package cli

import (
	"context"
	"strconv"

	"posthorn/client"
)

// sourcesCommands manage sources: queues of one's own whose messages become events.
type sourcesCommands struct {
	List   sourceListCommand   `cmd:"" help:"List sources, newest first."`
	Get    sourceGetCommand    `cmd:"" help:"Show a source: its state, its connection, and its mapping."`
	Create sourceCreateCommand `cmd:"" help:"Create a source from a Kafka topic, a RabbitMQ queue, or an Amazon SQS queue."`
	Update sourceUpdateCommand `cmd:"" help:"Change the given fields of a source."`
	Test   sourceTestCommand   `cmd:"" help:"Receive one message without acknowledging it, and show the event that it becomes."`
	Pause  sourcePauseCommand  `cmd:"" help:"Stop reading a source. Its messages wait in the broker."`
	Resume sourceResumeCommand `cmd:"" help:"Read a paused source again."`
	Delete sourceDeleteCommand `cmd:"" help:"Delete a source."`
}

// oneSource names a source.
type oneSource struct {
	shared
	ID string `arg:"" name:"source" help:"The source's id (src_...)."`
}

// sourceFlags are the settings of a source.
type sourceFlags struct {
	connection
	Start   string  `placeholder:"START" help:"Of a topic, where the first read begins: oldest or newest."`
	Mapping *string `placeholder:"EXPRESSION" help:"A CEL expression over body and message that makes an event, @FILE or - for stdin. Default: body."`
}

// set writes the flags over the fields of a body, and returns the kind of broker; empty: no flag of a connection was
// given.
func (f sourceFlags) set(ctx context.Context, e *Env, fields map[string]any, known func() (string, error)) (kind string, err error) {
	if kind, err = f.connection.set(ctx, e, fields, known); err != nil {
		return kind, err
	}
	if f.Start != "" {
		fields["start"] = f.Start
	}
	if f.Mapping != nil {
		text, err := input(ctx, e, *f.Mapping, nothing)
		if err != nil {
			return kind, err
		}
		fields["mapping"] = string(text)
	}
	return kind, nil
}

type sourceListCommand struct{ shared }

// Run lists sources.
func (c sourceListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var rows []client.Source
	for one, err := range sdk.Sources(ctx, client.ListSourcesParams{}) {
		if err != nil {
			return err
		}
		rows = append(rows, one)
	}
	return listing[client.Source]{
		empty: "No sources.",
		head:  []string{"SOURCE", "NAME", "KIND", "STATUS", "WAITING", "LAST READ", "URL"},
		row: func(v client.Source) []string {
			return []string{v.ID, v.Name, string(v.Kind), string(v.Status), waitingText(v), optional(v.LastReadAt), v.URL}
		},
	}.print(c.shared, e, rows, nil)
}

// waitingText is how many messages wait in the broker.
func waitingText(v client.Source) string {
	n, err := v.Waiting.Get()
	if err != nil {
		return "-"
	}
	return strconv.Itoa(n)
}

func (e *Env) source(v client.Source) {
	e.pairs("Source", v.ID, "Name", v.Name, "Kind", string(v.Kind), "URL", v.URL, "Status", string(v.Status), "Reason", optional(v.Reason),
		"Waiting", waitingText(v), "Last read", optional(v.LastReadAt), "Mapping", v.Mapping)
}

type sourceGetCommand struct{ oneSource }

// Run shows a source.
func (c sourceGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.GetSource(ctx, c.ID)).print(c.shared, e, e.source)
}

type sourceCreateCommand struct {
	shared
	sourceFlags
	Name string `arg:"" help:"Its name, unique within the tenant."`
}

// Run creates a source.
func (c sourceCreateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	fields := map[string]any{"name": c.Name}
	kind, err := c.set(ctx, e, fields, nil)
	if err != nil {
		return err
	}
	if kind == "" {
		return fail(ExitUsage, "A source needs its queue: --kafka HOST:PORT --topic NAME, --rabbitmq URL --queue NAME, or --sqs URL.")
	}
	if err := c.named(kind, fields); err != nil {
		return err
	}
	fields["kind"] = kind
	body, err := typed[client.SourceInput](fields)
	if err != nil {
		return err
	}
	made, err := sdk.CreateSource(ctx, body)
	return of(made, withFlags(err)).print(c.shared, e, e.source)
}

type sourceUpdateCommand struct {
	oneSource
	sourceFlags
	Name string `help:"Another name."`
}

// Run changes a source.
func (c sourceUpdateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	fields := map[string]any{}
	if c.Name != "" {
		fields["name"] = c.Name
	}
	_, err := c.set(ctx, e, fields, func() (string, error) {
		present, err := sdk.GetSource(ctx, c.ID)
		if err != nil {
			return "", err
		}
		return string(present.Kind), nil
	})
	if err != nil {
		return err
	}
	body, err := typed[client.SourcePatch](fields)
	if err != nil {
		return err
	}
	changed, err := sdk.UpdateSource(ctx, c.ID, body)
	return of(changed, withFlags(err)).print(c.shared, e, e.source)
}

type sourceTestCommand struct {
	oneSource
	Message  *string `placeholder:"TEXT" help:"Map this body instead of receiving a message: text, @FILE or - for stdin."`
	Rejected string  `placeholder:"EVENT" help:"Map this rejected message (evt_...)."`
	Mapping  *string `placeholder:"EXPRESSION" help:"Try this mapping: text, @FILE or - for stdin."`
}

// Run tests a source.
func (c sourceTestCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	in := client.SourceTestInput{RejectedID: nonEmpty(c.Rejected)}
	if c.Message != nil {
		text, err := input(ctx, e, *c.Message, nothing)
		if err != nil {
			return err
		}
		in.Message = &client.SourceMessage{Text: new(string(text))}
	}
	if c.Mapping != nil {
		text, err := input(ctx, e, *c.Mapping, nothing)
		if err != nil {
			return err
		}
		in.Mapping = new(string(text))
	}
	return of(sdk.TestSource(ctx, c.ID, in)).print(c.shared, e, func(v client.SourceTest) {
		if m, err := v.Message.Get(); err == nil && m.Text != nil {
			e.pairs("Message", *m.Text)
		}
		if event, err := v.Event.Get(); err == nil {
			e.pairs("Event", string(event))
		}
		if p, err := v.Problem.Get(); err == nil {
			e.pairs("Problem", p.Detail)
		} else if _, err := v.Message.Get(); err != nil {
			e.notef("The queue has no message.\n")
		}
	})
}

type sourcePauseCommand struct{ oneSource }

// Run pauses a source.
func (c sourcePauseCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.PauseSource(ctx, c.ID)).print(c.shared, e, e.source)
}

type sourceResumeCommand struct{ oneSource }

// Run resumes a source.
func (c sourceResumeCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.ResumeSource(ctx, c.ID)).print(c.shared, e, e.source)
}

type sourceDeleteCommand struct{ oneSource }

// Run deletes a source.
func (c sourceDeleteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	if err := sdk.DeleteSource(ctx, c.ID); err != nil {
		return err
	}
	return c.show(e, map[string]string{"deleted": c.ID}, func() { e.printf("%s is deleted.\n", c.ID) })
}
