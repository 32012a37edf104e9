package homes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"

	"posthorn/domain/home"
	"posthorn/domain/id"
)

// Time limits between homes.
const (
	askWithin  = 2 * time.Second
	dialWithin = 2 * time.Second
	// emitWithin is how long a home can take to start its response to an emission: its own limit is 5 s.
	emitWithin = 6 * time.Second
	// anyWithin is the same for all other requests: the slowest test inbox takes 35 s, an import a minute.
	anyWithin = 100 * time.Second
	// downFor is how long an unreachable home is not tried again.
	downFor = time.Second
	// bodyWithin and writeWithin bound how slowly a client sends and reads, as for requests that are served here.
	bodyWithin  = 60 * time.Second
	writeWithin = 90 * time.Second
)

// maxPassing bounds the requests that wait for one home, so that a home without responses does not keep this one busy.
const maxPassing = 512

// peer is another home.
type peer struct {
	home.Home
	emit, any *http.Transport
	down      atomic.Int64 // Unix nanoseconds: not tried before; 0: it responds
	passing   chan struct{}
}

func newPeer(h home.Home) *peer {
	transport := func(header time.Duration) *http.Transport {
		return &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConnsPerHost: maxPassing, IdleConnTimeout: 60 * time.Second, ResponseHeaderTimeout: header,
			DisableCompression: true, TLSHandshakeTimeout: dialWithin,
		}
	}
	return &peer{Home: h, emit: transport(emitWithin), any: transport(anyWithin), passing: make(chan struct{},
		maxPassing)}
}

func (p *peer) isDown(now time.Time) bool { return now.UnixNano() < p.down.Load() }

// noted records whether the home could be reached.
func (p *peer) noted(now time.Time, err error) {
	var dial *net.OpError
	switch {
	case err == nil:
		if p.down.Load() != 0 {
			p.down.Store(0)
		}
	case errors.As(err, &dial) && dial.Op == "dial":
		p.down.Store(now.Add(downFor).UnixNano())
	}
}

// ask asks the home whether it has something.
func (p *peer) ask(ctx context.Context, r *Router, q question) (found bool, err error) {
	if p.isDown(r.Now()) {
		return false, errDown
	}
	err = p.call(ctx, r, "find", q, &found)
	p.noted(r.Now(), err)
	return found, err
}

// maxReply bounds an answer between homes.
const maxReply = 64 << 10

// call sends a question to the home, and reads the answer.
func (p *peer) call(ctx context.Context, r *Router, what string, asked, said any) error {
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL.String()+internalRoot+what,
		bytes.NewReader(body))
	if err != nil {
		return err
	}
	passage := home.Passage{From: r.Self, To: p.Name, At: r.Now().Unix(), Hops: 1}
	req.Header.Set(passageHeader, passage.Sign(r.Secret, req.Method, req.URL.RequestURI()))
	req.Header.Set("Content-Type", "application/json")
	res, err := p.any.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	p.noted(r.Now(), nil)
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("home %s responded with %d", p.Name, res.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(said)
}

// pass passes a request on as a stream, and returns its response.
func (r *Router) pass(w http.ResponseWriter, req *http.Request, to destination, before home.Passage) {
	p := r.others[to.home]
	if p.isDown(r.Now()) {
		r.Refuse(w, req, errDown)
		return
	}
	select {
	case p.passing <- struct{}{}:
		defer func() { <-p.passing }()
	default:
		r.Refuse(w, req, errDown)
		return
	}
	passage := home.Passage{From: r.Self, To: p.Name, At: r.Now().Unix(), Hops: before.Hops + 1, Client: r.client(req)}
	if to.key != nil {
		passage.Key, passage.Scopes = id.Key.Format(to.key.Key), strings.Join(to.key.Scopes.Names(), " ")
	}
	transport := p.any
	if req.Method == http.MethodPost && (strings.HasSuffix(req.URL.Path, "/events") || strings.HasSuffix(req.URL.Path, "/events/batch")) {
		transport = p.emit
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host, pr.Out.Host = p.URL.Scheme, p.URL.Host, req.Host
			pr.Out.Header.Set(passageHeader, passage.Sign(r.Secret, pr.Out.Method, pr.Out.URL.RequestURI()))
		},
		ModifyResponse: func(res *http.Response) error {
			p.noted(r.Now(), nil)
			r.learn(to, res.Header.Get(homeHeader))
			w.Header().Del(homeHeader) // the response has its own
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			p.noted(r.Now(), err)
			if to.of != "" {
				r.known.forget(to.of)
			}
			if req.Context().Err() == nil {
				r.Log.Warn("request not passed on to another home", "home", p.Name, "error", err)
			}
			r.Refuse(w, req, errDown)
		},
		ErrorLog: quiet,
	}
	r.keep(w, req, to.cookie, to.home)
	out := &deadlines{ResponseWriter: w, connection: http.NewResponseController(w)}
	_ = out.connection.SetReadDeadline(time.Now().Add(bodyWithin)) // fails only without a connection, as in tests
	if req.Body != nil {
		req.Body = &received{ReadCloser: req.Body, connection: out.connection}
	}
	proxy.ServeHTTP(out, req)
}

// learn records which home made the response: the one that was asked has possibly passed the request on.
func (r *Router) learn(to destination, made string) {
	if to.of == "" || made == "" {
		return
	}
	if made != r.Self && r.others[made] == nil {
		r.known.forget(to.of)
	} else if known, ok := r.known.get(to.of); !ok || known != made {
		r.known.put(to.of, made)
	}
}

// deadlines sets a deadline for each write of a response: a stream has no end, and a response that is not read must
// end.
type deadlines struct {
	http.ResponseWriter
	connection *http.ResponseController
}

func (d *deadlines) Write(b []byte) (int, error) {
	_ = d.connection.SetWriteDeadline(time.Now().Add(writeWithin))
	return d.ResponseWriter.Write(b)
}

// Unwrap lets a response be flushed.
func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// received removes the deadline of a request once its body has arrived: its response can be a stream.
type received struct {
	io.ReadCloser
	connection *http.ResponseController
}

func (b *received) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}

// quiet drops the proxy's own log lines: ErrorHandler logs the error.
var quiet = log.New(io.Discard, "", 0)
