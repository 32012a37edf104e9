package send

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/signature"
)

// dialer opens connections for endpoints: directly, or through a proxy.
type dialer struct {
	guard *guard
	proxy *egress.Proxy // nil: directly
}

// dial opens a connection to a host and port. The guard judges the address first, and the proxy gets the address. TLS
// is the caller's, end to end.
func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.proxy == nil {
		return d.guard.dial(ctx, network, address)
	}
	p, _ := ctx.Value(phasesKey{}).(*phases)
	if p != nil {
		p.proxied.Store(true)
	}
	targets, err := d.targets(ctx, p, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for i, target := range targets {
		conn, tried := d.tunnel(ctx, p, target, len(targets)-i)
		if tried == nil {
			if p != nil {
				p.mark(&p.connected)
			}
			return conn, nil
		}
		err = tried
		if isOf(err, delivery.FailProxy) || ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// targets are what the proxy is asked for: the addresses of the host, all of which the policy has checked, or the
// host's name if the proxy resolves names.
func (d dialer) targets(ctx context.Context, p *phases, address string) ([]string, error) {
	host, port, err := splitTarget(address)
	if err != nil {
		return nil, err
	}
	if d.proxy.ResolveNames {
		if _, notAddr := netip.ParseAddr(host); notAddr != nil {
			// Nothing here sees the address, so nothing is sent unencrypted.
			if err := d.guard.policy.CheckProxied(host, port); err != nil || p != nil && p.plain {
				return nil, errBlocked(egress.ErrBlocked)
			}
			return []string{address}, nil
		}
	}
	addrs, check, err := d.guard.resolved(ctx, p, host, port, make([]netip.Addr, 1))
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, a := range alternate(addrs) {
		at := netip.AddrPortFrom(a, port)
		if err := check(at); err != nil {
			return nil, errBlocked(err)
		}
		targets = append(targets, at.String())
	}
	return targets, nil
}

// tunnel opens a connection to a target within its share of the time that is left for all.
func (d dialer) tunnel(ctx context.Context, p *phases, target string, left int) (net.Conn, error) {
	until, _ := ctx.Deadline() // dial has set one
	bounded, cancel := context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
	defer cancel()
	conn, err := d.toProxy(bounded)
	if err != nil {
		return nil, err
	}
	rest := context.AfterFunc(bounded, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	ask := d.connect
	if d.proxy.Type == egress.ProxySOCKS5 {
		ask = d.socks
	}
	err = ask(conn, p, target)
	if !rest() && err == nil {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return conn, nil
	}
	_ = conn.Close()
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) {
		return nil, cause
	}
	return nil, d.explain(ctx, p, err)
}

// toProxy connects to the proxy, which has a policy of its own.
func (d dialer) toProxy(ctx context.Context) (net.Conn, error) {
	conn, err := d.guard.proxies.dial(context.WithValue(ctx, phasesKey{}, (*phases)(nil)), "tcp", d.proxy.Address)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	}
	return nil, proxyFailed("it was not reached: "+err.Error(), err)
}

// explain makes a failed request to the proxy one of the proxy or one of the receiver. A proxy that took the request
// and says nothing either hangs, or waits for the receiver.
func (d dialer) explain(ctx context.Context, p *phases, err error) error {
	var known *dialError
	if errors.As(err, &known) {
		return err
	}
	var network net.Error
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	switch {
	case timedOut && (d.greeted(p) || d.alive(ctx)):
		return &dialError{delivery.FailConnect, "no connection in time through the egress proxy", err}
	case timedOut:
		return proxyFailed("it did not respond in time", err)
	case isClosed(err):
		return proxyFailed("it closed the connection", err)
	}
	return proxyFailed("its response is not valid", err)
}

// greeted reports whether the proxy has responded that it works.
func (d dialer) greeted(p *phases) bool {
	return d.proxy.Type == egress.ProxySOCKS5 && p != nil && p.reached.Load() > 0
}

// aliveWithin bounds the question whether a silent proxy responds at all.
const aliveWithin = 2 * time.Second

// alive reports whether an HTTP proxy responds to anything.
func (d dialer) alive(ctx context.Context) bool {
	if d.proxy.Type != egress.ProxyHTTP {
		return false // SOCKS5 has greeted, or not
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveWithin)
	defer cancel()
	conn, err := d.toProxy(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(aliveWithin))
	if _, err := io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: "+d.proxy.Address+"\r\nConnection: close\r\n\r\n"); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// connect asks an HTTP proxy for a tunnel (RFC 9110 section 9.3.6).
func (d dialer) connect(conn net.Conn, p *phases, target string) error {
	if p != nil {
		p.mark(&p.reached)
	}
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: " + signature.UserAgent + "\r\n"
	if d.proxy.Username != "" {
		credentials := base64.StdEncoding.EncodeToString([]byte(d.proxy.Username + ":" + d.proxy.Password))
		request += "Proxy-Authorization: Basic " + credentials + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxAnswerHead))
	//nolint:bodyclose // the connection is the body
	answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 200 && answer.StatusCode < 300 && in.Buffered() == 0:
		return nil
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return proxyFailed("it sent something before the receiver was asked", nil)
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return proxyFailed("it did not accept the username and password", nil)
	case unreached(answer, d.proxy.ResolveNames):
		return &dialError{delivery.FailConnect, "the egress proxy could not connect to the endpoint", nil}
	}
	return proxyFailed(fmt.Sprintf("it refused the connection with %d", answer.StatusCode), nil)
}

// receiverErrors are the types of errors in Proxy-Status (RFC 9209 section 2.3) that are the receiver's.
var receiverErrors = []string{
	"dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_unroutable",
	"connection_refused", "connection_terminated", "connection_timeout", "connection_read_timeout", "connection_write_timeout",
}

// unreached reports whether a proxy says that it could not reach the receiver: by Proxy-Status, by Squid's own header,
// or by the statuses that RFC 9110 has for gateways. A bare 503 is the proxy's own overload by the same text.
func unreached(answer *http.Response, named bool) bool {
	if status := strings.Join(answer.Header.Values("Proxy-Status"), ","); strings.Contains(status, "error=") {
		_, said, _ := strings.Cut(status, "error=")
		for _, of := range receiverErrors {
			if said == of || strings.HasPrefix(said, of+";") || strings.HasPrefix(said, of+",") {
				return true
			}
		}
		return false
	}
	switch squid, _, _ := strings.Cut(answer.Header.Get("X-Squid-Error"), " "); squid {
	case "ERR_CONNECT_FAIL", "ERR_DNS_FAIL", "ERR_READ_TIMEOUT", "ERR_READ_ERROR", "ERR_ZERO_SIZE_OBJECT":
		return true
	case "ERR_CANNOT_FORWARD":
		return named // the name has no address
	case "":
		return answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusGatewayTimeout
	}
	return false
}

// The numbers of SOCKS5 (RFC 1928, RFC 1929).
const (
	socksVersion  = 5
	socksNone     = 0
	socksPassword = 2
	socksConnect  = 1
	socksIPv4     = 1
	socksName     = 3
	socksIPv6     = 4
)

// socksReplies are why a SOCKS5 proxy made no connection. The second half is the receiver's.
var socksReplies = map[byte]struct {
	text     string
	receiver bool
}{
	1: {"it failed", false},
	2: {"its rules refuse the connection", false},
	3: {"network unreachable", true},
	4: {"host unreachable", true},
	5: {"connection refused", true},
	6: {"no connection in time", true},
	7: {"it does not support the command", false},
	8: {"it does not support the type of address", false},
}

// socks asks a SOCKS5 proxy for a connection.
func (d dialer) socks(conn net.Conn, p *phases, target string) error {
	if err := d.greet(conn); err != nil {
		return err
	}
	if p != nil {
		p.mark(&p.reached)
	}
	host, port, err := splitTarget(target)
	if err != nil {
		return err
	}
	request := []byte{socksVersion, socksConnect, 0}
	if addr, notAddr := netip.ParseAddr(host); notAddr != nil {
		request = append(request, socksName, byte(len(host)))
		request = append(request, host...)
	} else {
		kind := byte(socksIPv6)
		if addr.Is4() {
			kind = socksIPv4
		}
		request = append(append(request, kind), addr.AsSlice()...)
	}
	if _, err := conn.Write(binary.BigEndian.AppendUint16(request, port)); err != nil {
		return err
	}
	var head [5]byte // version, reply, reserved, type, and the first byte of the address
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion {
		return proxyFailed("its response is not SOCKS5", nil)
	}
	if head[1] != 0 {
		if r := socksReplies[head[1]]; r.receiver {
			return &dialError{delivery.FailConnect, r.text + ", as the egress proxy says", nil}
		} else if r.text != "" {
			return proxyFailed(r.text, nil)
		}
		return proxyFailed(fmt.Sprintf("it refused the connection with the reply %d", head[1]), nil)
	}
	rest := map[byte]int{socksIPv4: 4 - 1 + 2, socksIPv6: 16 - 1 + 2, socksName: int(head[4]) + 2}[head[3]]
	if rest == 0 {
		return proxyFailed("its response is not SOCKS5", nil)
	}
	_, err = io.ReadFull(conn, make([]byte, rest))
	return err
}

// greet agrees on how to authenticate, and does.
func (d dialer) greet(conn net.Conn) error {
	method := byte(socksNone)
	if d.proxy.Username != "" {
		method = socksPassword
	}
	if _, err := conn.Write([]byte{socksVersion, 1, method}); err != nil {
		return err
	}
	var answer [2]byte
	switch _, err := io.ReadFull(conn, answer[:]); {
	case err != nil:
		return err
	case answer[0] != socksVersion:
		return proxyFailed("its response is not SOCKS5", nil)
	case answer[1] != method && method == socksNone:
		return proxyFailed("it requires a username and password", nil)
	case answer[1] != method:
		return proxyFailed("it does not accept a username and password", nil)
	case method == socksNone:
		return nil
	}
	request := append([]byte{1, byte(len(d.proxy.Username))}, d.proxy.Username...)
	request = append(append(request, byte(len(d.proxy.Password))), d.proxy.Password...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer[:]); err != nil || answer[1] != 0 {
		return proxyFailed("it did not accept the username and password", err)
	}
	return nil
}

// proxyFailed is a failure of the proxy itself, which says nothing about the endpoint.
func proxyFailed(text string, cause error) error {
	return &dialError{delivery.FailProxy, "the egress proxy failed: " + text, cause}
}

// isOf reports whether a connection failed in a way.
func isOf(err error, f delivery.Failure) bool {
	var dial *dialError
	return errors.As(err, &dial) && dial.failure == f
}

func splitTarget(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errBlocked(err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || host == "" {
		return "", 0, errBlocked(err)
	}
	return host, uint16(n), nil
}

func errBlocked(cause error) error { return &dialError{delivery.FailBlocked, "blocked address", cause} }
