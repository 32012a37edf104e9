package send

import (
	"context"
	"net/url"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// transport delivers to the endpoints of one kind. It keeps the endpoint's timeout whatever the other side does, never
// sends again by itself once there is an outcome, and opens connections only through the guard.
type transport interface {
	// configure reads an endpoint's address, once for each configuration. The error is for operators and contains no
	// secret. Only requests of endpoints of kind http go through a proxy.
	configure(s endpoint.Settings, proxy *egress.Proxy) (any, error)
	// deliver makes one attempt, and records the response and the duration of each phase in it.
	deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result
	// verify sends a verification. The detail is for the endpoint's owner.
	verify(ctx context.Context, t *Destination, p *request, c challenge) (status int, detail string, verified bool)
	// close closes idle connections.
	close()
}

// transports has the transport of each kind. To add a kind, add a file beside this one and a row here
// (docs/adr/0010-kinds.md).
var transports = map[endpoint.Kind]func(*guard) transport{
	endpoint.HTTP:     func(g *guard) transport { return newHTTPTransport(g) },
	endpoint.Kafka:    func(g *guard) transport { return newKafkaTransport(g) },
	endpoint.RabbitMQ: func(g *guard) transport { return newRabbitTransport(g) },
	endpoint.SQS:      func(g *guard) transport { return newSQSTransport(g) },
	endpoint.S3:       func(g *guard) transport { return newS3Transport(g) },
	endpoint.Inbox:    func(g *guard) transport { return newInboxTransport(g) },
}

// request is a message rendered and signed, the same for every transport.
type request struct {
	message     signature.Message
	key         string // the event's ordering key; empty: none
	body        []byte // read-only
	contentType string
	headers     []signature.Header
	method      string                            // of HTTP; empty: POST
	made        []signature.Header                // by the endpoint's transformation
	parts       []id.UUID                         // the deliveries of an object
	signGet     func(*url.URL) []signature.Header // further headers if a GET is sent instead; of a verification alone
}

// challenge is the text that an endpoint has to echo to be verified.
type challenge struct {
	mode string // how the challenge is sent
	text string
	ask  Ask         // of the mode options
	rate *Permission // is set by the mode options
}

func newTransports(policy egress.Policy) (map[endpoint.Kind]transport, *guard) {
	g := newGuard(policy)
	all := make(map[endpoint.Kind]transport, len(transports))
	for kind, make := range transports {
		all[kind] = make(g)
	}
	return all, g
}
