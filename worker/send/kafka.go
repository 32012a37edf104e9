package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// kafkaTransport writes records to topics: acknowledged by all replicas in sync, by an idempotent producer, one for
// each endpoint that has something to send.
//
// An attempt ends with its endpoint's timeout, whatever its client still does. A record with an unknown result is then
// withdrawn and retried by the schedule, so it can be in the topic twice, with the same id. Older records never follow
// newer ones of their key: an ordered lane has one record of a key in flight, and after a withdrawal the producer
// continues under another epoch, so that brokers reject records that are still in transit.
type kafkaTransport struct {
	guard     *guard
	roots     *x509.CertPool // nil: the system's
	sessions  tls.ClientSessionCache
	producers producers[*producer]
}

func newKafkaTransport(g *guard) *kafkaTransport {
	k := &kafkaTransport{guard: g, sessions: tls.NewLRUClientSessionCache(256)}
	k.producers.open = k.newProducer
	return k
}

func (k *kafkaTransport) configure(s endpoint.Settings, _ *egress.Proxy) (any, error) {
	to, ok := s.Connection.(*endpoint.KafkaConnection)
	if !ok || to == nil {
		return nil, errors.New("the endpoint has no Kafka connection")
	}
	return to, nil
}

func (k *kafkaTransport) close() { k.producers.closeAll() }

func (k *kafkaTransport) deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result {
	return k.write(ctx, t, p, a.StartedAt).record(a)
}

func (k *kafkaTransport) verify(ctx context.Context, t *Destination, p *request, _ challenge) (status int, detail string, verified bool) {
	return k.write(ctx, t, p, time.Now()).verified("topic")
}

func (k *kafkaTransport) write(ctx context.Context, t *Destination, p *request, at time.Time) said {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	to := t.to.(*endpoint.KafkaConnection)
	pr, err := k.producers.borrow(t.Endpoint, to)
	if err != nil {
		return unusable(began)
	}
	defer k.producers.giveBack(pr)
	s := pr.write(bounded, func() *kgo.Record { return kafkaRecord(t, p, to.Topic, at) })
	if ctx.Err() != nil && s.result.Status != 200 {
		s = interrupted()
	}
	if s.result.Status == 404 {
		k.producers.replace(pr) // otherwise another topic of the same name would be mistaken for the deleted one
	}
	s.took, s.spent = time.Since(began), pr.spentSince(began)
	return s
}

// kafkaRecord converts a message to a record: the body is the value, the event's key the key, and the headers are
// record headers with names in lower case, since the names of record headers are case-sensitive.
func kafkaRecord(t *Destination, p *request, topic string, at time.Time) *kgo.Record {
	r := &kgo.Record{
		Topic:     topic,
		Value:     p.body,
		Timestamp: at,
		Headers: make([]kgo.RecordHeader, 0, len(p.headers)+
			len(t.headers)+1),
	}
	if p.key != "" {
		r.Key = []byte(p.key)
	}
	add := func(h signature.Header) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: strings.ToLower(h.Name), Value: []byte(h.Value)})
	}
	for _, h := range t.headers {
		add(h)
	}
	add(signature.Header{Name: "content-type", Value: p.contentType})
	for _, h := range p.made {
		add(h)
	}
	for _, h := range p.headers {
		add(h)
	}
	return r
}
