package send

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// The bounds of one producer.
const (
	kafkaMaxRecord   = 2 << 20   // bytes of a batch; brokers accept less, and say how much
	kafkaMaxAnswer   = 512 << 10 // bytes of a broker's response: the metadata of a topic of thousands of partitions
	kafkaMaxBuffered = 256       // records
	kafkaIdle        = 30 * time.Second
	kafkaMetadataMin = 250 * time.Millisecond
	kafkaRead        = 5 * time.Second // for a response that costs a broker no work
	// kafkaGrace is how long a record can still be acknowledged after one broker was unreachable or rejected the
	// connection: another broker can lead its partition.
	kafkaGrace = 500 * time.Millisecond
)

// producer is an endpoint's client, with what it knows about the brokers.
type producer struct {
	lease
	to     *endpoint.KafkaConnection
	dialer *brokerDialer
	many   *kgo.Client
	// known says that the topic existed and nothing has failed since. Otherwise an attempt first looks the topic up,
	// which shows immediately and exactly what is wrong.
	known atomic.Bool

	mu      sync.Mutex
	alone   *kgo.Client    // opened on demand
	dials   []dialled      // the last ones
	problem []noConnection // the last ones
}

// dialled is how long a connection took to open.
type dialled struct {
	at    time.Time
	spent spent
}

// noConnection is a failed connection.
type noConnection struct {
	at   time.Time
	said said
}

const kafkaRemembered = 16

func (k *kafkaTransport) newProducer(_ string, connection endpoint.Connection) (*producer, error) {
	to := connection.(*endpoint.KafkaConnection)
	dialer, err := newBrokerDialer(k.guard, to.TLS, to.CA, k.roots, k.sessions)
	if err != nil {
		return nil, err
	}
	p := &producer{to: to, dialer: dialer}
	p.many, err = p.newClient(kafkaMaxBuffered)
	return p, err
}

func (p *producer) newClient(buffered int) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(p.to.Servers...),
		kgo.ClientID("posthorn"), kgo.SoftwareNameAndVersion("posthorn", "1"), kgo.DisableClientMetrics(),
		kgo.Dialer(p.dial), kgo.WithHooks(p),
		kgo.ConnIdleTimeout(kafkaIdle), kgo.BrokerMaxReadBytes(kafkaMaxAnswer), kgo.FetchMaxBytes(kafkaMaxAnswer),
		kgo.RequestTimeoutOverhead(kafkaRead),
		kgo.RequestRetries(len(p.to.Servers) + 1), kgo.RetryBackoffFn(kafkaBackoff),
		kgo.MetadataMinAge(kafkaMetadataMin),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.AllowIdempotentProduceCancellation(), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(kafkaMaxRecord),
		kgo.MaxBufferedRecords(buffered),
		kgo.UnknownTopicRetries(2), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	}
	if s := p.to.SASL; s != nil {
		options = append(options, kgo.SASL(mechanism(*s)))
	}
	return kgo.NewClient(options...)
}

// kafkaBackoff is short: attempts are bounded, and the schedule does the waiting.
func kafkaBackoff(tries int) time.Duration {
	return min(100*time.Millisecond<<min(max(tries-1, 0), 4), time.Second)
}

func (p *producer) close() {
	p.many.Close()
	p.mu.Lock()
	alone := p.alone
	p.alone = nil
	p.mu.Unlock()
	if alone != nil {
		alone.Close()
	}
}

// dial connects to a configured server or to one that the cluster named: the guard checks both in the same way.
func (p *producer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, took, err := p.dialer.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.remember(took)
	return conn, nil
}

func (p *producer) remember(took spent) {
	d := dialled{at: time.Now(), spent: took}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dials) == kafkaRemembered {
		p.dials = append(p.dials[:0], p.dials[1:]...)
	}
	p.dials = append(p.dials, d)
}

// spentSince is how long the connections took that were opened since a moment.
func (p *producer) spentSince(began time.Time) (all spent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dials {
		if d.at.After(began) {
			all.dns, all.connect, all.tls = all.dns+d.spent.dns, all.connect+d.spent.connect, all.tls+d.spent.tls
		}
	}
	return all
}

// OnBrokerConnect records the result of each connection of the client, including authentication.
func (p *producer) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problem) == kafkaRemembered {
		p.problem = append(p.problem[:0], p.problem[1:]...)
	}
	p.problem = append(p.problem, noConnection{time.Now(), saidOf(err)})
}

// problemSince is the last failed connection since a moment. Failures that waiting can't fix come first.
func (p *producer) problemSince(began time.Time) (last noConnection, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.problem {
		if t.at.After(began) && (!found || t.said.final() || !last.said.final()) {
			last, found = t, true
		}
	}
	return last, found
}

// write produces a record and waits for its result, or for the context.
func (p *producer) write(ctx context.Context, record func() *kgo.Record) said {
	began := time.Now()
	if !p.known.Load() {
		if s := p.lookUp(ctx); s.result.Status != 200 {
			return p.explain(ctx, s, began)
		}
		p.known.Store(true)
	}
	s := p.produce(ctx, p.many, record(), began)
	if s.result.Status == 413 {
		// The broker rejects a batch as a whole, and the batch possibly contained records of others.
		if alone, err := p.lone(); err == nil {
			s = p.produce(ctx, alone, record(), began)
		}
	}
	if s.result.Failure != delivery.FailNone || s.result.Again || s.result.Status >= 500 {
		p.known.Store(false)
	}
	return p.explain(ctx, s, began)
}

// lone is a client with batches of one record.
func (p *producer) lone() (*kgo.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.alone == nil {
		alone, err := p.newClient(1)
		if err != nil {
			return nil, err
		}
		p.alone = alone
	}
	return p.alone, nil
}

// lookUp reads the topic's metadata from the cluster.
func (p *producer) lookUp(ctx context.Context) said {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(p.to.Topic)
	req.Topics = append(req.Topics, topic)
	done := make(chan said, 1)
	go func() { // it ends by itself, within the client's own time limits
		resp, err := req.RequestWith(ctx, p.many)
		switch {
		case err != nil:
		case len(resp.Topics) != 1:
			err = kerr.UnknownTopicOrPartition
		default:
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		done <- saidOf(err)
	}()
	select {
	case s := <-done:
		return s
	case <-ctx.Done():
		return saidOf(ctx.Err())
	}
}

// produce hands a record to a client and waits.
func (p *producer) produce(ctx context.Context, client *kgo.Client, r *kgo.Record, began time.Time) said {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // withdraws a record that is still in flight
	done := make(chan error, 1)
	// In a goroutine of its own: a client with its maximum of records blocks, even beyond the grace.
	go client.Produce(ctx, r, func(_ *kgo.Record, err error) { done <- err })
	look := time.NewTicker(kafkaGrace)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				return acknowledged(r)
			}
			return saidOf(err)
		case <-ctx.Done():
			return saidOf(ctx.Err())
		case <-look.C:
			if t, found := p.problemSince(began); found && t.said.final() && time.Since(t.at) >= kafkaGrace {
				return t.said
			}
		}
	}
}

// explain replaces a bare timeout by its cause, if one is known.
func (p *producer) explain(ctx context.Context, s said, began time.Time) said {
	if !s.vague {
		return s
	}
	if t, found := p.problemSince(began); found {
		return t.said
	}
	if ctx.Err() != nil {
		return saidOf(context.DeadlineExceeded)
	}
	return s
}
