package endpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/words"
)

// The bounds of a Kafka connection.
const (
	maxKafkaServers = 10
	maxKafkaTopic   = 249 // characters; Kafka's own bound
	maxSASLName     = 255 // bytes
	maxSASLPassword = 1024
)

// The ways to prove to a Kafka broker who is writing, under Kafka's names.
const (
	SASLPlain  = "PLAIN"
	SASLSHA256 = "SCRAM-SHA-256"
	SASLSHA512 = "SCRAM-SHA-512"
)

// SASLMechanisms are the ways.
func SASLMechanisms() []string { return []string{SASLSHA512, SASLSHA256, SASLPlain} }

// KafkaConnection says to which topic of which cluster an endpoint of the kind kafka writes.
type KafkaConnection struct {
	Servers []string `json:"servers"` // host:port, where the cluster is asked for its brokers
	Topic   string   `json:"topic"`
	TLS     bool     `json:"tls"`
	// certificates in PEM, by which alone its brokers' are judged; empty: by those that the machine trusts
	CA   string `json:"ca,omitempty"`
	SASL *SASL  `json:"sasl,omitempty"` // nil: the brokers ask for no proof
}

// SASL is with what an endpoint's connections prove who they are.
type SASL struct {
	Mechanism string `json:"mechanism"`
	Username  string `json:"username"`
	Password  string `json:"password"`
}

// Format keeps the password out of logs whatever the verb.
func (s SASL) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.Mechanism + " redacted")) }

// Address is the connection as people see it, as a URL: its first server and the topic.
func (k *KafkaConnection) Address() string { return "kafka://" + k.first() + "/" + k.Topic }

// Place is where the connection leads: what has another place has proved nothing yet.
func (k *KafkaConnection) Place() string { return strings.Join(k.Servers, ",") + "/" + k.Topic }

func (k *KafkaConnection) first() string {
	if len(k.Servers) == 0 {
		return ""
	}
	return k.Servers[0]
}

// Clone is a copy that shares nothing with k.
func (k *KafkaConnection) Clone() Connection {
	c := *k
	c.Servers = slices.Clone(k.Servers)
	if k.SASL != nil {
		s := *k.SASL
		c.SASL = &s
	}
	return &c
}

// errPasswordNeeded says that a stored password is not sent to whom it was not given for.
var errPasswordNeeded = fault.Field{
	Name:   "kafka.sasl.password",
	Code:   "kafka_password_needed",
	Detail: "Send the password again. The stored password is kept only if the servers, TLS, certificate, mechanism, and user name don't change.",
}

// Keep takes over the stored password where none is given, as long as it goes to whom it was given for, under the same
// name and no less protected. given is the connection that is asked for.
func (k *KafkaConnection) Keep(given *KafkaConnection) error {
	if given.SASL == nil || given.SASL.Password != "" && given.SASL.Password != Marker {
		return nil
	}
	if given.SASL.Password = ""; k == nil {
		return nil // Check asks for one
	}
	if k.SASL == nil || given.SASL.Mechanism != k.SASL.Mechanism || given.SASL.Username != k.SASL.Username ||
		given.TLS != k.TLS || tidyCA(given.CA) != tidyCA(k.CA) || !slices.Equal(given.Servers, k.Servers) {
		return fault.InvalidFields([]fault.Field{errPasswordNeeded})
	}
	given.SASL.Password = k.SASL.Password
	return nil
}

func readKafka(text []byte) (Connection, error) {
	var k KafkaConnection
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	return &k, nil
}

// kafka checks a topic's connection and makes the URL under which it is shown. An acknowledged record is proof enough
// that the endpoint wants it: no receiver could respond to a challenge.
func (c *collector) kafka(s *Settings, policy egress.Policy) {
	s.Verification = "simple"
	k, ok := s.Connection.(*KafkaConnection)
	if !ok || k == nil {
		c.refuse("kafka", "kafka_missing", "A kafka endpoint needs kafka.bootstrap_servers and kafka.topic.")
		return
	}
	c.kafkaServers(k, policy)
	switch {
	case k.Topic == "" || len(k.Topic) > maxKafkaTopic || k.Topic == "." || k.Topic == ".." || strings.ContainsFunc(k.Topic, notInTopic):
		c.refuse("kafka.topic", "kafka_topic_malformed", fmt.Sprintf(
			"A topic can have 1 to %d letters, digits, and the characters . _ -", maxKafkaTopic))
	case strings.HasPrefix(k.Topic, "__"):
		c.refuse("kafka.topic", "kafka_topic_malformed", "Topics that start with two underscores are internal to Kafka. Use another topic.")
	}
	c.brokerCA("kafka.ca_certificate", &k.CA, k.TLS, "Leave it out, or turn on tls.")
	if k.SASL != nil {
		c.sasl(*k.SASL)
	}
	s.URL = k.Address()
}

func (c *collector) kafkaServers(k *KafkaConnection, policy egress.Policy) {
	k.Servers = once(k.Servers)
	if len(k.Servers) == 0 || len(k.Servers) > maxKafkaServers {
		c.refuse("kafka.bootstrap_servers", "kafka_servers_count", fmt.Sprintf(
			"Add 1 to %d bootstrap servers, each as host:port; there are %d.", maxKafkaServers, len(k.Servers)))
		return
	}
	for i, server := range k.Servers {
		normal, err := policy.CheckServer("kafka.bootstrap_servers", server, k.TLS)
		if err != nil {
			c.add(err)
			return
		}
		k.Servers[i] = normal
	}
}

func notInTopic(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

func (c *collector) sasl(s SASL) {
	if !slices.Contains(SASLMechanisms(), s.Mechanism) {
		c.refuse("kafka.sasl.mechanism", "kafka_mechanism_unknown", "kafka.sasl.mechanism must be "+either(SASLMechanisms())+".")
	}
	for _, f := range []struct {
		field, name, text string
		most              int
	}{{"kafka.sasl.username", "user name", s.Username, maxSASLName}, {"kafka.sasl.password", "password", s.Password, maxSASLPassword}} {
		if f.text == "" || len(f.text) > f.most || !clean(f.text) || strings.ContainsAny(f.text, "\r\n\t") {
			c.refuse(f.field, "kafka_credentials_malformed", fmt.Sprintf("A %s must have 1 to %s bytes of UTF-8, without control characters.", f.name, words.Number(f.most)))
		}
	}
}
