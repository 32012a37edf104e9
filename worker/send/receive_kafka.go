package send

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"posthorn/domain/endpoint"
	"posthorn/domain/source"
)

// The bounds of one reader of a topic, in bytes.
const (
	kafkaMaxFetch      = 8 << 20 // of a response, unless its first batch is larger
	kafkaMaxPartition  = 1 << 20
	kafkaMaxResponse   = 2 * source.MaxMessage
	kafkaMaxUncompress = 2 * source.MaxMessage // of a batch of records
	kafkaOpen          = 15 * time.Second
)

// kafkaReceiver reads all partitions of a topic, from places that the database has: no consumer group is needed.
type kafkaReceiver struct {
	to        *endpoint.KafkaConnection
	client    *kgo.Client
	dialer    *brokerDialer
	most      int
	begin     Begin
	positions map[int32]int64
	moves     source.Moves // of what was received last

	mu      sync.Mutex
	problem error // of the last connection
}

func newKafkaReceiver(k *kafkaTransport, to *endpoint.KafkaConnection, most int) (*kafkaReceiver, error) {
	dialer, err := newBrokerDialer(k.guard, to.TLS, to.CA, k.roots, k.sessions)
	if err != nil {
		return nil, err
	}
	r := &kafkaReceiver{to: to, dialer: dialer, most: most, positions: map[int32]int64{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(to.Servers...),
		kgo.ClientID("posthorn"), kgo.SoftwareNameAndVersion("posthorn", "1"), kgo.DisableClientMetrics(),
		kgo.Dialer(r.dial), kgo.WithHooks(r),
		kgo.ConnIdleTimeout(kafkaIdle), kgo.RequestTimeoutOverhead(kafkaRead),
		kgo.RequestRetries(len(to.Servers) + 1), kgo.RetryBackoffFn(kafkaBackoff), kgo.MetadataMinAge(kafkaMetadataMin),
		kgo.FetchMaxBytes(kafkaMaxFetch), kgo.FetchMaxPartitionBytes(kafkaMaxPartition), kgo.BrokerMaxReadBytes(kafkaMaxResponse),
		kgo.MaxDecompressBatchBytes(kafkaMaxUncompress), kgo.MaxConcurrentFetches(2), kgo.FetchMaxWait(time.Second),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
	if to.SASL != nil {
		options = append(options, kgo.SASL(mechanism(*to.SASL)))
	}
	r.client, err = kgo.NewClient(options...)
	return r, err
}

func (r *kafkaReceiver) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, _, err := r.dialer.dial(ctx, network, address)
	return conn, err
}

// OnBrokerConnect keeps why the last connection failed: the client says only that there was not enough time.
func (r *kafkaReceiver) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = err
}

// failed describes an error of the client.
func (r *kafkaReceiver) failed(err error) error {
	r.mu.Lock()
	problem := r.problem
	r.mu.Unlock()
	s := saidOf(err)
	if problem != nil && (s.vague || s.result.Status == 0) {
		s = saidOf(problem)
	}
	return receiveError(s)
}

func (r *kafkaReceiver) Open(ctx context.Context, begin Begin) error {
	r.begin = begin
	_, err := r.look(ctx)
	return err
}

// look finds the partitions of the topic, begins to read those that are new, and counts what waits in all.
func (r *kafkaReceiver) look(ctx context.Context) (waiting int64, err error) {
	bounded, cancel := context.WithTimeout(ctx, kafkaOpen)
	defer cancel()
	of, err := r.bounds(bounded)
	if err != nil {
		return 0, r.failed(err)
	}
	added := map[int32]kgo.Offset{}
	for partition := range of {
		if _, known := r.positions[partition]; !known {
			added[partition] = kgo.NewOffset()
		}
	}
	if len(added) > 0 {
		next, err := r.begin(ctx, of)
		if err != nil || next == nil {
			return 0, err
		}
		for partition := range added {
			r.positions[partition] = next[partition]
			added[partition] = kgo.NewOffset().At(next[partition])
		}
		r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.to.Topic: added})
	}
	for partition, b := range of {
		waiting += max(b.End-r.positions[partition], 0)
	}
	return waiting, nil
}

// bounds asks the brokers for the first and the last place of each partition.
func (r *kafkaReceiver) bounds(ctx context.Context) (map[int32]source.Bounds, error) {
	ask := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(r.to.Topic)
	ask.Topics = append(ask.Topics, topic)
	meta, err := ask.RequestWith(ctx, r.client)
	if err != nil {
		return nil, err
	}
	if len(meta.Topics) != 1 {
		return nil, kerr.UnknownTopicOrPartition
	}
	if err := kerr.ErrorForCode(meta.Topics[0].ErrorCode); err != nil {
		return nil, err
	}
	of := map[int32]source.Bounds{}
	for _, at := range []int64{-2, -1} { // the first record, and after the last
		list := kmsg.NewPtrListOffsetsRequest()
		list.ReplicaID, list.IsolationLevel = -1, 1
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = r.to.Topic
		for _, p := range meta.Topics[0].Partitions {
			one := kmsg.NewListOffsetsRequestTopicPartition()
			one.Partition, one.Timestamp = p.Partition, at
			t.Partitions = append(t.Partitions, one)
		}
		list.Topics = append(list.Topics, t)
		answer, err := list.RequestWith(ctx, r.client)
		if err != nil {
			return nil, err
		}
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, err
				}
				b := of[p.Partition]
				if b.End = p.Offset; at == -2 {
					b.First = p.Offset
				}
				of[p.Partition] = b
			}
		}
	}
	return of, nil
}

func (r *kafkaReceiver) Receive(ctx context.Context, wait time.Duration) ([]source.Message, source.Moves, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fetches := r.client.PollRecords(waiting, r.most)
	var err error
	fetches.EachError(func(_ string, _ int32, e error) {
		if !errors.Is(e, context.DeadlineExceeded) && !errors.Is(e, context.Canceled) {
			err = e
		}
	})
	records := fetches.Records()
	if err != nil && len(records) == 0 {
		return nil, nil, r.failed(err)
	}
	messages := make([]source.Message, 0, len(records))
	r.moves = source.Moves{}
	for _, record := range records {
		m, known := r.moves[record.Partition]
		if !known {
			m.From = r.positions[record.Partition]
		}
		m.To = record.Offset + 1
		r.moves[record.Partition] = m
		messages = append(messages, kafkaMessage(record))
	}
	return messages, r.moves, nil
}

// kafkaMessage is a record as a message.
func kafkaMessage(record *kgo.Record) source.Message {
	m := source.Message{
		Key:       strings.ToValidUTF8(string(record.Key), "\uFFFD"),
		Queue:     record.Topic,
		Partition: record.Partition,
		Offset:    record.Offset,
		Time:      new(record.Timestamp.UTC()),
		Control:   record.Attrs.IsControl(),
	}
	m.SetBody(record.Value)
	if len(record.Headers) > 0 {
		m.Headers = make(map[string]string, len(record.Headers))
	}
	for _, h := range record.Headers {
		m.Headers[h.Key] = strings.ToValidUTF8(string(h.Value), "\uFFFD")
	}
	return m
}

// Acknowledge goes on after what was received last: the database has its place.
func (r *kafkaReceiver) Acknowledge(context.Context, []source.Message) error {
	for partition, m := range r.moves {
		r.positions[partition] = m.To
	}
	return nil
}

func (r *kafkaReceiver) Waiting(ctx context.Context) (int64, error) { return r.look(ctx) }

func (r *kafkaReceiver) Close() { r.client.Close() }
