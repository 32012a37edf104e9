package cli

import "strings"

// topic are the flags of an endpoint that is a Kafka topic.
type topic struct {
	Kafka    []string `placeholder:"HOST:PORT" help:"Bootstrap servers of a Kafka cluster. Events are written to --topic of this cluster instead of being sent to a URL."`
	Topic    string   `placeholder:"NAME" help:"The topic of the --kafka cluster."`
	CA       string   `name:"ca-certificate" placeholder:"@FILE" help:"Trust only these certificate authorities, in PEM: @FILE or - for stdin; none removes them."`
	SASL     string   `name:"sasl" placeholder:"MECHANISM" help:"How to authenticate to the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none removes it."`
	User     string   `placeholder:"NAME" help:"The user name for --sasl."`
	Password string   `placeholder:"@FILE" help:"The password for --sasl: @FILE or - for stdin."`
}

// named reports whether the connection in a body names both a cluster and a topic.
func named(fields map[string]any) bool {
	connection, _ := fields["kafka"].(map[string]any)
	return connection["bootstrap_servers"] != nil && connection["topic"] != nil
}

// lay writes the flags over a body's connection, and reports whether any was given.
func (t topic) lay(e *Env, fields map[string]any) (bool, error) {
	if len(t.Kafka) == 0 && t.Topic == "" && t.CA == "" && t.SASL == "" && t.User == "" && t.Password == "" {
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
	if err := t.layCertificates(e, connection); err != nil {
		return true, err
	}
	return true, t.layLogin(e, connection)
}

func (t topic) layCertificates(e *Env, connection map[string]any) error {
	switch t.CA {
	case "":
		return nil
	case "none":
		connection["ca_certificate"] = nil
		return nil
	}
	text, err := input(e, t.CA, "")
	connection["ca_certificate"] = string(text)
	return err
}

func (t topic) layLogin(e *Env, connection map[string]any) error {
	switch {
	case t.SASL == "none":
		connection["sasl"] = nil
		return nil
	case t.SASL == "" && t.User == "" && t.Password == "":
		return nil
	case t.SASL == "" || t.User == "":
		return fail(ExitUsage, "--sasl, --user and --password go together.")
	}
	sasl := map[string]any{"mechanism": strings.ToUpper(t.SASL), "username": t.User}
	if t.Password != "" {
		text, err := input(e, t.Password, "")
		if err != nil {
			return err
		}
		sasl["password"] = string(text)
	}
	connection["sasl"] = sasl
	return nil
}
