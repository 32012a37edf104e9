package send

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// issued is a broker's certificate by an authority.
func issued(t testing.TB, authority tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "broker"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func pemOf(c tls.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw}))
}

func TestBrokersAreVerifiedByTheAuthorityThatTheirEndpointNames(t *testing.T) {
	t.Parallel()
	private, other := certificate(t, nil), certificate(t, nil)
	_, to := fakeCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{issued(t, private)}}))
	to.TLS = true
	s := newTestSender(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(private.Leaf)
	refused := outcome{delivery.Result{Failure: delivery.FailTLS}, "invalid certificate"}
	// All use one transport: the authority that one endpoint trusts does not help another, nor does a TLS session.
	for _, c := range []struct {
		name, ca string
		machine  *x509.CertPool // the machine's authorities
		want     outcome
	}{
		{"an authority that nobody knows", "", nil, refused},
		{"the endpoint names it", pemOf(private), nil, outcome{result: delivery.OfKafka("")}},
		{"it is among several", pemOf(other) + pemOf(private), nil, outcome{result: delivery.OfKafka("")}},
		{"the endpoint names another", pemOf(other), nil, refused},
		{"the machine knows it", "", trusted, outcome{result: delivery.OfKafka("")}},
		{"the machine knows it and the endpoint names another", pemOf(other), trusted, refused},
	} {
		kafkaOf(s).roots = c.machine
		connection := to.Clone().(*endpoint.KafkaConnection)
		connection.CA = c.ca
		destination := topicDestination(t, connection)
		destination.Endpoint, destination.timeout = c.name, 10*time.Second
		r, a := s.Deliver(t.Context(), destination, someMessage(`{}`))
		if r != c.want.result {
			t.Error(c.name)
		}
		c.want.check(t, r, a.Error)
	}
}
