package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// rabbitTransport publishes messages to exchanges: persistent, mandatory, and confirmed by the broker, by a connection
// for each endpoint that has something to send.
//
// An attempt ends with its endpoint's timeout, whatever the broker still does. A message with an unknown result is
// retried by the schedule, on another connection, so it can be in a queue twice, with the same id.
type rabbitTransport struct {
	guard     *guard
	roots     *x509.CertPool // nil: the system's
	sessions  tls.ClientSessionCache
	producers producers[*publisher]
}

func newRabbitTransport(g *guard) *rabbitTransport {
	r := &rabbitTransport{guard: g, sessions: tls.NewLRUClientSessionCache(256)}
	r.producers.open = r.newPublisher
	return r
}

func (r *rabbitTransport) configure(s endpoint.Settings, _ *egress.Proxy) (any, error) {
	to, ok := s.Connection.(*endpoint.RabbitMQConnection)
	if !ok || to == nil {
		return nil, errors.New("the endpoint has no RabbitMQ connection")
	}
	return to, nil
}

func (r *rabbitTransport) close() { r.producers.closeAll() }

func (r *rabbitTransport) deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result {
	return r.write(ctx, t, p, a.StartedAt).record(a)
}

func (r *rabbitTransport) verify(ctx context.Context, t *Destination, p *request, _ challenge) (status int, detail string, verified bool) {
	return r.write(ctx, t, p, time.Now()).verified("exchange")
}

func (r *rabbitTransport) write(ctx context.Context, t *Destination, p *request, at time.Time) said {
	began := time.Now()
	to := t.to.(*endpoint.RabbitMQConnection)
	pub, err := r.producers.borrow(t.Endpoint, to)
	if err != nil {
		return unusable(began)
	}
	defer r.producers.giveBack(pub)
	bounded, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	// In a goroutine of its own: a broker that is out of memory lets a write block.
	done := make(chan said, 1)
	go func() { done <- pub.write(bounded, to.Key(p.message.Type), rabbitMessage(t, p, at)) }()
	var s said
	select {
	case s = <-done:
	case <-bounded.Done():
		s = rabbitSaid(bounded.Err())
	}
	if s.vague && pub.blocked.Load() {
		s = rabbitBlocked()
	}
	if s.vague || s.result.Status == 503 {
		r.producers.replace(pub) // the next attempt does not wait behind what is still in transit
	}
	if ctx.Err() != nil && s.result.Status != 200 {
		s = interrupted()
	}
	s.took, s.spent = time.Since(began), pub.spentSince(began)
	return s
}

// rabbitMessage converts a message: the body is the body, and the headers are headers with names in lower case, since
// the names of AMQP headers are case-sensitive.
func rabbitMessage(t *Destination, p *request, at time.Time) amqp.Publishing {
	headers := make(amqp.Table, len(t.headers)+len(p.made)+len(p.headers))
	for _, some := range [][]signature.Header{t.headers, p.made, p.headers} {
		for _, h := range some {
			headers[strings.ToLower(h.Name)] = h.Value
		}
	}
	m := amqp.Publishing{
		Headers:      headers,
		ContentType:  p.contentType,
		DeliveryMode: amqp.Persistent,
		Timestamp:    at,
		Type:         p.message.Type,
		AppId:        "posthorn",
		Body:         p.body,
	}
	if id := p.message.EventID; len(id) <= endpoint.MaxRabbitMQName {
		m.MessageId = id // a longer one is in the headers and in the body alone
	}
	return m
}
