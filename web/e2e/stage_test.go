//go:build e2e && unix

package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"posthorn/tools/look"
)

const password = "correct horse battery 9"

// stage is an installation that people use in a browser. What they do is apart by tenant.
type stage struct {
	*world
	url     string
	server  *process
	browser *look.Browser
	// provider has a page that shows the server in a frame; the server allows it.
	provider *httptest.Server
	people   atomic.Int64

	mails sync.Map // text by the path of /dev/mail
}

func newStage(t *testing.T, environ ...string) *stage {
	t.Helper()
	browser := look.Open(t)
	s := &stage{world: newWorld(t, nil), browser: browser, provider: providerPage(t)}
	s.environ = append(s.environ, "POSTHORN_EGRESS_ADDRESSES=203.0.113.7", "POSTHORN_FRAME_ANCESTORS="+s.provider.URL)
	s.environ = append(s.environ, environ...)
	s.server = s.launch("posthorn", "serve").ready()
	s.serveAt(s.server)
	s.url = s.server.url
	return s
}

// visitor is somebody with a browser's cookies, whose forms are sent without one: what leads up to a journey.
type visitor struct {
	t      *testing.T
	s      *stage
	email  string
	client http.Client
}

func (s *stage) visitor(t *testing.T, email string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t: t, s: s, email: email, client: http.Client{Jar: jar, Timeout: client.Timeout}}
}

// page asks for a page, following where it leads.
func (v *visitor) page(path string) (status int, header http.Header, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.s.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	return v.do(req)
}

// send sends a form that must be taken.
func (v *visitor) send(path string, form url.Values) string {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, _, body := v.do(req)
	if status/100 != 2 {
		v.t.Fatalf("%s %v: %d %s", path, form, status, body)
	}
	return body
}

func (v *visitor) do(req *http.Request) (int, http.Header, string) {
	v.t.Helper()
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// tab opens a browser that is signed in as the visitor is.
func (v *visitor) tab(view look.View) *look.Tab {
	v.t.Helper()
	at, err := url.Parse(v.s.url)
	if err != nil {
		v.t.Fatal(err)
	}
	tab := v.s.browser.Visitor(v.t, view)
	tab.SetCookies(v.s.url, v.client.Jar.Cookies(at))
	return tab
}

// mailID is how /dev/mail names a mail.
var mailID = regexp.MustCompile(`eml_[a-z0-9]+`)

// mailed waits for a mail to an address with a link that begins so, and gives the link as a path.
func (s *stage) mailed(t *testing.T, to, path string) (link string) {
	t.Helper()
	pattern := regexp.MustCompile(regexp.QuoteMeta(s.url) + `(` + regexp.QuoteMeta(path) + `[^\s"<>]*)`)
	nobody := s.visitor(t, "")
	eventually(t, patience, "a mail to "+to+" with "+path, func() bool {
		_, _, list := nobody.page("/dev/mail")
		for _, name := range mailID.FindAllString(list, -1) {
			text, known := s.mails.Load(name)
			if !known {
				_, _, body := nobody.page("/dev/mail/" + name)
				text = html.UnescapeString(body)
				s.mails.Store(name, text)
			}
			if found := pattern.FindStringSubmatch(text.(string)); found != nil && strings.Contains(text.(string), to) {
				link = found[1]
				return true
			}
		}
		return false
	})
	return link
}

// token is the token in a link.
func token(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}

// firm is a tenant whose owner has signed up, with a key, and one receiver.
type firm struct {
	*world
	s        *stage
	owner    *visitor
	root     string // /t/ten_...
	customer *customer
}

// office signs somebody up.
func (s *stage) office(t *testing.T, name string) *firm {
	t.Helper()
	owner := s.visitor(t, fmt.Sprintf("owner-%d@example.com", s.people.Add(1)))
	owner.send("/sign-up", url.Values{"tenant": {name}, "name": {"Ada Lovelace"}, "email": {owner.email}})
	owner.send("/verify-email", url.Values{"token": {token(t, s.mailed(t, owner.email, "/verify-email?"))}, "password": {password}})
	return s.officeOf(t, owner)
}

// officeOf is the tenant of somebody who is signed in.
func (s *stage) officeOf(t *testing.T, owner *visitor) *firm {
	t.Helper()
	_, _, body := owner.page("/")
	root := regexp.MustCompile(`/t/ten_[a-z0-9]+`).FindString(body)
	if root == "" {
		t.Fatalf("%s sees no tenant: %s", owner.email, body)
	}
	o := &firm{
		world:    &world{t: t, environ: s.environ, sql: s.sql, tenant: strings.TrimPrefix(root, "/t/")},
		s:        s,
		owner:    owner,
		root:     root,
		customer: newCustomer(t),
	}
	o.webs.Store(s.webs.Load())
	var made struct {
		Key string `json:"api_key"`
	}
	command(t, o.environ, place{}, &made, "key", "create", "--tenant", o.tenant, "--scopes", "all", "--json")
	o.key = made.Key
	return o
}

// join lets somebody accept an invitation in a role.
func (o *firm) join(role string) *visitor {
	o.t.Helper()
	v := o.s.visitor(o.t, fmt.Sprintf("%s-%d@example.com", role, o.s.people.Add(1)))
	o.manage(http.MethodPost, "/invitations", settings{"email": v.email, "role": role}, nil)
	link := o.s.mailed(o.t, v.email, "/invitations/accept?")
	v.send("/invitations/accept", url.Values{"token": {token(o.t, link)}, "name": {"Grace Hopper"}, "password": {password}})
	return v
}

// endpoint makes an endpoint at a path of the customer's and waits until it is active.
func (o *firm) endpoint(path string, change settings) (id, secret string) {
	o.t.Helper()
	s := settings{"url": o.customer.url + path, "retry_policy": settings{"name": "quick"}}
	for name, value := range change {
		s[name] = value
	}
	var made struct{ ID, Secret string }
	o.manage(http.MethodPost, "/endpoints", s, &made)
	eventually(o.t, patience, "endpoint "+path+" is active", func() bool {
		var now struct{ Status string }
		o.manage(http.MethodGet, "/endpoints/"+made.ID, nil, &now)
		return now.Status == "active"
	})
	return made.ID, made.Secret
}

// emitted sends an event as the tenant's product does.
func (o *firm) emitted(typ, data string) (id string) {
	o.t.Helper()
	status, answer, err := o.call(http.MethodPost, o.web()+"/api/v1/events", fmt.Sprintf(`{"type":%q,"data":%s}`, typ, data), "")
	found := regexp.MustCompile(`evt_[a-z0-9]+`).Find(answer)
	if err != nil || status != http.StatusAccepted || found == nil {
		o.t.Fatalf("an event was answered %d %s %v", status, answer, err)
	}
	return string(found)
}

// deliveries counts the tenant's deliveries in a status, up to a page of them, and gives the newest one's id.
func (o *firm) deliveries(status string) (n int, newest string) {
	o.t.Helper()
	var list struct{ Data []struct{ ID string } }
	o.manage(http.MethodGet, "/deliveries?limit=250&status="+status, nil, &list)
	if len(list.Data) > 0 {
		newest = list.Data[0].ID
	}
	return len(list.Data), newest
}

// await waits until so many deliveries have a status, and gives the newest one's id.
func (o *firm) await(status string, n int) (newest string) {
	o.t.Helper()
	eventually(o.t, patience, fmt.Sprintf("%d deliveries are %s", n, status), func() bool {
		var got int
		got, newest = o.deliveries(status)
		return got >= n
	})
	return newest
}

// customer is a receiver that proves itself, keeps what comes, and answers as it is told to.
type customer struct {
	url    string
	status atomic.Int64 // 200 unless set

	mu  sync.Mutex
	got []request
}

type request struct {
	path   string
	header http.Header
	body   []byte
}

func newCustomer(t *testing.T) *customer {
	t.Helper()
	c := &customer{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *customer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var event struct {
		Type string
		Data json.RawMessage
	}
	if json.Unmarshal(body, &event) == nil && event.Type == "endpoint.verification" {
		_, _ = w.Write(event.Data)
		return
	}
	c.mu.Lock()
	c.got = append(c.got, request{r.URL.Path, r.Header.Clone(), body})
	c.mu.Unlock()
	status := int(c.status.Load())
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"answered":%d}`, status)
}

// requests is a copy of what has come, verifications left out.
func (c *customer) requests() []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]request(nil), c.got...)
}
