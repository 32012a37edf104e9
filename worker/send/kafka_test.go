package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// elsewhere is a listener that reports another address: the one that a broker advertises.
type elsewhere struct {
	net.Listener
	address net.Addr
}

func (e elsewhere) Addr() net.Addr { return e.address }

func fakeCluster(t testing.TB, options ...kfake.Opt) (*kfake.Cluster, *endpoint.KafkaConnection) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "orders")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &endpoint.KafkaConnection{Servers: c.ListenAddrs()[:1], Topic: "orders"}
}

func topicDestination(t testing.TB, to *endpoint.KafkaConnection) *Destination {
	t.Helper()
	destination := someDestination(t, to.Address())
	destination.kind, destination.to = endpoint.Kafka, to
	return destination
}

func kafkaOf(s *Sender) *kafkaTransport { return s.transports[endpoint.Kafka].(*kafkaTransport) }

// consume reads so many records from the beginning of a topic.
func consume(t testing.TB, to *endpoint.KafkaConnection, n int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(to.Servers...),
		kgo.ConsumeTopics(to.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got []*kgo.Record
	for len(got) < n && ctx.Err() == nil {
		got = append(got, client.PollFetches(ctx).Records()...)
	}
	if len(got) < n {
		t.Fatalf("%d records, want %d", len(got), n)
	}
	return got
}

func TestARecordIsWhatAReceiverWouldHaveGot(t *testing.T) {
	t.Parallel()
	_, to := fakeCluster(t)
	s := newTestSender(t)
	destination := topicDestination(t, to)
	destination.headers = []signature.Header{{Name: "X-Team", Value: "payments"}}
	m := someMessage(`{"total":12.50}`)
	key := "customer-7"
	m.Event.Key = &key
	r, a := s.Deliver(t.Context(), destination, m)
	if r != (delivery.Result{Status: 200}) || a.Error != "" || a.Total == 0 || a.Connect == 0 || a.TLS != 0 ||
		a.Signature == "" || !strings.HasPrefix(a.URL, "kafka://127.0.0.1:") {
		t.Fatalf("%+v %+v", r, a)
	}
	if string(a.ResponseExcerpt) != `{"offset":0,"partition":0,"topic":"orders"}` {
		t.Errorf("the attempt keeps %s", a.ResponseExcerpt)
	}
	got := consume(t, to, 1)[0]
	header := func(name string) string {
		for _, h := range got.Headers {
			if h.Key == strings.ToLower(name) {
				return string(h.Value)
			}
		}
		return ""
	}
	if string(got.Key) != key || header("x-team") != "payments" || header("webhook-id") != m.EventID || header("content-type") != "application/json" {
		t.Errorf("key %q, headers %s", got.Key, got.Headers)
	}
	secret := signature.NewSecret([32]byte{1})
	if err := (signature.Wire{Format: signature.Standard}).Verify(header, got.Value, []string{secret}, time.Now(), time.Minute); err != nil {
		t.Errorf("the record does not verify: %v\n%s", err, got.Value)
	}
	// The next attempt finds everything open.
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 || a.Connect != 0 || a.DNS != 0 {
		t.Errorf("the second: %+v %+v", r, a)
	}
	if second := consume(t, to, 2)[1]; second.Key != nil {
		t.Errorf("an event without a key has the key %q", second.Key)
	}
}

// outcome is the expected result of an attempt.
type outcome struct {
	result delivery.Result
	text   string
}

func (want outcome) check(t testing.TB, r delivery.Result, text string) {
	t.Helper()
	if r != want.result || !strings.Contains(text, want.text) {
		t.Errorf("%+v %q; want %+v %q", r, text, want.result, want.text)
	}
	if strings.Contains(text, "127.0.0.1") || strings.Contains(text, "10.1.2.3") {
		t.Errorf("the tenant is told an address: %q", text)
	}
}

func TestTheReasonForARejectedRecordIsNamed(t *testing.T) {
	t.Parallel()
	good := certificate(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	users := []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "anna", "right"), kfake.Superuser("SCRAM-SHA-256", "anna", "right"), kfake.Superuser("SCRAM-SHA-512", "anna", "right")}
	as := func(mechanism, password string) func(*endpoint.KafkaConnection) {
		return func(to *endpoint.KafkaConnection) {
			to.SASL = &endpoint.SASL{Mechanism: mechanism, Username: "anna", Password: password}
		}
	}
	limited := append([]kfake.Opt{kfake.EnableACLs(), kfake.EnableSASL(), kfake.User("SCRAM-SHA-512", "anna", "right", kfake.ACL{
		Resource:  kmsg.ACLResourceTypeTopic,
		Name:      "orders",
		Pattern:   kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationDescribe,
		Allow:     true,
	}, kfake.ACL{
		Resource:  kmsg.ACLResourceTypeCluster,
		Name:      "kafka-cluster",
		Pattern:   kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationIdempotentWrite,
		Allow:     true,
	})}, kfake.Superuser("PLAIN", "root", "root"))
	ok, refused := delivery.OfKafka(""), func(name string) outcome { return outcome{delivery.OfKafka(name), name} }
	for name, c := range map[string]struct {
		options []kfake.Opt
		change  func(*endpoint.KafkaConnection)
		answers map[int16]int16 // error codes by request, instead of the cluster's response
		trust   bool
		want    outcome
	}{
		"PLAIN":         {options: users, change: as("PLAIN", "right"), want: outcome{result: ok}},
		"SCRAM-SHA-256": {options: users, change: as("SCRAM-SHA-256", "right"), want: outcome{result: ok}},
		"SCRAM-SHA-512": {options: users, change: as("SCRAM-SHA-512", "right"), want: outcome{result: ok}},
		"a wrong password": {
			options: users,
			change:  as("SCRAM-SHA-512", "wrong"),
			answers: map[int16]int16{36: kerr.SaslAuthenticationFailed.Code},
			want:    refused("SASL_AUTHENTICATION_FAILED"),
		},
		"a mechanism too many": {
			options: users,
			change:  as("SCRAM-SHA-512", "right"),
			answers: map[int16]int16{17: kerr.UnsupportedSaslMechanism.Code},
			want:    refused("UNSUPPORTED_SASL_MECHANISM"),
		},
		"a closed door":  {options: users, change: as("SCRAM-SHA-512", "wrong"), want: outcome{delivery.Result{Failure: delivery.FailReset}, "closed the connection"}},
		"no credentials": {options: users, want: outcome{delivery.Result{Failure: delivery.FailReset}, "probably requires TLS or SASL"}},
		"not permitted":  {options: limited, change: as("SCRAM-SHA-512", "right"), want: refused("TOPIC_AUTHORIZATION_FAILED")},
		"no such topic":  {change: func(to *endpoint.KafkaConnection) { to.Topic = "refunds" }, want: refused("UNKNOWN_TOPIC_OR_PARTITION")},
		"TLS": {
			options: []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{good}})},
			trust:   true,
			change:  func(to *endpoint.KafkaConnection) { to.TLS = true },
			want:    outcome{result: ok},
		},
		"a certificate of nobody": {
			options: []kfake.Opt{kfake.TLS(&tls.Config{Certificates: []tls.Certificate{good}})},
			change:  func(to *endpoint.KafkaConnection) { to.TLS = true },
			want:    outcome{delivery.Result{Failure: delivery.FailTLS}, "invalid certificate"},
		},
		"nobody there": {
			change: func(to *endpoint.KafkaConnection) { to.Servers = []string{"127.0.0.1:1025"} },
			want:   outcome{delivery.Result{Failure: delivery.FailConnect}, "connection refused"},
		},
		"a private bootstrap server": {
			change: func(to *endpoint.KafkaConnection) { to.Servers = []string{"10.1.2.3:9092"} },
			want:   outcome{delivery.Result{Failure: delivery.FailBlocked}, "blocked address"},
		},
		"the second bootstrap server alone": {
			change: func(to *endpoint.KafkaConnection) { to.Servers = append([]string{"127.0.0.1:1025"}, to.Servers...) },
			want:   outcome{result: ok},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, to := fakeCluster(t, c.options...)
			for key, code := range c.answers {
				cluster.ControlKey(key, func(req kmsg.Request) (kmsg.Response, error, bool) {
					cluster.KeepControl()
					return denial(req, code), nil, true
				})
			}
			s := newTestSender(t)
			if c.change != nil {
				c.change(to)
			}
			if c.trust {
				kafkaOf(s).roots = x509.NewCertPool()
				kafkaOf(s).roots.AddCert(good.Leaf)
			}
			destination := topicDestination(t, to)
			destination.timeout = 15 * time.Second // a known error is reported immediately, not at the timeout
			began := time.Now()
			for range 2 { // at the first attempt, and again
				r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
				c.want.check(t, r, a.Error)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("two attempts took %v", took)
			}
			if to.TLS && c.trust {
				return
			}
			destination.Endpoint = "ep_verified" // through another producer
			status, detail, verified := s.transports[endpoint.Kafka].verify(t.Context(), destination,
				&request{body: []byte(`{}`)}, challenge{})
			if verified != (c.want.result.Status == 200) || status != c.want.result.Status || !verified &&
				!strings.Contains(detail, c.want.text) {
				t.Errorf("verification: %d %q %v", status, detail, verified)
			}
		})
	}
}

// denial answers a request of SASL with an error.
func denial(req kmsg.Request, code int16) kmsg.Response {
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.SASLHandshakeResponse:
		r.ErrorCode, r.SupportedMechanisms = code, []string{"GSSAPI"}
	case *kmsg.SASLAuthenticateResponse:
		r.ErrorCode = code
	}
	return resp
}

// The addresses that the cluster names are checked like the endpoint's own: every dialed address is.
func TestABrokerThatAdvertisesAPrivateAddressIsABlockedAddress(t *testing.T) {
	t.Parallel()
	var real []string
	for _, private := range []string{"10.1.2.3:9092", "169.254.169.254:9092", "192.168.1.1:9092", "[fd00:ec2::254]:9092"} {
		c, _ := fakeCluster(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
			if err != nil {
				return nil, err
			}
			real = []string{l.Addr().String()}
			advertised, err := net.ResolveTCPAddr("tcp", private)
			return elsewhere{l, advertised}, err
		}))
		_ = c
		destination := topicDestination(t, &endpoint.KafkaConnection{Servers: real, Topic: "orders"})
		destination.timeout = 10 * time.Second
		began := time.Now()
		r, a := newTestSender(t).Deliver(t.Context(), destination, someMessage(`{}`))
		outcome{delivery.Result{Failure: delivery.FailBlocked}, "blocked address"}.check(t, r, a.Error)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: named after %v", private, took)
		}
	}
}

func TestALargeRecordIsRejectedAndItsNeighboursAreNot(t *testing.T) {
	t.Parallel()
	_, to := fakeCluster(t, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "3000"}))
	s := newTestSender(t)
	destination := topicDestination(t, to)
	small, large := `{"text":"`+strings.Repeat("s", 1000)+`"}`, `{"text":"`+strings.Repeat("l", 5000)+`"}`
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			data, want := small, outcome{result: delivery.OfKafka("")}
			if i%5 == 0 {
				data, want = large, outcome{delivery.OfKafka("MESSAGE_TOO_LARGE"), "MESSAGE_TOO_LARGE"}
			}
			r, a := s.Deliver(t.Context(), destination, someMessage(data))
			want.check(t, r, a.Error)
		})
	}
	wait.Wait()
	if got := consume(t, to, 16); len(got) != 16 {
		t.Errorf("%d records, want the 16 small ones once each", len(got))
	}
}

func TestABrokerThatNeverAnswersEndsWithTheTimeOut(t *testing.T) {
	t.Parallel()
	for _, key := range []int16{0, 3, 18, 22} { // produce, metadata, versions, producer id
		t.Run(kmsg.NameForKey(key), func(t *testing.T) {
			t.Parallel()
			c, to := fakeCluster(t)
			c.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, nil, true
			})
			s := newTestSender(t)
			destination := topicDestination(t, to)
			destination.timeout = 700 * time.Millisecond
			for range 2 {
				began := time.Now()
				r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
				outcome{delivery.Result{Failure: delivery.FailTimeout}, "no acknowledgment in time"}.check(t, r, a.Error)
				if took := time.Since(began); took > 1500*time.Millisecond {
					t.Errorf("ended after %v", took)
				}
			}
		})
	}
}

// A record with an unknown result is sent again, before every later one.
func TestAfterAnUnknownOutcomeTheOrderHolds(t *testing.T) {
	t.Parallel()
	c, to := fakeCluster(t)
	s := newTestSender(t)
	destination := topicDestination(t, to)
	if r, a := s.Deliver(t.Context(), destination, someMessage(`"first"`)); r.Status != 200 {
		t.Fatal(r, a.Error)
	}
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) { return nil, nil, true }) // drops one
	destination.timeout = 700 * time.Millisecond
	second := someMessage(`"second"`)
	if r, a := s.Deliver(t.Context(), destination, second); r.Failure != delivery.FailTimeout {
		t.Fatal(r, a.Error)
	}
	destination.timeout = 5 * time.Second
	for _, m := range []Message{second, someMessage(`"third"`)} {
		if r, a := s.Deliver(t.Context(), destination, m); r.Status != 200 {
			t.Fatal(r, a.Error)
		}
	}
	var order []string
	for _, r := range consume(t, to, 3) {
		for _, word := range []string{"first", "second", "third"} {
			if strings.Contains(string(r.Value), word) && (len(order) == 0 || order[len(order)-1] != word) {
				order = append(order, word)
			}
		}
	}
	if fmt.Sprint(order) != "[first second third]" {
		t.Errorf("came as %v", order)
	}
}

func TestAnswersOfTheBrokerAreOutcomes(t *testing.T) {
	t.Parallel()
	c, to := fakeCluster(t)
	s := newTestSender(t)
	destination := topicDestination(t, to)
	for _, e := range []*kerr.Error{
		kerr.InvalidRecord, kerr.PolicyViolation, kerr.TopicAuthorizationFailed,
		kerr.InvalidTimestamp, kerr.UnknownServerError,
	} {
		c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
			return refusal(req.(*kmsg.ProduceRequest), e.Code), nil, true
		})
		destination.Endpoint = e.Message // through a producer of its own
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		outcome{delivery.OfKafka(e.Message), e.Message}.check(t, r, a.Error)
		if !strings.Contains(string(a.ResponseExcerpt), e.Message) {
			t.Errorf("the attempt keeps %s", a.ResponseExcerpt)
		}
	}
}

// refusal answers a produce request with an error for each partition.
func refusal(req *kmsg.ProduceRequest, code int16) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, code
			topic.Partitions = append(topic.Partitions, partition)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// A broker that is briefly unavailable costs no attempt, within the timeout.
func TestABrieflyUnavailableBrokerIsWaitedFor(t *testing.T) {
	t.Parallel()
	c, to := fakeCluster(t)
	s := newTestSender(t)
	destination := topicDestination(t, to)
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 {
		t.Fatal(r, a.Error)
	}
	var lost int
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		if lost++; lost < 4 {
			c.KeepControl()
			return nil, net.ErrClosed, true // breaks the connection
		}
		c.DropControl()
		return nil, nil, false
	})
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 || lost < 4 {
		t.Errorf("%+v %q after %d broken connections", r, a.Error, lost)
	}
	if got := consume(t, to, 2); len(got) != 2 {
		t.Errorf("%d records, want each once", len(got))
	}
}

func TestProducersAreKeptWithinBoundsAndChangeWithTheirEndpoint(t *testing.T) {
	t.Parallel()
	_, to := fakeCluster(t)
	s := newTestSender(t)
	k := kafkaOf(s)
	for i := range maxIdleProducers + 10 {
		destination := topicDestination(t, to)
		destination.Endpoint = fmt.Sprint("ep_", i)
		pr, err := k.producers.borrow(destination.Endpoint, to)
		if err != nil {
			t.Fatal(err)
		}
		k.producers.giveBack(pr)
	}
	if n := len(k.producers.by); n != maxIdleProducers {
		t.Errorf("%d producers are open, want %d", n, maxIdleProducers)
	}
	first, _ := k.producers.borrow("ep_x", to)
	same, _ := k.producers.borrow("ep_x", to.Clone().(*endpoint.KafkaConnection))
	other := to.Clone().(*endpoint.KafkaConnection)
	other.Topic = "refunds"
	changed, _ := k.producers.borrow("ep_x", other)
	if first != same || changed == first || !first.discarded {
		t.Error("a producer is the endpoint's as long as its connection is the same")
	}
	for _, p := range []*producer{first, same, changed} {
		k.producers.giveBack(p)
	}
	s.Close()
	if len(k.producers.by) != 0 {
		t.Error("a stop leaves producers open")
	}
}

// A hostile broker can't keep a core busy before it has authenticated.
func TestTooManyIterationsAreRejected(t *testing.T) {
	t.Parallel()
	_, _, err := mechanism(endpoint.SASL{
		Mechanism: endpoint.SASLSHA512,
		Username:  "a",
		Password:  "b",
	}).Authenticate(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	session, _, _ := mechanism(endpoint.SASL{
		Mechanism: endpoint.SASLSHA512,
		Username:  "a",
		Password:  "b",
	}).Authenticate(t.Context(), "")
	for _, iterations := range []string{"100001", "2147483647", "99999999999999999999", "x"} {
		if _, _, err := session.Challenge([]byte("r=abc,s=c2FsdA==,i=" + iterations)); err == nil ||
			saidOf(err).result.Failure != delivery.FailProtocol {
			t.Errorf("%s iterations: %v", iterations, err)
		}
	}
}

// Whatever server listens there: an attempt ends soon, and a response of any size uses no memory.
func TestAServerThatIsNoBrokerIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says string
		want delivery.Failure
	}{
		"a web server":      {"HTTP/1.1 400 Bad request\r\nContent-Length: 0\r\n\r\n", delivery.FailProtocol},
		"an endless answer": {"\x7f\xff\xff\xff" + strings.Repeat("a", 100_000), delivery.FailProtocol},
		"a negative size":   {"\xff\xff\xff\xff", delivery.FailProtocol},
		"noise":             {"\x00\x00\x00\x20" + strings.Repeat("\x80", 32), delivery.FailProtocol},
		"who hangs up":      {"", delivery.FailReset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer func() { _ = conn.Close() }()
						_, _ = conn.Read(make([]byte, 1000))
						_, _ = conn.Write([]byte(c.says))
					}()
				}
			}()
			destination := topicDestination(t, &endpoint.KafkaConnection{Servers: []string{l.Addr().String()}, Topic: "orders"})
			destination.timeout = 3 * time.Second
			began := time.Now()
			if r, a := newTestSender(t).Deliver(t.Context(), destination, someMessage(`{}`)); r.Failure != c.want ||
				a.Error == "" {
				t.Errorf("%+v %q, want %s", r, a.Error, c.want)
			}
			if took := time.Since(began); took > 3500*time.Millisecond {
				t.Errorf("ended after %v", took)
			}
		})
	}
}
