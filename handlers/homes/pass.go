package homes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/handlers"
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
	// writeWithin bounds how slowly a client reads, as for requests that are served here.
	writeWithin = 90 * time.Second
)

// These bound the requests that wait for one home, so that a home without responses does not keep this one busy. No key
// takes all slots. Strangers have slots of their own, of which one network can have a part.
const (
	maxPassing   = 512
	maxOfKey     = maxPassing / 2
	maxAnonymous = 256
	maxNetwork   = 64
)

// maxPassed bounds the body of a request that is passed on: more than any route reads.
const maxPassed = 16 << 20

// peer is another home.
type peer struct {
	home.Home
	emit, any *http.Transport
	down      atomic.Int64 // Unix nanoseconds: not tried before; 0: it responds
	// slots of requests, by key, and of strangers, by network
	passing, anonymous *handlers.Shares
}

func newPeer(h home.Home) *peer {
	transport := func(header time.Duration) *http.Transport {
		return &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConnsPerHost:   maxPassing,
			IdleConnTimeout:       60 * time.Second,
			ResponseHeaderTimeout: header,
			DisableCompression:    true,
			TLSHandshakeTimeout:   dialWithin,
		}
	}
	p := &peer{
		Home:    h,
		emit:    transport(emitWithin),
		any:     transport(anyWithin),
		passing: handlers.NewShares(handlers.Share{Limit: maxPassing, Err: errDown}, handlers.Share{Limit: maxOfKey, Err: errDown}),
		anonymous: handlers.NewShares(handlers.Share{Limit: maxAnonymous, Err: errDown},
			handlers.Share{Limit: maxNetwork, Err: handlers.ErrNetwork}),
	}
	p.anonymous.Scarce = maxNetwork / 4
	return p
}

// enter takes a slot for a request. The returned function gives it back, once.
func (p *peer) enter(sender id.UUID, client string) (leave func(), err error) {
	slots := p.passing
	if sender.IsZero() {
		slots, sender = p.anonymous, handlers.Network(client)
	}
	if err := slots.Hold(sender, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { slots.Release(sender, 1) }), nil
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL.String()+internalRoot+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	passage := home.Passage{
		From:  r.Self,
		To:    p.Name,
		At:    r.Now().Unix(),
		Hops:  1,
		Nonce: newNonce(),
		Body:  encodeDigest(sum[:]),
	}
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

// pass passes a request on once its body has arrived, and returns its response as a stream. A sender that is slow takes
// no slot.
func (r *Router) pass(w http.ResponseWriter, req *http.Request, to destination, before home.Passage) {
	p := r.others[to.home]
	if p.isDown(r.Now()) {
		r.Refuse(w, req, errDown)
		return
	}
	client := r.client(req)
	release, err := r.Arrive(w, req, to.sender, maxPassed)
	if err != nil {
		r.Refuse(w, req, err)
		return
	}
	defer release()
	leave, err := p.enter(to.sender, client)
	if err != nil {
		r.Refuse(w, req, err)
		return
	}
	defer leave()
	passage := home.Passage{
		From:   r.Self,
		To:     p.Name,
		At:     r.Now().Unix(),
		Hops:   before.Hops + 1,
		Client: client,
		Nonce:  newNonce(),
	}
	if passage.Body, err = digest(req); err != nil {
		r.Refuse(w, req, err)
		return
	}
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
			r.learn(to, res)
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				leave() // nobody waits for the home any more, and the stream has no end
			}
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
	// The response can be a stream. What can't set a deadline is no connection, as in tests.
	_ = out.connection.SetReadDeadline(time.Time{})
	proxy.ServeHTTP(out, req)
}

// learn records which home made the response: the one that was asked has possibly passed the request on. A key that was
// rejected is known no more.
func (r *Router) learn(to destination, res *http.Response) {
	made := res.Header.Get(homeHeader)
	if to.of == "" || made == "" {
		return
	}
	if made != r.Self && r.others[made] == nil || res.StatusCode == http.StatusUnauthorized {
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

// quiet drops the proxy's own log lines: ErrorHandler logs the error.
var quiet = log.New(io.Discard, "", 0)
