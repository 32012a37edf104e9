package cli

import (
	"context"
	"strings"
)

// topic are the flags of an endpoint that is a Kafka topic.
type topic struct {
	Kafka    []string `placeholder:"HOST:PORT" help:"Bootstrap servers of a Kafka cluster. Events are written to --topic of this cluster instead of being sent to a URL."`
	Topic    string   `placeholder:"NAME" help:"The topic of the --kafka cluster."`
	CA       *string  `name:"ca-certificate" placeholder:"@FILE" help:"Trust only these certificate authorities, in PEM: @FILE or - for stdin; none removes them."`
	SASL     string   `name:"sasl" placeholder:"MECHANISM" help:"How to authenticate to the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none removes it."`
	User     string   `placeholder:"NAME" help:"The user name for --sasl."`
	Password *string  `placeholder:"@FILE" help:"The password for --sasl: @FILE or - for stdin."`
}

// named reports whether the connection in a body names both a cluster and a topic.
func named(fields map[string]any) bool {
	connection, _ := fields["kafka"].(map[string]any)
	return connection["bootstrap_servers"] != nil && connection["topic"] != nil
}

// set writes the flags over a body's connection, and reports whether any was given.
func (t topic) set(ctx context.Context, e *Env, fields map[string]any) (bool, error) {
	if len(t.Kafka) == 0 && t.Topic == "" && t.CA == nil && t.SASL == "" && t.User == "" && t.Password == nil {
		return false, nil
	}
	connection, ok := fields["kafka"].(map[string]any)
	if !ok {
		connection = map[string]any{}
	}
	fields["kafka"] = connection
	if len(t.Kafka) > 0 {
		connection["bootstrap_servers"] = t.Kafka
	}
	if t.Topic != "" {
		connection["topic"] = t.Topic
	}
	if err := t.setCertificates(ctx, e, connection); err != nil {
		return true, err
	}
	return true, t.setLogin(ctx, e, connection)
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
