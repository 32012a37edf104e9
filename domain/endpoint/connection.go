package endpoint

import (
	"encoding/json"
	"slices"
	"strings"
)

// ConnectionField is one field of a kind's connection. The forms of endpoints and of sources, and the flags of the
// command line, read and show each by its row in the table.
type ConnectionField struct {
	Kind        Kind
	Name        string // in the API's object of the kind; sasl.username is in its object sasl
	Type        FieldType
	Only        Use // empty: endpoints and sources have it
	Label       string
	Hint        string
	Placeholder string
	Optional    bool
	High        int      // bytes; 0: no bound in the form
	Options     []Option // of Choice, the default first
	On          bool     // of Switch, in a new form
	Secret      bool     // is written and not shown
	File        bool     // has several lines
	Beside      bool     // shares its line with its neighbors that do
	With        string   // a Choice beside which it is there
	Flag        string   // of the command line
	Help        string   // of the flag, in the first row that has it
	Names       bool     // the flag alone tells the kind
}

// Use is what a connection is for.
type Use string

// The uses.
const (
	ToEndpoint Use = "endpoint"
	FromSource Use = "source"
)

const (
	publicHint = "Must be public. Without a virtual host, the default one is used."
	caHint     = "In PEM format. If set, only this authority is trusted. Leave empty to use the server's trusted authorities."
	caHelp     = "Trust only these certificate authorities, in PEM: @FILE or - for stdin; none removes them."
	caExample  = "-----BEGIN CERTIFICATE-----"
	mustExist  = "Must exist already."
)

// connectionFields is the table, in the order of the form.
var connectionFields = []ConnectionField{
	{
		Kind:        Kafka,
		Name:        "bootstrap_servers",
		Type:        List,
		Label:       "Bootstrap servers",
		Placeholder: "broker.example.com:9092",
		Hint:        "host:port, one per line. They and the brokers they advertise must be public.",
		Flag:        "kafka",
		Names:       true,
		Help:        "Bootstrap servers of a Kafka cluster, as HOST:PORT, with --topic.",
	},
	{
		Kind:  Kafka,
		Name:  "topic",
		Label: "Topic",
		High:  maxKafkaTopic,
		Hint:  mustExist + " Topics aren't created automatically.",
		Flag:  "topic",
		Names: true,
		Help:  "The topic of the --kafka cluster.",
	},
	{
		Kind:  Kafka,
		Name:  "tls",
		Type:  Switch,
		On:    true,
		Label: "TLS",
		Hint:  "Only the operator of this platform can allow connections without TLS.",
	},
	{
		Kind:        Kafka,
		Name:        "ca_certificate",
		Optional:    true,
		File:        true,
		Label:       "CA certificate",
		Placeholder: caExample,
		Hint:        caHint,
		Flag:        "ca-certificate",
		Help:        caHelp,
	},
	{
		Kind:     Kafka,
		Name:     "sasl.mechanism",
		Type:     Choice,
		Optional: true,
		Label:    "Authentication",
		Options:  mechanisms(),
		Flag:     "sasl",
		Names:    true,
		Help:     "How to authenticate to the brokers: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; none removes it.",
	},
	{
		Kind:     Kafka,
		Name:     "sasl.username",
		Optional: true,
		With:     "sasl.mechanism",
		Beside:   true,
		Label:    "User name",
		Flag:     "user",
		Help:     "The user name for --sasl or --rabbitmq.",
	},
	{
		Kind:     Kafka,
		Name:     "sasl.password",
		Optional: true,
		With:     "sasl.mechanism",
		Beside:   true,
		Secret:   true,
		Label:    "Password",
		Flag:     "password",
		Help:     "The password for --sasl or --rabbitmq: @FILE or - for stdin.",
	},

	{
		Kind:        RabbitMQ,
		Name:        "url",
		High:        2048,
		Label:       "Broker URL",
		Placeholder: "amqps://rabbitmq.example.com:5671/vhost",
		Hint:        publicHint,
		Flag:        "rabbitmq",
		Names:       true,
		Help:        "URL of a RabbitMQ broker, as amqps://HOST:5671/VHOST.",
	},
	{
		Kind:  RabbitMQ,
		Name:  "queue",
		Only:  FromSource,
		High:  MaxRabbitMQName,
		Label: "Queue",
		Hint:  mustExist,
		Flag:  "queue",
		Names: true,
		Help:  "The queue of the --rabbitmq broker.",
	},
	{
		Kind:     RabbitMQ,
		Name:     "exchange",
		Only:     ToEndpoint,
		Optional: true,
		High:     MaxRabbitMQName,
		Label:    "Exchange",
		Hint:     mustExist + " Leave empty to send to the queue that the routing key names.",
		Flag:     "exchange",
		Names:    true,
		Help:     "The exchange of the --rabbitmq broker. Default: the one that routes to the queue of --routing-key.",
	},
	{
		Kind:        RabbitMQ,
		Name:        "routing_key",
		Only:        ToEndpoint,
		Optional:    true,
		High:        MaxRabbitMQName,
		Label:       "Routing key",
		Placeholder: typePlace,
		Hint:        "{type} stands for the event type. Leave empty to use the event type.",
		Flag:        "routing-key",
		Names:       true,
		Help:        "The routing key of messages to --rabbitmq; {type} stands for the event type. Default: {type}.",
	},
	{
		Kind:        RabbitMQ,
		Name:        "ca_certificate",
		Optional:    true,
		File:        true,
		Label:       "CA certificate",
		Placeholder: caExample,
		Hint:        caHint,
		Flag:        "ca-certificate",
	},
	{Kind: RabbitMQ, Name: "username", Beside: true, Label: "User name", Flag: "user"},
	{Kind: RabbitMQ, Name: "password", Beside: true, Secret: true, Label: "Password", Flag: "password"},

	{
		Kind:        SQS,
		Name:        "queue_url",
		High:        2048,
		Label:       "Queue URL",
		Placeholder: "https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks",
		Hint:        "A standard or FIFO queue. It must exist already.",
		Flag:        "sqs",
		Names:       true,
		Help:        "URL of an Amazon SQS queue.",
	},
	{
		Kind:        SQS,
		Name:        "region",
		Optional:    true,
		High:        32,
		Label:       "Region",
		Placeholder: "eu-west-1",
		Hint:        "Leave empty if the queue URL contains it.",
		Flag:        "region",
		Help:        "The region of the queue, if its URL does not contain it, or of the bucket.",
	},
	{
		Kind:   SQS,
		Name:   "access_key_id",
		Beside: true,
		High:   128,
		Label:  "Access key ID",
		Flag:   "access-key-id",
		Help:   "The access key id of the queue or the bucket.",
	},
	{
		Kind:   SQS,
		Name:   "secret_access_key",
		Beside: true,
		Secret: true,
		Label:  "Secret access key",
		Flag:   "secret-access-key",
		Help:   "The secret access key of the queue or the bucket: @FILE or - for stdin.",
	},

	{
		Kind:        S3,
		Only:        ToEndpoint,
		Name:        "bucket",
		High:        63,
		Beside:      true,
		Label:       "Bucket",
		Placeholder: "acme-events",
		Hint:        mustExist,
		Flag:        "s3",
		Names:       true,
		Help:        "A bucket of Amazon S3, or of a server that is compatible with it.",
	},
	{
		Kind:        S3,
		Only:        ToEndpoint,
		Name:        "region",
		High:        32,
		Beside:      true,
		Label:       "Region",
		Placeholder: "eu-west-1",
		Flag:        "region",
	},
	{
		Kind:        S3,
		Only:        ToEndpoint,
		Name:        "endpoint_url",
		Optional:    true,
		High:        2048,
		Label:       "Endpoint URL",
		Placeholder: "https://s3.example.com",
		Hint:        "Leave empty for Amazon S3.",
		Flag:        "endpoint-url",
		Names:       true,
		Help:        "The server of the --s3 bucket, if it isn't Amazon's.",
	},
	{
		Kind:  S3,
		Only:  ToEndpoint,
		Name:  "path_style",
		Type:  Switch,
		Label: "Path-style addresses",
		Hint:  "The bucket is in the path and not in the host name. Most compatible servers need it.",
		Flag:  "path-style",
		Names: true,
		Help:  "Whether the bucket is in the path and not in the host name. Default: on with --endpoint-url.",
	},
	{
		Kind:        S3,
		Only:        ToEndpoint,
		Name:        "key_template",
		Optional:    true,
		High:        maxS3Key,
		Label:       "Names of objects",
		Placeholder: S3Key,
		Hint:        "With {id}, and if you like {endpoint}, {date}, {year}, {month}, {day}, and {hour}. The extension is added.",
		Flag:        "key-template",
		Names:       true,
		Help:        "Names of objects in the --s3 bucket. Default: " + S3Key + ".",
	},
	{
		Kind:  S3,
		Only:  ToEndpoint,
		Name:  "gzip",
		Type:  Switch,
		Label: "Compress with gzip",
		Flag:  "gzip",
		Names: true,
		Help:  "Compress objects in the --s3 bucket.",
	},
	{Kind: S3, Only: ToEndpoint, Name: "access_key_id", Beside: true, High: 128, Label: "Access key ID", Flag: "access-key-id"},
	{Kind: S3, Only: ToEndpoint, Name: "secret_access_key", Beside: true, Secret: true, Label: "Secret access key", Flag: "secret-access-key"},
}

func mechanisms() []Option {
	out := []Option{{Label: "None"}}
	for _, m := range SASLMechanisms() {
		out = append(out, Option{Label: "SASL " + m, Value: m})
	}
	return out
}

// ConnectionFields are the rows of a kind for a use; of an empty kind, those of all.
func ConnectionFields(k Kind, u Use) (rows []ConnectionField) {
	for _, f := range connectionFields {
		if (f.Kind == k || k == "") && (f.Only == "" || f.Only == u) {
			rows = append(rows, f)
		}
	}
	return rows
}

// Form is the name of the field in forms.
func (f ConnectionField) Form() string {
	return string(f.Kind) + "_" + strings.ReplaceAll(f.Name, ".", "_")
}

// API is the name of the field in errors.
func (f ConnectionField) API() string { return string(f.Kind) + "." + f.Name }

// parts are the object in the connection that has the field, empty for the connection itself, and its name there.
func (f ConnectionField) parts() (object, name string) {
	if object, name, in := strings.Cut(f.Name, "."); in {
		return object, name
	}
	return "", f.Name
}

// Put writes a value into a connection as the API has it. An object whose first field is empty is null.
func (f ConnectionField) Put(connection map[string]any, value any) {
	object, name := f.parts()
	if object == "" {
		connection[name] = value
		return
	}
	if f.Type == Choice && (value == "" || value == "none") {
		connection[object] = nil
		return
	}
	into, is := connection[object].(map[string]any)
	if _, null := connection[object]; null && !is {
		return
	} else if !is {
		into = map[string]any{}
		connection[object] = into
	}
	into[name] = value
}

// ConnectionText is a connection as forms have it, by the names of fields in forms. shown is the connection as the API
// shows it; nil: there is none yet. A secret that is stored has the marker.
func ConnectionText(k Kind, u Use, shown any) map[string]string {
	values := map[string]string{}
	connection, _ := shown.(map[string]any)
	for _, f := range ConnectionFields(k, u) {
		object, name := f.parts()
		from := connection
		if object != "" {
			from = nil
			if in, is := connection[object].(map[string]string); is {
				from = map[string]any{}
				for name, value := range in {
					from[name] = value
				}
			}
		}
		switch v := from[name].(type) {
		case string:
			values[f.Form()] = v
		case []string:
			values[f.Form()] = strings.Join(v, "\n")
		case bool:
			values[f.Form()] = onOff(v)
		case nil:
			switch {
			case f.Secret && from != nil:
				values[f.Form()] = Marker
			case f.Type == Switch && connection == nil:
				values[f.Form()] = onOff(f.On)
			}
		}
	}
	return values
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// ConnectionJSON is what a form has of a connection, as the API takes it.
func ConnectionJSON(k Kind, u Use, get func(name string) string) json.RawMessage {
	connection := map[string]any{}
	for _, f := range ConnectionFields(k, u) {
		switch text := get(f.Form()); f.Type {
		case List:
			f.Put(connection, Split(text))
		case Switch:
			f.Put(connection, text != "" && text != "off")
		case Text:
			if !f.Secret {
				text = strings.TrimSpace(text)
			}
			f.Put(connection, text)
		default:
			f.Put(connection, text)
		}
	}
	out, _ := json.Marshal(connection) // texts and booleans: can't fail
	return out
}

// ConnectionForm is the name in forms of a field of a connection, by its name in errors; empty: there is none. The
// connection as a whole is its first field.
func ConnectionForm(field string) string {
	i := slices.IndexFunc(connectionFields, func(f ConnectionField) bool { return f.API() == field || string(f.Kind) == field })
	if i < 0 {
		return ""
	}
	return connectionFields[i].Form()
}

// IsConnectionSecret reports whether a form's field of a name is a secret of a connection.
func IsConnectionSecret(form string) bool {
	return slices.ContainsFunc(connectionFields, func(f ConnectionField) bool { return f.Secret && f.Form() == form })
}
