package send

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
	"posthorn/tools/rabbittest"
)

// rabbit is the broker of the tests of this package, and the authority of its certificate.
var rabbit struct {
	sync.Once
	*rabbittest.Broker
	dir       string
	authority tls.Certificate
}

func theBroker(t testing.TB) *rabbittest.Broker {
	t.Helper()
	rabbittest.Need(t)
	rabbit.Do(func() {
		rabbit.authority = certificate(t, nil)
		own := issued(t, rabbit.authority)
		key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		if rabbit.dir, err = os.MkdirTemp("", "posthorn-rabbitmq-"); err != nil {
			t.Fatal(err)
		}
		text := func(kind string, der []byte) string {
			return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		}
		rabbit.Broker = rabbittest.New(t, rabbit.dir, text("CERTIFICATE", own.Certificate[0]), text("PRIVATE KEY", key)).Run(t)
	})
	if rabbit.Broker == nil {
		t.Fatal("the broker did not start")
	}
	return rabbit.Broker
}

func stopRabbit() {
	if rabbit.Broker != nil {
		rabbit.Kill()
	}
	_ = os.RemoveAll(rabbit.dir)
}

// exchange makes an exchange with a queue of the same name, and the connection of an endpoint to it.
func exchange(t testing.TB, name string, arguments amqp.Table) *endpoint.RabbitMQConnection {
	t.Helper()
	b := theBroker(t)
	b.Bind(t, name, name, "order.#", arguments)
	return &endpoint.RabbitMQConnection{
		URL:        "amqp://" + b.Open + "/%2F",
		Exchange:   name,
		RoutingKey: "{type}",
		Username:   rabbittest.User,
		Password:   rabbittest.Password,
	}
}

func exchangeDestination(t testing.TB, to *endpoint.RabbitMQConnection) *Destination {
	t.Helper()
	destination := someDestination(t, to.Address())
	destination.kind, destination.to, destination.Endpoint = endpoint.RabbitMQ, to, "ep_"+t.Name()
	return destination
}

func TestAMessageIsWhatAReceiverWouldHaveGot(t *testing.T) {
	t.Parallel()
	to := exchange(t, "whole", nil)
	s := newTestSender(t)
	defer s.Close()
	destination := exchangeDestination(t, to)
	destination.headers = []signature.Header{{Name: "X-Team", Value: "payments"}}
	m := someMessage(`{"total":12.50}`)
	r, a := s.Deliver(t.Context(), destination, m)
	if r != (delivery.Result{Status: 200}) || a.Error != "" || a.Connect == 0 || a.TLS != 0 || a.Signature == "" ||
		string(a.ResponseExcerpt) != `{"exchange":"whole","routing_key":"order.completed"}` {
		t.Fatalf("%+v %+v %s", r, a, a.ResponseExcerpt)
	}
	if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 || a.Connect != 0 {
		t.Errorf("the second attempt opens a connection: %+v %+v", r, a)
	}
	got := rabbit.Messages(t, "whole", 2)[0]
	header := func(name string) string {
		value, _ := got.Headers[strings.ToLower(name)].(string)
		return value
	}
	if got.MessageId != m.EventID || got.RoutingKey != "order.completed" || got.Type != "order.completed" || got.ContentType != "application/json" ||
		got.DeliveryMode != amqp.Persistent || header("x-team") != "payments" || header("webhook-id") != m.EventID {
		t.Errorf("%+v", got)
	}
	secret := signature.NewSecret([32]byte{1})
	if err := (signature.Wire{Format: signature.Standard}).Verify(header, got.Body, []string{secret}, time.Now(), time.Minute); err != nil {
		t.Errorf("the message does not verify: %v\n%s", err, got.Body)
	}
}

func TestTheReasonForARejectedMessageIsNamed(t *testing.T) {
	t.Parallel()
	private := func(url string) func(*endpoint.RabbitMQConnection) {
		return func(to *endpoint.RabbitMQConnection) { to.URL = url }
	}
	secured := func(ca string) func(*endpoint.RabbitMQConnection) {
		return func(to *endpoint.RabbitMQConnection) { to.URL, to.CA = "amqps://"+rabbit.Secured+"/%2F", ca }
	}
	ok, refused := delivery.OfRabbitMQ(""), func(name string) outcome { return outcome{delivery.OfRabbitMQ(name), name} }
	failed := func(f delivery.Failure, text string) outcome { return outcome{delivery.Result{Failure: f}, text} }
	theBroker(t)
	for name, c := range map[string]struct {
		change func(*endpoint.RabbitMQConnection)
		want   outcome
	}{
		"accepted":              {nil, outcome{result: ok}},
		"TLS":                   {secured(pemOf(rabbit.authority)), outcome{result: ok}},
		"another virtual host":  {func(to *endpoint.RabbitMQConnection) { to.URL = strings.Replace(to.URL, "%2F", "shop", 1) }, refused("NOT_FOUND")},
		"a certificate of none": {secured(""), failed(delivery.FailTLS, "invalid certificate")},
		"a wrong password":      {func(to *endpoint.RabbitMQConnection) { to.Password = "wrong" }, refused(delivery.LoginRefused)},
		"not permitted":         {func(to *endpoint.RabbitMQConnection) { to.Username = rabbittest.Reader }, refused("ACCESS_REFUSED")},
		"no such virtual host":  {func(to *endpoint.RabbitMQConnection) { to.URL = strings.Replace(to.URL, "%2F", "none", 1) }, refused("NOT_ALLOWED")},
		"no such exchange":      {func(to *endpoint.RabbitMQConnection) { to.Exchange = "none" }, refused("NOT_FOUND")},
		"nothing bound":         {func(to *endpoint.RabbitMQConnection) { to.RoutingKey = "other.{type}" }, refused("NO_ROUTE")},
		"no such queue":         {func(to *endpoint.RabbitMQConnection) { to.Exchange = "" }, refused("NO_ROUTE")},
		"nobody there":          {private("amqp://127.0.0.1:1025/%2F"), failed(delivery.FailConnect, "connection refused")},
		"a private server":      {private("amqp://10.1.2.3:5672/%2F"), failed(delivery.FailBlocked, "blocked address")},
		"TLS without":           {private("amqp://" + rabbit.Secured + "/%2F"), failed(delivery.FailProtocol, "does not use AMQP")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := exchange(t, "reasons", nil)
			if c.change != nil {
				c.change(to)
			}
			s := newTestSender(t)
			defer s.Close()
			destination := exchangeDestination(t, to)
			for range 2 {
				r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
				c.want.check(t, r, a.Error)
			}
			_, detail, verified := s.transports[endpoint.RabbitMQ].verify(t.Context(), destination,
				&request{body: []byte(`{}`), message: signature.Message{Type: "order.test"}}, challenge{})
			if verified != (c.want.result.Status == 200) || !verified && !strings.Contains(detail, c.want.text) {
				t.Errorf("verification: %q %v", detail, verified)
			}
		})
	}
}

// A broker that rejects one message closes its channel: the others have channels of their own.
func TestARejectedMessageCostsItsNeighborsNothing(t *testing.T) {
	t.Parallel()
	to := exchange(t, "mixed", nil)
	s := newTestSender(t)
	defer s.Close()
	var attempts sync.WaitGroup
	for n := range 40 {
		attempts.Go(func() {
			destination, m, want := exchangeDestination(t, to), someMessage(`{}`), outcome{result: delivery.OfRabbitMQ("")}
			if n%2 == 0 {
				m.Event.Type, want = "refund.made", outcome{delivery.OfRabbitMQ("NO_ROUTE"), "NO_ROUTE"}
			}
			r, a := s.Deliver(t.Context(), destination, m)
			want.check(t, r, a.Error)
		})
	}
	attempts.Wait()
	rabbit.Messages(t, "mixed", 20)
}

func TestAFullQueueRejectsMessages(t *testing.T) {
	t.Parallel()
	to := exchange(t, "full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	s := newTestSender(t)
	defer s.Close()
	destination := exchangeDestination(t, to)
	for _, want := range []outcome{{result: delivery.OfRabbitMQ("")}, {delivery.OfRabbitMQ("NACK"), "NACK"}} {
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		want.check(t, r, a.Error)
	}
}

// A connection that ended in a pause, as at a load balancer, costs no attempt.
func TestAConnectionThatEndedIsOpenedAgain(t *testing.T) {
	t.Parallel()
	to := exchange(t, "again", nil)
	s := newTestSender(t)
	defer s.Close()
	destination := exchangeDestination(t, to)
	for range 3 {
		if r, a := s.Deliver(t.Context(), destination, someMessage(`{}`)); r.Status != 200 || a.Connect == 0 {
			t.Fatalf("%+v %+v", r, a)
		}
		pool := &s.transports[endpoint.RabbitMQ].(*rabbitTransport).producers
		pub, err := pool.borrow(destination.Endpoint, to)
		if err != nil {
			t.Fatal(err)
		}
		_ = pub.conn.Close()
		pool.giveBack(pub)
	}
}

// Whatever server listens there: an attempt ends soon.
func TestAServerThatIsNoAMQPBrokerIsNamed(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]delivery.Failure{
		"HTTP/1.1 400 Bad request\r\nContent-Length: 0\r\n\r\n":    delivery.FailProtocol,
		"\x01\x00\x00\x7f\xff\xff\xff" + strings.Repeat("a", 9000): delivery.FailProtocol,
		"":       delivery.FailReset,
		"silent": delivery.FailTimeout,
	} {
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
					_, _ = conn.Read(make([]byte, 8))
					if says == "silent" {
						_, _ = conn.Read(make([]byte, 8))
					}
					_, _ = conn.Write([]byte(says))
				}()
			}
		}()
		to := &endpoint.RabbitMQConnection{URL: fmt.Sprintf("amqp://%s/%%2F", l.Addr()), RoutingKey: "a", Username: "a", Password: "b"}
		destination := exchangeDestination(t, to)
		destination.timeout = 2 * time.Second
		began := time.Now()
		r, a := newTestSender(t).Deliver(t.Context(), destination, someMessage(`{}`))
		if spent := time.Since(began); r.Failure != want || a.Error == "" || spent > 2500*time.Millisecond {
			t.Errorf("%.10q: %+v %q after %v, want %s", says, r, a.Error, spent, want)
		}
	}
}
