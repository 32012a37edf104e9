package send

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"posthorn/domain/endpoint"
)

// maxIterations bounds the work that an unauthenticated broker can request; Kafka itself uses 4,096 to 16,384.
const maxIterations = 100_000

var errIterations = errors.New("the broker asks for more SCRAM iterations than are made here (100,000)")

// mechanism is how an endpoint's connections authenticate.
func mechanism(s endpoint.SASL) sasl.Mechanism {
	switch s.Mechanism {
	case endpoint.SASLPlain:
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()
	case endpoint.SASLSHA256:
		return boundedSCRAM{scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()}
	}
	return boundedSCRAM{scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()}
}

// boundedSCRAM rejects a server's first message that requests too much work.
type boundedSCRAM struct{ sasl.Mechanism }

func (b boundedSCRAM) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := b.Mechanism.Authenticate(ctx, host)
	return boundedSession{session}, first, err
}

type boundedSession struct{ sasl.Session }

func (b boundedSession) Challenge(said []byte) (bool, []byte, error) {
	for part := range bytes.SplitSeq(said, []byte(",")) {
		if digits, ok := bytes.CutPrefix(part, []byte("i=")); ok {
			if n, err := strconv.Atoi(string(digits)); err != nil || n > maxIterations {
				return false, nil, errIterations
			}
		}
	}
	return b.Session.Challenge(said)
}
