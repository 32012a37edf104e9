package send

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"posthorn/domain/delivery"
)

// said is the result of a record.
type said struct {
	result  delivery.Result
	text    string // for the endpoint's owner, without an address
	excerpt []byte // the broker's response, as JSON
	vague   bool   // it says only that the attempt took too long, or too many tries
	took    time.Duration
	spent   spent
}

// final reports whether a failed connection can't be fixed by waiting.
func (s said) final() bool {
	return s.result.Failure == delivery.FailBlocked || s.result.Failure == delivery.FailTLS || s.result.Status == 401 ||
		s.result.Status == 403
}

// acknowledged is the result of a record that all replicas in sync have.
func acknowledged(r *kgo.Record) said {
	return said{result: delivery.OfKafka(""), excerpt: excerpt(map[string]any{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset})}
}

func excerpt(v any) []byte {
	text, _ := json.Marshal(v) // texts and numbers: can't fail
	return text
}

// saidOf describes an error of the client in plain words, without an address.
func saidOf(err error) said {
	var dial *dialError
	var broker *kerr.Error
	var network net.Error
	fail := func(f delivery.Failure, text string) said {
		return said{result: delivery.Result{Failure: f}, text: text}
	}
	switch {
	case err == nil:
		return said{result: delivery.OfKafka("")}
	case errors.As(err, &dial):
		return fail(dial.failure, dial.text)
	case errors.Is(err, errIterations):
		return fail(delivery.FailProtocol, errIterations.Error())
	case errors.As(err, &broker):
		return said{
			result:  delivery.OfKafka(broker.Message),
			text:    "the broker returned " + broker.Message,
			excerpt: excerpt(map[string]string{"error": broker.Message, "description": broker.Description}),
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrRecordRetries),
		errors.As(err, &network) && network.Timeout():
		s := fail(delivery.FailTimeout, "no acknowledgment in time")
		s.vague = true
		return s
	case errors.Is(err, kgo.ErrClientClosed):
		return fail(delivery.FailReset, "the endpoint's connection was changed before an acknowledgment arrived")
	}
	var first *kgo.ErrFirstReadEOF
	switch {
	case isTLS(err):
		return fail(delivery.FailTLS, tlsText(err, delivery.CertificateNotAsked))
	case errors.As(err, &first):
		return fail(delivery.FailReset, "the broker closed the connection at the first request: it probably requires TLS or SASL")
	case isClosed(err):
		return fail(delivery.FailReset, "the broker closed the connection before an acknowledgment arrived")
	}
	return fail(delivery.FailProtocol, "the server does not use Kafka's protocol, or uses an unsupported version")
}
