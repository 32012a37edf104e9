package send

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
)

// brokerDialer opens the connections to a broker of one endpoint, only through the guard.
type brokerDialer struct {
	guard    *guard
	tls      bool
	roots    *x509.CertPool         // nil: the system's
	sessions tls.ClientSessionCache // nil: sessions are not resumed
}

// newBrokerDialer is a dialer that trusts the authorities in ca, or roots where there are none.
func newBrokerDialer(g *guard, encrypted bool, ca string, roots *x509.CertPool, sessions tls.ClientSessionCache) (*brokerDialer, error) {
	d := &brokerDialer{guard: g, tls: encrypted, roots: roots, sessions: sessions}
	if ca == "" {
		return d, nil
	}
	certificates, _, refusal := endpoint.Certificates(ca)
	if refusal != "" {
		return nil, errors.New(refusal)
	}
	d.roots = x509.NewCertPool()
	for _, c := range certificates {
		d.roots.AddCert(c)
	}
	// a session does not contain its certificate authority, and other endpoints have other ones
	d.sessions = nil
	return d, nil
}

// spent is how long the phases of a connection took, in microseconds.
type spent struct{ dns, connect, tls int32 }

func (d *brokerDialer) dial(ctx context.Context, network, address string) (net.Conn, spent, error) {
	ph := &phases{began: time.Now(), plain: !d.tls}
	conn, err := d.guard.dial(context.WithValue(ctx, phasesKey{}, ph), network, address)
	if err != nil {
		return nil, spent{}, err
	}
	if d.tls {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, spent{}, err
		}
		conn, err = encrypt(ctx, conn, &tls.Config{
			MinVersion:         tls.VersionTLS12,
			ServerName:         host,
			RootCAs:            d.roots,
			ClientSessionCache: d.sessions,
		}, ph)
		if err != nil {
			return nil, spent{}, err
		}
	}
	took := spent{dns: int32(ph.dns.Load()), tls: int32(ph.tlsDone.Load() - ph.tlsBegun.Load())}
	took.connect = int32(ph.connected.Load()) - took.dns
	return conn, took, nil
}

// record writes a broker's response into the attempt.
func (s said) record(a *queue.Attempt) delivery.Result {
	a.Error, a.ResponseExcerpt = s.text, s.excerpt
	a.DNS, a.Connect, a.TLS = s.spent.dns, s.spent.connect, s.spent.tls
	a.Total = int32(max(s.took.Microseconds(), 1))
	a.Wait = max(a.Total-a.DNS-a.Connect-a.TLS, 0)
	return s.result
}

// verified counts an acknowledged message as a verification: a client without permission gets no acknowledgment. what
// is what was written to.
func (s said) verified(what string) (status int, detail string, verified bool) {
	if s.result.Failure != delivery.FailNone || s.result.Status != 200 {
		return s.result.Status, "Writing to the " + what + " failed: " + s.text + ".", false
	}
	return 200, "", true
}

// unusable is the result where a stored connection can't be used.
func unusable(began time.Time) said {
	return said{
		result: delivery.Result{Failure: delivery.FailInternal},
		text:   "the connection's settings could not be used",
		took:   time.Since(began),
	}
}

// interrupted is the result where this worker stopped before the broker responded.
func interrupted() said {
	return said{
		result: delivery.Result{Failure: delivery.FailReset},
		text:   "interrupted: this worker was stopped before an acknowledgment arrived",
	}
}
