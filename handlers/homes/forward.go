package homes

import (
	"context"
	"crypto/sha256"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"posthorn/db/accounts"
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
	if tenant, ok := accounts.LinkTenant(path); ok {
		s.tenant = id.Tenant.Format(tenant) // its home checks the signature
		return s
	}
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); {
	case first == "api" || first == "svix" || first == "mcp":
		s.token = s.key
	case first == "t" || first == "sso" || first == "shared":
		s.people, s.tenant = true, segment(rest)
		s.page = "/t/" + s.tenant
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
	emitWithin  = 6 * time.Second   // for the response to an emission: the other home's own limit is 5 s
	anyWithin   = 100 * time.Second // until all others start: the slowest test inbox takes 35 s, an import a minute
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
	transport       *http.Transport
	keys, anonymous *handlers.Shares
}

func newPeer(h home.Home) *peer {
	return &peer{
		Home: h,
		transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext,
			MaxIdleConnsPerHost:   maxOfKeys,
			IdleConnTimeout:       60 * time.Second,
			ResponseHeaderTimeout: anyWithin,
			DisableCompression:    true,
			TLSHandshakeTimeout:   dialWithin,
		},
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
	leave := sync.OnceFunc(func() { slots.Release(who, 1) })
	defer leave()
	at := *req.URL
	_, link := accounts.LinkTenant(at.Path)
	if link {
		at.Path, at.RawPath = accounts.ForwardedLink(req.Context(), r.DB, r.Ring, at.Path), ""
	}
	ctx := req.Context()
	if req.Method == http.MethodPost && (strings.HasSuffix(at.Path, "/events") || strings.HasSuffix(at.Path, "/events/batch")) {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, emitWithin)
		defer end()
	}
	proxy := &httputil.ReverseProxy{
		Transport: to.transport,
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
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if req.Context().Err() == nil { // the client still waits
				r.Log.Warn("request not forwarded to another home", "home", to.Name, "error", err)
			}
			r.Refuse(w, req, errDown)
		},
		ErrorLog: log.New(io.Discard, "", 0), // ErrorHandler logs the error
	}
	out := &deadlines{ResponseWriter: w, connection: http.NewResponseController(w)}
	// The response can be a stream. What can't set a deadline is no connection, as in tests.
	_ = out.connection.SetReadDeadline(time.Time{})
	proxy.ServeHTTP(out, req.WithContext(ctx))
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
