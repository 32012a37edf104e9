package send

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/domain/endpoint"
	"posthorn/domain/source"
)

const (
	rabbitOpen = 15 * time.Second
	// how many bytes a broker can send before what it sent is received
	rabbitMaxUnread = 2 * source.MaxMessage
)

// rabbitReceiver consumes a queue by a connection of its own.
type rabbitReceiver struct {
	connector  *publisher
	queue      string
	most       int
	meter      *meter
	conn       *amqp.Connection
	channel    *amqp.Channel
	closed     chan *amqp.Error
	deliveries <-chan amqp.Delivery
}

func newRabbitReceiver(t *rabbitTransport, to *endpoint.RabbitMQConnection, most int) (*rabbitReceiver, error) {
	p, err := t.newPublisher("", to)
	if err != nil {
		return nil, err
	}
	r := &rabbitReceiver{connector: p, queue: to.RoutingKey, most: most, meter: newMeter()}
	p.reads = func(c net.Conn) net.Conn { return &meteredConn{Conn: c, meter: r.meter} }
	return r, nil
}

func (r *rabbitReceiver) Open(ctx context.Context, _ Begin) error {
	bounded, cancel := context.WithTimeout(ctx, rabbitOpen)
	defer cancel()
	var err error
	if r.conn, err = r.connector.open(bounded); err != nil {
		return receiveError(rabbitSaid(err))
	}
	// The client waits for a broker's response without a bound.
	stop := context.AfterFunc(bounded, func() { _ = r.conn.CloseDeadline(time.Now()) })
	defer stop()
	if r.channel, err = r.conn.Channel(); err != nil {
		return receiveError(rabbitSaid(err))
	}
	r.closed = r.channel.NotifyClose(make(chan *amqp.Error, 1))
	if err = r.channel.Qos(r.most, 0, false); err == nil {
		r.deliveries, err = r.channel.Consume(r.queue, "", false, false, false, false, nil)
	}
	if err != nil {
		return r.failed(err)
	}
	return nil
}

// failed describes an error, by what the broker said as it closed the channel.
func (r *rabbitReceiver) failed(err error) error {
	select {
	case e := <-r.closed:
		if e != nil {
			err = e
		}
	default:
	}
	return receiveError(rabbitSaid(err))
}

// errLargeMessage says that a message is larger than any that is taken.
var errLargeMessage = &ReceiveError{fmt.Sprintf("the first message of the queue is larger than %d MiB. Remove it from the queue", source.MaxMessage>>20)}

func (r *rabbitReceiver) Receive(ctx context.Context, wait time.Duration) (messages []source.Message, _ source.Moves, err error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	size := 0
	for size < source.MaxMessage && len(messages) < r.most {
		var d amqp.Delivery
		var open bool
		if len(messages) > 0 {
			select {
			case d, open = <-r.deliveries:
			default:
				r.meter.reset()
				return messages, nil, nil
			}
		} else {
			select {
			case d, open = <-r.deliveries:
			case <-waiting.Done():
				if r.meter.isFull() {
					return nil, nil, errLargeMessage
				}
				return nil, nil, nil
			}
		}
		if !open {
			err = errors.New("closed")
			break
		}
		size += len(d.Body)
		messages = append(messages, rabbitReceived(d, r.queue))
	}
	r.meter.reset()
	if err != nil && len(messages) == 0 {
		if !r.channel.IsClosed() {
			return nil, nil, &ReceiveError{"the broker ended the consumer: the queue was deleted, or moved to another node"}
		}
		return nil, nil, r.failed(err)
	}
	return messages, nil, nil
}

// rabbitReceived is a delivery of a broker as a message.
func rabbitReceived(d amqp.Delivery, queue string) source.Message {
	m := source.Message{
		ID:          strings.ToValidUTF8(d.MessageId, "\uFFFD"),
		Type:        strings.ToValidUTF8(d.Type, "\uFFFD"),
		Key:         strings.ToValidUTF8(d.RoutingKey, "\uFFFD"),
		Queue:       queue,
		Redelivered: d.Redelivered,
		Handle:      d.DeliveryTag,
	}
	if !d.Timestamp.IsZero() && d.Timestamp.Year() < 10_000 {
		m.Time = new(d.Timestamp.UTC())
	}
	if len(d.Headers) > 0 {
		m.Headers = make(map[string]string, len(d.Headers))
	}
	for name, value := range d.Headers {
		if text, is := value.(string); is {
			m.Headers[name] = strings.ToValidUTF8(text, "\uFFFD")
		} else if text, err := json.Marshal(value); err == nil {
			m.Headers[name] = string(text)
		}
	}
	m.SetBody(d.Body)
	return m
}

// Acknowledge acknowledges everything up to the last message. The messages before it were acknowledged by earlier
// calls.
func (r *rabbitReceiver) Acknowledge(_ context.Context, messages []source.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := r.channel.Ack(messages[len(messages)-1].Handle.(uint64), true); err != nil {
		return r.failed(err)
	}
	return nil
}

// Waiting asks on a channel of its own: a broker closes the channel of a question that it rejects.
func (r *rabbitReceiver) Waiting(ctx context.Context) (int64, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.conn.CloseDeadline(time.Now()) })
	defer stop()
	c, err := r.conn.Channel()
	if err != nil {
		return 0, receiveError(rabbitSaid(err))
	}
	defer func() { _ = c.Close() }()
	q, err := c.QueueDeclarePassive(r.queue, true, false, false, false, nil)
	if err != nil {
		return 0, receiveError(rabbitSaid(err))
	}
	return int64(q.Messages), nil
}

func (r *rabbitReceiver) Close() {
	r.meter.end()
	if r.conn != nil {
		_ = r.conn.CloseDeadline(time.Now().Add(rabbitGoodbye))
	}
}

// meter bounds what a broker sends before it is received: it ignores how many messages it should send, or sends large
// ones. Reading goes on when something was received.
type meter struct {
	mu    sync.Mutex
	free  *sync.Cond
	bytes int
	ended bool
}

func newMeter() *meter {
	m := &meter{}
	m.free = sync.NewCond(&m.mu)
	return m
}

func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.bytes >= rabbitMaxUnread && !m.ended {
		m.free.Wait()
	}
	m.bytes += n
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes = 0
	m.free.Broadcast()
}

func (m *meter) isFull() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes >= rabbitMaxUnread
}

func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.free.Broadcast()
}

type meteredConn struct {
	net.Conn
	meter *meter
}

func (c *meteredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.add(n)
	return n, err
}
