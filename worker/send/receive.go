package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/source"
)

// Begin says from which record on each partition of a topic is read, given those that there are.
type Begin func(ctx context.Context, of map[int32]source.Bounds) (next map[int32]int64, err error)

// Receiver reads the messages of one queue or topic. One goroutine uses it. Its errors are *ReceiveError, those of the
// context, and those of begin.
type Receiver interface {
	// Open connects.
	Open(ctx context.Context, begin Begin) error
	// Receive waits for messages for so long. Without messages it returns none and no error. moves is nil for a queue.
	Receive(ctx context.Context, wait time.Duration) (messages []source.Message, moves source.Moves, err error)
	// Acknowledge tells the broker that what Receive returned last is stored.
	Acknowledge(ctx context.Context, messages []source.Message) error
	// Waiting is how many messages the broker has that were not received.
	Waiting(ctx context.Context) (int64, error)
	// Close disconnects. A broker delivers again what was not acknowledged.
	Close()
}

// ReceiveError says why a queue can't be read, for its tenant.
type ReceiveError struct{ text string }

func (e *ReceiveError) Error() string { return e.text }

// receiveError describes what a broker said. The texts about sending speak of acknowledgments.
func receiveError(s said) error {
	text := s.text
	for _, of := range []string{" before an acknowledgment arrived", " before a confirmation arrived"} {
		text = strings.TrimSuffix(text, of)
	}
	if strings.HasSuffix(text, " in time") && s.vague {
		text = "the broker did not respond in time"
	}
	var more struct {
		Description string `json:"description"`
	}
	if _ = json.Unmarshal(s.excerpt, &more); more.Description != "" {
		text += ": " + strings.TrimRight(delivery.Clip(more.Description, 300), ".")
	}
	return &ReceiveError{text}
}

// newReceiver returns a receiver of at most so many messages at once. The sample of a queue is received so that the
// broker delivers it again immediately.
func newReceiver(of map[endpoint.Kind]transport, s source.Settings, most int, sample bool) (Receiver, error) {
	switch to := s.Connection.(type) {
	case *endpoint.KafkaConnection:
		return newKafkaReceiver(of[endpoint.Kafka].(*kafkaTransport), to, most)
	case *endpoint.RabbitMQConnection:
		return newRabbitReceiver(of[endpoint.RabbitMQ].(*rabbitTransport), to, most)
	case *endpoint.SQSConnection:
		return &sqsReceiver{of: of[endpoint.SQS].(*sqsTransport), to: to, most: most, sample: sample}, nil
	}
	return nil, errors.New("the source has no connection")
}

// NewReceiver returns a receiver of a source. It is not connected yet.
func (s *Sender) NewReceiver(of source.Settings) (Receiver, error) {
	return newReceiver(s.transports, of, source.Batch, false)
}

// sampleTime is how long a sample can take.
const sampleTime = 20 * time.Second

// Sample receives one message of a queue without acknowledging it, or the newest record of a topic; nil: there is none.
// If the queue can't be read, the error is a *fault.Error with the code source_unreachable.
func (ts *Tester) Sample(ctx context.Context, of source.Settings) (*source.Message, error) {
	m, err := ts.sample(ctx, of)
	var failed *ReceiveError
	if errors.As(err, &failed) {
		err = fault.New(fault.Invalid, "source_unreachable", "Reading failed: "+failed.Error()+".")
	}
	return m, err
}

func (ts *Tester) sample(ctx context.Context, of source.Settings) (*source.Message, error) {
	select {
	case ts.slots <- struct{}{}:
		defer func() { <-ts.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	transports := map[endpoint.Kind]transport{}
	for _, kind := range source.Kinds() {
		transports[kind] = ts.transport(kind)
		defer transports[kind].close()
	}
	r, err := newReceiver(transports, of, 1, true)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	bounded, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	empty := false
	err = r.Open(bounded, func(_ context.Context, of map[int32]source.Bounds) (map[int32]int64, error) {
		next := newest(of)
		empty = next == nil
		return next, nil
	})
	if err != nil || empty {
		return nil, inTime(bounded, err)
	}
	messages, _, err := r.Receive(bounded, source.Wait)
	for i := range messages {
		if !messages[i].Control {
			return &messages[i], nil
		}
	}
	return nil, inTime(bounded, err)
}

func (ts *Tester) transport(kind endpoint.Kind) transport { return transports[kind](ts.guard) }

// newest are places of which one is the newest record of a topic; nil: it has none.
func newest(of map[int32]source.Bounds) map[int32]int64 {
	found := false
	next := make(map[int32]int64, len(of))
	for partition, b := range of {
		if next[partition] = b.End; b.End > b.First && !found {
			next[partition], found = b.End-1, true
		}
	}
	if !found {
		return nil
	}
	return next
}

// inTime is an error, or that there was not enough time.
func inTime(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &ReceiveError{fmt.Sprintf("the broker did not respond within %d seconds", int(sampleTime.Seconds()))}
	}
	return err
}
