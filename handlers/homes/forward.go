package homes

import (
	"crypto/sha256"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/home"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/mcp"
	"posthorn/handlers"
)

// subject is whose a request is.
type subject struct {
	tenant   string // an id or an external id
	token    string // a key, or the token of a link
	key      string // the API key beside a tenant
	platform bool   // it is a platform key
	people   bool   // a browser sends it
	page     string // of the tenant
}

// classify reads whose a request is from its path, its key and its query. Another request is nobody's, and is served
// here.
func classify(r *http.Request) (s subject) {
	path := r.URL.EscapedPath()
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if s.key = strings.TrimSpace(key); !accounts.LooksLikeKey(s.key) {
		s.key = ""
	}
	for _, root := range []string{"/api/v1/tenants/", "/svix/api/v1/app/", "/svix/api/v1/auth/app-portal-access/", "/mcp/", httpsig.KeysRoot, mcp.ResourceRoot} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			s.tenant, s.platform = segment(rest), accounts.IsPlatformKey(s.key)
			return s
		}
	}
	if rest, ok := strings.CutPrefix(path, delivery.LinkPath); ok {
		text, _ := seal.ReadToken(segment(rest)) // the tenant's home checks the signature
		if l, ok := delivery.ParseLink(text); ok {
			s.tenant = id.Tenant.Format(l.Tenant)
		}
		return s
	}
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); {
	case first == "api" || first == "svix" || first == "mcp":
		s.token = s.key
	case first == "t" || first == "sso" || first == "shared":
		s.people, s.tenant = true, segment(rest)
		s.page = "/t/" + s.tenant
	case first == "unsubscribe":
		s.tenant = accounts.UnsubscribedTenant(segment(rest))
	case strings.HasPrefix(path, inbox.Path):
		s.token = segment(strings.TrimPrefix(path, inbox.Path))
	case first == "portal" || first == "invitations":
		s.people, s.token, s.page = true, r.URL.Query().Get("token"), "/"
	}
	return s
}

// segment is the first part of a path, unescaped.
func segment(path string) string {
	first, _, _ := strings.Cut(path, "/")
	if text, err := url.PathUnescape(first); err == nil {
		return text
	}
	return first
}

// Time limits between homes.
const (
	dialWithin  = 2 * time.Second
	emitWithin  = 6 * time.Second   // until the response to an emission starts: the other home's own limit is 5 s
	anyWithin   = 100 * time.Second // the same for all others: the slowest test inbox takes 35 s, an import a minute
	writeWithin = 90 * time.Second  // bounds how slowly a client reads, as for requests that are served here
)

// These bound the requests that wait for one home. No key takes all slots. Requests without a key have slots of their
// own, of which one network can have a part. maxBody is more than any route reads.
const (
	maxOfKeys, maxOfKey     = 512, 256
	maxAnonymous, maxOfHost = 256, 64
	maxBody                 = 16 << 20
)

// peer is another home.
type peer struct {
	home.Home
	emit, any       *http.Transport
	keys, anonymous *handlers.Shares
}

func newPeer(h home.Home) *peer {
	transport := func(header time.Duration) *http.Transport {
		return &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConnsPerHost:   maxOfKeys,
			IdleConnTimeout:       60 * time.Second,
			ResponseHeaderTimeout: header,
			DisableCompression:    true,
			TLSHandshakeTimeout:   dialWithin,
		}
	}
	return &peer{
		Home:      h,
		emit:      transport(emitWithin),
		any:       transport(anyWithin),
		keys:      handlers.NewShares(handlers.Share{Limit: maxOfKeys, Err: errDown}, handlers.Share{Limit: maxOfKey, Err: errDown}),
		anonymous: handlers.NewShares(handlers.Share{Limit: maxAnonymous, Err: errDown}, handlers.Share{Limit: maxOfHost, Err: handlers.ErrNetwork}),
	}
}

// forward sends a request to another home once its body has arrived, and returns the response as a stream. A sender
// that is slow takes no slot.
func (r *Router) forward(w http.ResponseWriter, req *http.Request, to *peer, s subject) {
	client := r.Proxies.Client(req)
	if host, _, err := net.SplitHostPort(client); err == nil {
		client = host
	}
	var sender id.UUID // anybody can invent a key
	slots, who := to.anonymous, handlers.Network(client)
	if sum := sha256.Sum256([]byte(s.key)); s.key != "" && r.moved.Load().HomeOf(sum) == to.Name {
		copy(sender[:], sum[:])
		slots, who = to.keys, sender
	}
	release, err := r.Arrive(w, req, sender, maxBody)
	if err == nil {
		defer release()
		err = slots.Hold(who, 1)
	}
	if err != nil {
		r.Refuse(w, req, err)
		return
	}
	held := true
	leave := func() {
		if held {
			slots.Release(who, 1)
		}
		held = false
	}
	defer leave()
	at := *req.URL
	rest, link := strings.CutPrefix(at.Path, "/unsubscribe/")
	if link {
		at.Path, at.RawPath = "/unsubscribe/"+accounts.ForwardedLink(req.Context(), r.DB, r.Ring, rest), ""
	}
	if rest, ok := strings.CutPrefix(at.Path, delivery.LinkPath); ok {
		at.Path, at.RawPath, link = delivery.LinkPath+accounts.ForwardedEventLink(req.Context(), r.DB, r.Ring, rest), "", true
	}
	transport := to.any
	if req.Method == http.MethodPost && (strings.HasSuffix(at.Path, "/events") || strings.HasSuffix(at.Path, "/events/batch")) {
		transport = to.emit
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			at.Scheme, at.Host = to.URL.Scheme, to.URL.Host
			p.Out.URL, p.Out.Host = &at, to.URL.Host
			if link {
				p.Out.Header.Del("Origin") // a page of this host; the link is the only credential
				p.Out.Header.Del("Sec-Fetch-Site")
			}
			p.Out.Header.Set("X-Forwarded-For", client)
			p.Out.Header.Add("Via", r.via())
		},
		ModifyResponse: func(res *http.Response) error {
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				leave() // nobody waits for the home any more, and the stream has no end
			}
			w.Header().Del(homeHeader) // the response has its own
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, req *http.Request, err error) {
			if req.Context().Err() == nil {
				r.Log.Warn("request not forwarded to another home", "home", to.Name, "error", err)
			}
			r.Refuse(w, req, errDown)
		},
		ErrorLog: log.New(io.Discard, "", 0), // ErrorHandler logs the error
	}
	out := &deadlines{ResponseWriter: w, connection: http.NewResponseController(w)}
	// The response can be a stream. What can't set a deadline is no connection, as in tests.
	_ = out.connection.SetReadDeadline(time.Time{})
	proxy.ServeHTTP(out, req)
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
