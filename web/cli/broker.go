package cli

import (
	"context"
	"strings"
)

// topic are the flags of an endpoint that is a broker.
type topic struct {
	Kafka    []string `placeholder:"HOST:PORT" help:"Bootstrap servers of a Kafka cluster. Events are written to --topic of this cluster instead of being sent to a URL."`
	Topic    string   `placeholder:"NAME" help:"The topic of the --kafka cluster."`
	CA       *string  `name:"ca-certificate" placeholder:"@FILE" help:"Trust only these certificate authorities, in PEM: @FILE or - for stdin; none removes them."`
	SASL     string   `name:"sasl" placeholder:"MECHANISM" help:"How to authenticate to the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none removes it."`
	User     string   `placeholder:"NAME" help:"The user name for --sasl or --rabbitmq."`
	Password *string  `placeholder:"@FILE" help:"The password for --sasl or --rabbitmq: @FILE or - for stdin."`

	SQS       string  `name:"sqs" placeholder:"URL" help:"URL of an Amazon SQS queue. Events are sent to this queue instead of to a URL."`
	Region    string  `placeholder:"REGION" help:"The region of the --sqs queue, if its URL does not contain it."`
	AccessKey string  `name:"access-key-id" placeholder:"ID" help:"The access key id for --sqs."`
	SecretKey *string `name:"secret-access-key" placeholder:"@FILE" help:"The secret access key for --sqs: @FILE or - for stdin."`

	RabbitMQ   string  `name:"rabbitmq" placeholder:"URL" help:"URL of a RabbitMQ broker, as amqps://HOST:5671/VHOST. Events are published to --exchange instead of being sent to a URL."`
	Exchange   *string `placeholder:"NAME" help:"The exchange of the --rabbitmq broker. Default: the one that routes to the queue of --routing-key."`
	RoutingKey *string `name:"routing-key" placeholder:"KEY" help:"The routing key of messages to --rabbitmq; {type} stands for the event type. Default: {type}."`
}

// named checks that the connection in a body names where its kind of broker writes.
func named(kind string, fields map[string]any) error {
	if kind == "sqs" {
		if connection, _ := fields["sqs"].(map[string]any); connection["queue_url"] == nil {
			return fail(ExitUsage, "An SQS endpoint needs its queue: --sqs URL --access-key-id ID --secret-access-key @FILE.")
		}
		return nil
	}
	if kind == "rabbitmq" {
		if connection, _ := fields["rabbitmq"].(map[string]any); connection["url"] == nil {
			return fail(ExitUsage, "A RabbitMQ endpoint needs its broker: --rabbitmq amqps://HOST:5671/VHOST --user NAME --password @FILE.")
		}
		return nil
	}
	connection, _ := fields["kafka"].(map[string]any)
	if connection["bootstrap_servers"] == nil || connection["topic"] == nil {
		return fail(ExitUsage, "A Kafka endpoint needs its bootstrap servers and its topic: --kafka HOST:PORT --topic NAME.")
	}
	return nil
}

// kind is the kind of broker that the flags are about; empty: none was given. Flags that both kinds have are about
// RabbitMQ if one of its own is given, or the body has its connection.
func (t topic) kind(fields map[string]any) string {
	_, is := fields["rabbitmq"].(map[string]any)
	switch {
	case len(t.Kafka) > 0, t.Topic != "", t.SASL != "":
		return "kafka"
	case t.SQS != "", t.Region != "", t.AccessKey != "", t.SecretKey != nil:
		return "sqs"
	case t.RabbitMQ != "", t.Exchange != nil, t.RoutingKey != nil:
		return "rabbitmq"
	case t.CA == nil && t.User == "" && t.Password == nil:
		return ""
	case is:
		return "rabbitmq"
	}
	return "kafka"
}

// set writes the flags over a body's connection, and returns its kind; empty: no flag was given.
func (t topic) set(ctx context.Context, e *Env, fields map[string]any) (string, error) {
	kind := t.kind(fields)
	if kind == "" {
		return "", nil
	}
	connection, ok := fields[kind].(map[string]any)
	if !ok {
		connection = map[string]any{}
	}
	fields[kind] = connection
	switch kind {
	case "rabbitmq":
		return kind, t.setRabbitMQ(ctx, e, connection)
	case "sqs":
		return kind, t.setSQS(ctx, e, connection)
	}
	if len(t.Kafka) > 0 {
		connection["bootstrap_servers"] = t.Kafka
	}
	if t.Topic != "" {
		connection["topic"] = t.Topic
	}
	if err := t.setCertificates(ctx, e, connection); err != nil {
		return kind, err
	}
	return kind, t.setLogin(ctx, e, connection)
}

func (t topic) setSQS(ctx context.Context, e *Env, connection map[string]any) error {
	for name, value := range map[string]string{"queue_url": t.SQS, "region": t.Region, "access_key_id": t.AccessKey} {
		if value != "" {
			connection[name] = value
		}
	}
	if t.SecretKey == nil {
		return nil
	}
	text, err := input(ctx, e, *t.SecretKey, nothing)
	connection["secret_access_key"] = string(text)
	return err
}

func (t topic) setRabbitMQ(ctx context.Context, e *Env, connection map[string]any) error {
	if t.RabbitMQ != "" {
		connection["url"] = t.RabbitMQ
	}
	if t.Exchange != nil {
		connection["exchange"] = *t.Exchange
	}
	if t.RoutingKey != nil {
		connection["routing_key"] = *t.RoutingKey
	}
	if t.User != "" {
		connection["username"] = t.User
	}
	if t.Password != nil {
		text, err := input(ctx, e, *t.Password, nothing)
		if err != nil {
			return err
		}
		connection["password"] = string(text)
	}
	return t.setCertificates(ctx, e, connection)
}

func (t topic) setCertificates(ctx context.Context, e *Env, connection map[string]any) error {
	switch {
	case t.CA == nil:
		return nil
	case *t.CA == "none":
		connection["ca_certificate"] = nil
		return nil
	}
	text, err := input(ctx, e, *t.CA, nothing)
	connection["ca_certificate"] = string(text)
	return err
}

func (t topic) setLogin(ctx context.Context, e *Env, connection map[string]any) error {
	switch {
	case t.SASL == "none":
		connection["sasl"] = nil
		return nil
	case t.SASL == "" && t.User == "" && t.Password == nil:
		return nil
	case t.SASL == "" || t.User == "":
		return fail(ExitUsage, "--sasl, --user and --password go together.")
	}
	sasl := map[string]any{"mechanism": strings.ToUpper(t.SASL), "username": t.User}
	if t.Password != nil {
		text, err := input(ctx, e, *t.Password, nothing)
		if err != nil {
			return err
		}
		sasl["password"] = string(text)
	}
	connection["sasl"] = sasl
	return nil
}
