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
	Kafka    []string `placeholder:"HOST:PORT" help:"Bootstrap servers of a Kafka cluster."`
	Topic    string   `placeholder:"NAME" help:"The topic of the --kafka cluster."`
	RabbitMQ string   `name:"rabbitmq" placeholder:"URL" help:"URL of a RabbitMQ broker, as amqps://HOST:5671/VHOST."`
	Queue    string   `placeholder:"NAME" help:"The queue of the --rabbitmq broker."`
	CA       *string  `name:"ca-certificate" placeholder:"@FILE" help:"Trust only these certificate authorities, in PEM: @FILE or - for stdin; none removes them."`
	SASL     string   `name:"sasl" placeholder:"MECHANISM" help:"How to authenticate to the brokers of --kafka: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none removes it."`
	User     string   `placeholder:"NAME" help:"The user name for --sasl or --rabbitmq."`
	Password *string  `placeholder:"@FILE" help:"The password for --sasl or --rabbitmq: @FILE or - for stdin."`

	SQS       string  `name:"sqs" placeholder:"URL" help:"URL of an Amazon SQS queue."`
	Region    string  `placeholder:"REGION" help:"The region of the --sqs queue, if its URL does not contain it."`
	AccessKey string  `name:"access-key-id" placeholder:"ID" help:"The access key id for --sqs."`
	SecretKey *string `name:"secret-access-key" placeholder:"@FILE" help:"The secret access key for --sqs: @FILE or - for stdin."`

	Start   string  `placeholder:"START" help:"Of a topic, where the first read begins: oldest or newest."`
	Mapping *string `placeholder:"EXPRESSION" help:"A CEL expression over body and message that makes an event, @FILE or - for stdin. Default: body."`
}

// set writes the flags over the fields of a body, and returns the kind of broker; empty: no flag of a connection was
// given.
func (f sourceFlags) set(ctx context.Context, e *Env, fields map[string]any) (kind string, err error) {
	t := topic{
		Kafka:     f.Kafka,
		Topic:     f.Topic,
		CA:        f.CA,
		SASL:      f.SASL,
		User:      f.User,
		Password:  f.Password,
		SQS:       f.SQS,
		Region:    f.Region,
		AccessKey: f.AccessKey,
		SecretKey: f.SecretKey,
		RabbitMQ:  f.RabbitMQ,
	}
	if f.Queue != "" {
		fields["rabbitmq"] = map[string]any{"queue": f.Queue}
	}
	if kind, err = t.set(ctx, e, fields); err != nil {
		return kind, err
	}
	if f.Queue != "" {
		kind = "rabbitmq"
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
	kind, err := c.set(ctx, e, fields)
	if err != nil {
		return err
	}
	if kind == "" {
		return fail(ExitUsage, "A source needs its queue: --kafka HOST:PORT --topic NAME, --rabbitmq URL --queue NAME, or --sqs URL.")
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
	if _, err := c.set(ctx, e, fields); err != nil {
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
