package send

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"posthorn/domain/delivery"
)

// encrypt makes a TLS session on a new connection, which it closes if that fails. The configuration is the caller's own
// copy. The error is a *dialError, unless the context was canceled.
func encrypt(ctx context.Context, conn net.Conn, config *tls.Config, p *phases) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	own := &tls.Certificate{} // no certificate, as without the function
	if len(config.Certificates) > 0 {
		own = &config.Certificates[0]
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		p.certificate.Store(int32(delivery.CertificateNone))
		if len(own.Certificate) > 0 {
			p.certificate.Store(int32(delivery.CertificateSent))
		}
		return own, nil
	}
	encrypted := tls.Client(conn, config)
	p.mark(&p.tlsBegun)
	err := encrypted.HandshakeContext(ctx)
	p.mark(&p.tlsDone)
	if err == nil {
		return encrypted, nil
	}
	_ = conn.Close()
	if cause := ctx.Err(); cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	return nil, &dialError{delivery.FailTLS, tlsText(err, p.clientCertificate()), err}
}

// alertCodes are the numbers of alerts by what crypto/tls says of them: its errors have a type of their own, which it
// does not export.
var alertCodes = func() map[string]uint8 {
	codes := make(map[string]uint8, 256)
	for code := range 256 {
		codes[tls.AlertError(code).Error()] = uint8(code)
	}
	return codes
}()

// serverAlert returns the alert with which a server ended a connection. In TLS 1.3 the server checks what it wants of
// the client after the client's handshake has ended, so its alert arrives when the response is read.
func serverAlert(err error) (code uint8, is bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	code, is = alertCodes[op.Err.Error()]
	return code, is
}

// isTLS reports whether an error is one of the TLS session and not of what goes through it.
func isTLS(err error) bool {
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return true
	}
	return strings.HasPrefix(innermost(err).Error(), "tls: ")
}

// explainWithin is enough to read what has arrived already.
const explainWithin = 50 * time.Millisecond

// explain returns why the other side ended a connection on which nothing could be written, if it said so in TLS.
func explain(conn net.Conn, err error) error {
	encrypted, ok := conn.(*tls.Conn)
	if !ok {
		return err
	}
	_ = encrypted.SetReadDeadline(time.Now().Add(explainWithin))
	if _, said := encrypted.Read(make([]byte, 1)); said != nil && isTLS(said) {
		return said
	}
	return err
}

// session is a TLS session of http.Transport, which doesn't read any more once it could not write.
type session struct{ *tls.Conn }

func (s session) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		err = explain(s.Conn, err)
	}
	return n, err
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// maxCause is how much is shown of a text that a library or the server wrote, in bytes.
const maxCause = 300

// tlsText says why there is no TLS session, without an address.
func tlsText(err error, own delivery.ClientCertificate) string {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	if errors.As(err, &certificate) {
		return certificateText(certificate)
	}
	if code, is := serverAlert(err); is {
		return delivery.TLSAlert(code, own)
	}
	last := innermost(err).Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the TLS handshake timed out"
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return "the server responded with plain HTTP instead of TLS"
	case errors.As(err, &record):
		return "the server responded with something else than TLS"
	case strings.Contains(last, "unsupported protocol version"):
		return "the server supports only TLS versions older than 1.2"
	case own == delivery.CertificateNone && isClosed(err):
		return "the TLS handshake failed: the server asked for a client certificate, which this endpoint doesn't have, and closed the connection"
	case own == delivery.CertificateSent && isClosed(err):
		return "the TLS handshake failed: the server closed the connection after it got the endpoint's client certificate"
	case isClosed(err):
		return "the TLS handshake failed: the server closed the connection"
	case strings.HasPrefix(last, "tls: "):
		return delivery.Clip("the TLS connection failed: "+strings.TrimPrefix(last, "tls: "), maxCause)
	}
	return "the TLS handshake failed"
}

// certificateText quotes x509, whose texts contain hosts and dates, but no addresses of ours.
func certificateText(e *tls.CertificateVerificationError) string {
	text := delivery.Clip("invalid certificate: "+e.Err.Error(), maxCause)
	var unknown x509.UnknownAuthorityError
	if !errors.As(e.Err, &unknown) || len(e.UnverifiedCertificates) != 1 {
		return text
	}
	if sent := e.UnverifiedCertificates[0]; bytes.Equal(sent.RawIssuer, sent.RawSubject) {
		return text + "; the certificate is self-signed"
	}
	return text + "; the server sent only its own certificate, and must send the intermediate certificates too (browsers hide this)"
}

// isClosed reports whether the other side ended the connection.
func isClosed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
