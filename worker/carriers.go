package worker

import (
	"context"
	"net"

	"posthorn/db"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// carrier takes deliveries to the endpoints of one kind. It holds to the endpoint's time-out whatever the other side does,
// never sends twice on its own account what has an outcome, and asks the guard before it connects to anything.
type carrier interface {
	// aim reads what carrying to an endpoint takes, once per configuration. The error is for operators; it names no secret.
	aim(s endpoint.Settings) (any, error)
	// carry makes one attempt, and writes into it what the other side said and how long each phase took.
	carry(ctx context.Context, t *target, p *parcel, a *db.AttemptRecord) delivery.Result
	// prove sends a verification. The detail is for the endpoint's owner.
	prove(ctx context.Context, t *target, p *parcel, c challenge) (status int, detail string, proven bool)
	// close ends what is kept open and idle.
	close()
}

// carriers is what takes deliveries to each kind of endpoint: a kind more is a file beside this one and a row here
// (docs/adr, "A kind of endpoint is a file and a row").
var carriers = map[endpoint.Kind]func(*guard) carrier{
	endpoint.HTTP:  func(g *guard) carrier { return newHTTPCarrier(g) },
	endpoint.Kafka: func(g *guard) carrier { return newKafkaCarrier(g) },
	endpoint.Inbox: func(g *guard) carrier { return newInboxCarrier(g) },
}

// parcel is a message rendered and signed, ready to go: the same whatever takes it.
type parcel struct {
	message signature.Message
	key     string // the event's; empty: none
	body    []byte // must not be changed
	headers []signature.Header
}

// challenge is what an endpoint proves itself with.
type challenge struct {
	mode string // how the endpoint wants to be asked
	text string
}

func newCarriers(policy egress.Policy) (map[endpoint.Kind]carrier, *guard) {
	g := &guard{policy: policy, resolver: &net.Resolver{PreferGo: true}}
	all := make(map[endpoint.Kind]carrier, len(carriers))
	for kind, make := range carriers {
		all[kind] = make(g)
	}
	return all, g
}
