package endpoint

import (
	"encoding/json"
	"fmt"
	"slices"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// Kind is how an endpoint's deliveries travel. It is chosen when the endpoint is made and stays.
type Kind string

// The kinds.
const (
	HTTP  Kind = "http"  // a POST to its URL
	Kafka Kind = "kafka" // a record in a topic
	Inbox Kind = "inbox" // a test inbox: a POST to this server's own receiver; made with its URL, which stays

	RabbitMQ Kind = "rabbitmq" // a message to an exchange
	SQS      Kind = "sqs"      // a message to a queue of Amazon SQS
	S3       Kind = "s3"       // an object in a bucket of Amazon S3, of several events
)

// Broker reports whether deliveries of a kind are messages to a broker, or objects in a store, which acknowledges each
// one. No receiver responds: there is no challenge, no HTTP method, and no filter in front.
func (k Kind) Broker() bool { return k == Kafka || k == RabbitMQ || k == SQS || k == S3 }

// Connection is what a kind needs beyond the URL that people see, credentials among it. It is stored sealed, as its
// JSON.
type Connection interface {
	Place() string     // where it leads: what has another place has proved nothing yet
	Clone() Connection // shares nothing with it
}

// kinds has a row for each kind, the default first: how its settings are checked, which also makes their URL, and how
// its connection is read (nil: it has none).
var kinds = []struct {
	kind  Kind
	check func(*collector, *Settings, egress.Policy)
	read  func([]byte) (Connection, error)
}{
	{HTTP, (*collector).httpURL, nil},
	{Kafka, (*collector).kafka, readKafka},
	{RabbitMQ, (*collector).rabbitmq, readRabbitMQ},
	{SQS, (*collector).sqs, readSQS},
	{S3, (*collector).s3, readS3},
	{Inbox, (*collector).ownURL, nil},
	{Feed, (*collector).feed, nil},
}

// Kinds lists the kinds that something is sent to, the default first.
func Kinds() []Kind {
	return slices.DeleteFunc(created(), func(k Kind) bool { return k.Pulls() })
}

// created are the kinds that an endpoint can be created with.
func created() []Kind {
	out := make([]Kind, len(kinds))
	for i, k := range kinds {
		out[i] = k.kind
	}
	return out
}

// readConnection reads what is given of a kind's connection. unwanted is the code of an endpoint of another kind.
func (s *Settings) readConnection(k Kind, unwanted string, raw json.RawMessage, into any) error {
	name := string(k)
	if s.Kind != k {
		return fault.InvalidField(name, unwanted,
			"Only an endpoint of kind "+name+" can have the field "+name+". Leave it out, or create an endpoint of that kind.")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.InvalidField(name, "body_malformed", name+" has another shape.")
	}
	return nil
}

// ReadConnection reads what a kind's connection was stored as. A kind that this program does not know has none.
func (k Kind) ReadConnection(text []byte) (Connection, error) {
	for _, row := range kinds {
		if row.kind == k && row.read != nil && len(text) > 0 {
			return row.read(text)
		}
	}
	return nil, nil
}

// Moved reports whether two settings lead to different places.
func (s Settings) Moved(other Settings) bool {
	place := func(c Connection) string {
		if c == nil {
			return ""
		}
		return c.Place()
	}
	return s.URL != other.URL || place(s.Connection) != place(other.Connection)
}

// travel checks what the endpoint's kind asks for.
func (c *collector) travel(s *Settings, policy egress.Policy) {
	for _, row := range kinds {
		if row.kind == s.Kind {
			row.check(c, s, policy)
			return
		}
	}
	c.refuse("kind", "kind_unknown", fmt.Sprintf("Unknown kind of endpoint. Use %s.", either(texts(created()))))
}

// ownURL lets the URL of an inbox be what it is: nothing is connected to by it.
func (*collector) ownURL(*Settings, egress.Policy) {}

// CheckURLStays refuses another URL, or another kind, for a test inbox, and that another endpoint becomes one.
func CheckURLStays(before, after Settings) error {
	if before.Kind != Inbox && after.Kind != Inbox || before.Kind == after.Kind && before.URL == after.URL {
		return nil
	}
	return fault.InvalidField("url", "inbox_url_fixed", "The URL of a test inbox can't be changed. Create an endpoint for the other URL.")
}

func (c *collector) httpURL(s *Settings, policy egress.Policy) {
	if u, err := policy.CheckURL(s.URL); err != nil {
		c.add(err)
	} else {
		s.URL = u.String()
	}
}
