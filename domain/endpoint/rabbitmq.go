package endpoint

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/words"
)

// The bounds of a RabbitMQ connection.
const (
	MaxRabbitMQName     = 255  // bytes of a virtual host, an exchange, a routing key, and a user name; AMQP's own bound
	maxRabbitMQPassword = 1024 // bytes
)

// typePlace stands for the event type in a routing key.
const typePlace = "{type}"

// RabbitMQConnection says to which exchange of which broker an endpoint of the kind rabbitmq publishes.
type RabbitMQConnection struct {
	URL        string `json:"url"`         // amqps://host:port/vhost, the virtual host escaped
	Exchange   string `json:"exchange"`    // empty: the default one, which routes by the name of a queue
	RoutingKey string `json:"routing_key"` // {type} stands for the event type
	CA         string `json:"ca,omitempty"`
	Username   string `json:"username"`
	Password   string `json:"password"`
}

// Format keeps the password out of logs whatever the verb.
func (r RabbitMQConnection) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(r.Place() + " redacted"))
}

// Address is the connection as people see it, as a URL: the exchange in its virtual host, or the queue.
func (r *RabbitMQConnection) Address() string {
	name := r.Exchange
	if name == "" {
		name = r.RoutingKey
	}
	return r.URL + "/" + url.PathEscape(name)
}

// Place is where the connection leads.
func (r *RabbitMQConnection) Place() string { return r.URL + " " + r.Exchange + " " + r.RoutingKey }

// Clone is a copy.
func (r *RabbitMQConnection) Clone() Connection {
	c := *r
	return &c
}

// TLS reports whether the connection is encrypted.
func (r *RabbitMQConnection) TLS() bool { return strings.HasPrefix(r.URL, "amqps://") }

// Server is host:port, and the name of the virtual host, of a connection that was checked.
func (r *RabbitMQConnection) Server() (address, vhost string) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", ""
	}
	return u.Host, strings.TrimPrefix(u.Path, "/")
}

// Key is the routing key of an event of a type.
func (r *RabbitMQConnection) Key(eventType string) string {
	return strings.ReplaceAll(r.RoutingKey, typePlace, eventType)
}

// Keep keeps the stored password where none is given, as long as it goes to the broker that it was given for, under
// the same name and no less protected.
func (r *RabbitMQConnection) Keep(given *RabbitMQConnection) error {
	if given.Password != "" && given.Password != Marker {
		return nil
	}
	if given.Password = ""; r == nil {
		return nil // Check asks for one
	}
	if u, _ := amqpURL(given.URL); u != r.URL || given.Username != r.Username || tidyCA(given.CA) != tidyCA(r.CA) {
		return fault.InvalidField("rabbitmq.password", "rabbitmq_password_needed",
			"Send the password again. The stored password is kept only if the URL, certificate, and user name don't change.")
	}
	given.Password = r.Password
	return nil
}

func readRabbitMQ(text []byte) (Connection, error) {
	var r RabbitMQConnection
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// amqpURL is a broker's URL with its port and its virtual host; why says what is wrong with it.
func amqpURL(text string) (normal, why string) {
	const form = "Write the URL as amqps://host:5671/vhost, without a user name, a password, and parameters."
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "amqps" && u.Scheme != "amqp" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return text, form
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"amqps": "5671", "amqp": "5672"}[u.Scheme]
	}
	vhost, err := url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/"))
	switch {
	case err != nil || strings.Count(u.EscapedPath(), "/") > 1:
		return text, form + " Write a slash in the name of the virtual host as %2F."
	case vhost == "":
		vhost = "/" // the broker's default
	}
	if len(vhost) > MaxRabbitMQName || !clean(vhost) {
		return text, fmt.Sprintf("A virtual host has 1 to %d bytes of UTF-8, without control characters.", MaxRabbitMQName)
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port) + "/" + url.PathEscape(vhost), ""
}

// rabbitmq checks a broker's connection and makes the URL under which it is shown. A confirmed message is proof enough
// that the endpoint wants it.
func (c *collector) rabbitmq(s *Settings, policy egress.Policy) {
	s.Verification = "simple"
	r, ok := s.Connection.(*RabbitMQConnection)
	if !ok || r == nil {
		c.refuse("rabbitmq", "rabbitmq_missing", "A rabbitmq endpoint needs rabbitmq.url, rabbitmq.username, and rabbitmq.password.")
		return
	}
	var why string
	if r.URL, why = amqpURL(r.URL); why != "" {
		c.refuse("rabbitmq.url", "rabbitmq_url_malformed", why)
	} else {
		address, _ := r.Server()
		if _, err := policy.CheckServer("rabbitmq.url", address, r.TLS()); err != nil {
			c.add(err)
		}
	}
	if r.RoutingKey == "" {
		r.RoutingKey = typePlace
	}
	for _, f := range []struct {
		field, name, text string
		least, most       int
	}{
		{"exchange", "exchange", r.Exchange, 0, MaxRabbitMQName},
		{"routing_key", "routing key", r.Key(strings.Repeat("a", filter.MaxType)), 1, MaxRabbitMQName},
		{"username", "user name", r.Username, 1, MaxRabbitMQName},
		{"password", "password", r.Password, 1, maxRabbitMQPassword},
	} {
		if len(f.text) < f.least || len(f.text) > f.most || !clean(f.text) || strings.ContainsAny(f.text, "\r\n\t") {
			c.refuse("rabbitmq."+f.field, "rabbitmq_text_malformed", fmt.Sprintf(
				"The %s must have %d to %s bytes of UTF-8, without control characters.", f.name, f.least, words.Number(f.most)))
		}
	}
	c.brokerCA("rabbitmq.ca_certificate", &r.CA, r.TLS(), "Leave it out, or use an amqps:// URL.")
	s.URL = r.Address()
}

// setRabbitMQ changes an endpoint's connection. A stored password is never sent to another broker.
func setRabbitMQ(s *Settings, raw json.RawMessage) error {
	before, _ := s.Connection.(*RabbitMQConnection)
	after := &RabbitMQConnection{}
	if before != nil {
		*after = *before
		after.Password = ""
	}
	given := struct {
		URL        *string         `json:"url"`
		Exchange   *string         `json:"exchange"`
		RoutingKey *string         `json:"routing_key"`
		CA         json.RawMessage `json:"ca_certificate"`
		Username   *string         `json:"username"`
		Password   *string         `json:"password"`
	}{URL: &after.URL, Exchange: &after.Exchange, RoutingKey: &after.RoutingKey, Username: &after.Username, Password: &after.Password}
	if err := s.readConnection(RabbitMQ, "rabbitmq_unwanted", raw, &given); err != nil {
		return err
	}
	if len(given.CA) > 0 {
		after.CA = unquote(given.CA) // null: none
	}
	after.Exchange, after.RoutingKey = strings.TrimSpace(after.Exchange), strings.TrimSpace(after.RoutingKey)
	s.Connection = after
	return before.Keep(after)
}

// showRabbitMQ is the connection without the password.
func showRabbitMQ(s Settings) any {
	r, ok := s.Connection.(*RabbitMQConnection)
	if !ok {
		return nil
	}
	out := map[string]any{
		"url":            r.URL,
		"exchange":       r.Exchange,
		"routing_key":    r.RoutingKey,
		"username":       r.Username,
		"ca_certificate": nil,
	}
	if r.CA != "" {
		out["ca_certificate"] = r.CA
	}
	return out
}
