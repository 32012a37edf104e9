// Package source has the rules of sources: queues of a tenant's own whose messages become events (docs/sources.md).
package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

// The bounds.
const (
	MaxSources = 10 // of a tenant
	maxName    = 100
)

// Where the first read of a topic begins.
const (
	Oldest = "oldest"
	Newest = "newest"
)

// Kinds are the kinds of sources, under the names of the kinds of endpoints.
func Kinds() []endpoint.Kind { return []endpoint.Kind{endpoint.Kafka, endpoint.RabbitMQ, endpoint.SQS} }

// Settings is what a tenant says of a source.
type Settings struct {
	Name       string // of which a tenant has each once
	Kind       endpoint.Kind
	Connection endpoint.Connection // of RabbitMQ, the routing key is the name of the queue
	URL        string              // the connection as people see it; Check sets it
	Start      string              // of Kafka; else empty
	Mapping    string
}

// Queue is the name of the topic or the queue.
func (s Settings) Queue() string {
	switch c := s.Connection.(type) {
	case *endpoint.KafkaConnection:
		return c.Topic
	case *endpoint.RabbitMQConnection:
		return c.RoutingKey
	case *endpoint.SQSConnection:
		return c.QueueURL[strings.LastIndexByte(c.QueueURL, '/')+1:]
	}
	return ""
}

// Moved reports whether two settings lead to different queues.
func (s Settings) Moved(other Settings) bool {
	return s.Connection == nil || other.Connection == nil || s.Connection.Place() != other.Connection.Place()
}

// Patch changes the fields that are given as JSON. Check validates the result. A stored credential is never sent to
// another server.
func (s *Settings) Patch(given map[string]json.RawMessage) error {
	for name, into := range map[string]*string{"name": &s.Name, "start": &s.Start, "mapping": &s.Mapping} {
		if raw, is := given[name]; is {
			*into = ""
			_ = json.Unmarshal(raw, into) // null: none
		}
	}
	for _, kind := range Kinds() {
		raw, is := given[string(kind)]
		if !is {
			continue
		}
		if kind == endpoint.RabbitMQ {
			raw = renamed(raw, "queue", "routing_key")
		}
		c := endpoint.Settings{Kind: s.Kind, Connection: s.Connection}
		if err := c.Patch(map[string]json.RawMessage{string(kind): raw}); err != nil {
			return ofSource(err)
		}
		s.Connection = c.Connection
	}
	return nil
}

// Shown is the connection as JSON shows it, without credentials.
func (s Settings) Shown() any {
	shown := endpoint.Settings{Kind: s.Kind, Connection: s.Connection}.Shown()[string(s.Kind)]
	if m, is := shown.(map[string]any); is && s.Kind == endpoint.RabbitMQ {
		m["queue"] = m["routing_key"]
		delete(m, "routing_key")
		delete(m, "exchange")
	}
	return shown
}

// renamed is a JSON object with another name of a field.
func renamed(raw json.RawMessage, from, to string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields[from] == nil {
		return raw
	}
	fields[to] = fields[from]
	delete(fields, from)
	out, _ := json.Marshal(fields) // was JSON
	return out
}

// ofSource says of a source what the rules of endpoints say of an endpoint.
func ofSource(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	return fault.InvalidFields(ofSources(f.Fields))
}

func ofSources(fields []fault.Field) []fault.Field {
	for i := range fields {
		fields[i].Detail = strings.NewReplacer("an endpoint", "a source", "endpoint", "source").Replace(fields[i].Detail)
	}
	return fields
}

// Check validates settings and returns them as they are stored. The error is a *fault.Error that names every wrong
// field.
func (s Settings) Check(policy egress.Policy) (Settings, error) {
	var wrong []fault.Field
	refuse := func(field, code, detail string) {
		wrong = append(wrong, fault.Field{Name: field, Code: code, Detail: detail})
	}
	s.Name = strings.TrimSpace(s.Name)
	if n := utf8.RuneCountInString(s.Name); n == 0 || n > maxName || !characters.Lines(s.Name) || strings.ContainsAny(s.Name, "\r\n\t") {
		refuse("name", "source_name_malformed", fmt.Sprintf("A source needs a name of 1 to %d characters, without control characters.", maxName))
	}
	switch {
	case s.Kind != endpoint.Kafka && s.Start != "":
		refuse("start", "source_start_unknown", "Only a source of the kind kafka has start. Leave it out: a queue is read from its oldest message on.")
	case s.Kind == endpoint.Kafka && s.Start == "":
		s.Start = Oldest
	case s.Kind == endpoint.Kafka && s.Start != Oldest && s.Start != Newest:
		refuse("start", "source_start_unknown", "start must be oldest or newest.")
	}
	if strings.TrimSpace(s.Mapping) == "" {
		s.Mapping = DefaultMapping
	}
	if _, err := Compile(s.Mapping); err != nil {
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid {
			return s, err
		}
		wrong = append(wrong, f.Fields...)
	}
	wrong = append(wrong, s.checkConnection(policy)...)
	if len(wrong) > 0 {
		return Settings{}, fault.InvalidFields(wrong)
	}
	return s, nil
}

func (s *Settings) checkConnection(policy egress.Policy) []fault.Field {
	name := string(s.Kind)
	if s.Connection == nil {
		for _, kind := range Kinds() {
			if kind == s.Kind {
				return []fault.Field{{Name: name, Code: "source_connection_missing", Detail: "A source of the kind " + name + " needs the field " + name + " with its connection."}}
			}
		}
		return []fault.Field{{Name: "kind", Code: "source_kind_unknown", Detail: "kind must be kafka, rabbitmq, or sqs."}}
	}
	if r, is := s.Connection.(*endpoint.RabbitMQConnection); is {
		if n := len(r.RoutingKey); n == 0 || n > endpoint.MaxRabbitMQName || !characters.Lines(r.RoutingKey) || strings.ContainsAny(r.RoutingKey, "\r\n\t") {
			return []fault.Field{{
				Name:   "rabbitmq.queue",
				Code:   "source_queue_malformed",
				Detail: fmt.Sprintf("The name of the queue must have 1 to %d bytes of UTF-8, without control characters.", endpoint.MaxRabbitMQName),
			}}
		}
	}
	checked, wrong := endpoint.CheckBroker(s.Kind, s.Connection, policy)
	s.Connection, s.URL = checked.Connection, checked.URL
	return ofSources(wrong)
}

// CheckRoom says whether a tenant with so many sources can have one more.
func CheckRoom(has int) error {
	if has < MaxSources {
		return nil
	}
	return fault.New(fault.Conflict, "sources_limit", fmt.Sprintf("A tenant can have %d sources. Delete one that you don't need.", MaxSources))
}

// ErrNameTaken says that a tenant has another source of a name.
var ErrNameTaken = fault.New(fault.Conflict, "source_name_taken", "This tenant has a source of this name. Choose another name, or change the existing source.")
