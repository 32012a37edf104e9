package handlers

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/gorilla/sessions"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// Sessions stores sessions in PostgreSQL: a cookie holds a random token, the table its hash. It is a sessions.Store.
type Sessions struct {
	db     *db.DB
	secure bool // cookies are for https alone
	home   string
}

// Of returns the store with cookies named for a home, so that a browser can be signed in to several. An empty name
// changes nothing.
func (s *Sessions) Of(home string) *Sessions {
	s.home = home
	return s
}

// NewSessions creates a store. Cookies are Secure and bound to the host, unless the server is reached by plain http on
// this machine, where browsers would not keep such cookies.
func NewSessions(d *db.DB, baseURL string) *Sessions {
	return &Sessions{db: d, secure: !Development(baseURL)}
}

// Development reports whether a server is reached by plain http on this machine alone.
func Development(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// The names of cookies. The prefix makes browsers reject a cookie that another host or a plain connection sets (RFC
// 6265bis, section 4.1.3.2).
var cookieNames = map[account.Kind]string{account.Person: "posthorn", account.Operator: "posthorn-console", account.Portal: "posthorn-portal"}

// Cookie is the name of the cookie of a kind of session.
func (s *Sessions) Cookie(kind account.Kind) string {
	name := cookieNames[kind]
	if s.home != "" {
		name += "-" + s.home
	}
	if s.secure {
		name = "__Host-" + name
	}
	return name
}

func (s *Sessions) kind(cookie string) account.Kind {
	for kind := range cookieNames {
		if s.Cookie(kind) == cookie {
			return kind
		}
	}
	return ""
}

// options are a cookie's attributes. A portal can be in a frame of the provider's page. Browsers keep no cookie there
// except for one with SameSite=None, partitioned by the page around it.
func (s *Sessions) options(kind account.Kind) *sessions.Options {
	o := &sessions.Options{
		Path:     "/",
		MaxAge:   int(kind.Life().Seconds()),
		HttpOnly: true,
		Secure:   s.secure,
		SameSite: http.SameSiteLaxMode,
	}
	if kind == account.Portal && s.secure {
		o.SameSite, o.Partitioned = http.SameSiteNoneMode, true
	}
	return o
}

// valueKey is the key of the session itself in session.Values, which also has the texts for the next page.
type valueKey int

const (
	rowValue   valueKey = 0
	watchValue valueKey = 1
)

// Get is the request's session under a cookie's name.
func (s *Sessions) Get(r *http.Request, cookie string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(s, cookie)
}

// New finds the session of the request's cookie, or creates an empty one (IsNew). It deletes a session that has
// expired, or whose person is disabled, so that the session can never become valid again.
func (s *Sessions) New(r *http.Request, cookie string) (*sessions.Session, error) {
	kind := s.kind(cookie)
	session := sessions.NewSession(s, cookie)
	session.Options, session.IsNew = s.options(kind), true
	c, err := r.Cookie(cookie)
	if err != nil || len(c.Value) != tokenLength {
		return session, nil
	}
	row, err := accounts.FindSession(r.Context(), s.db, kind, c.Value)
	if err != nil {
		if fault.Is(err, fault.ErrNotFound.Code) {
			err = nil
		}
		return session, err
	}
	session.ID, session.IsNew = c.Value, false
	session.Values[rowValue] = row
	var kept sessionData
	if json.Unmarshal(row.Data, &kept) == nil {
		for _, text := range kept.Flashes {
			session.AddFlash(text)
		}
		session.Values[watchValue] = kept.Watch
	}
	return session, nil
}

// tokenLength is that of 32 bytes in base64 without padding.
const tokenLength = 43

// sessionData is what a session stores besides its owner.
type sessionData struct {
	Flashes []string `json:"flashes,omitempty"` // shown on the next page, once
	Watch   watch    `json:"watch,omitzero"`
}

// watch is the bulk job whose progress every page of its tenant shows.
type watch struct {
	Tenant id.UUID `json:"tenant"`
	Job    id.UUID `json:"job"`
}

// Save stores the session's data and sends the browser its cookie. A negative MaxAge ends the session.
func (s *Sessions) Save(r *http.Request, w http.ResponseWriter, session *sessions.Session) error {
	ctx := r.Context()
	row, known := session.Values[rowValue].(account.Session)
	if session.Options.MaxAge < 0 {
		http.SetCookie(w, sessions.NewCookie(session.Name(), "", session.Options))
		if !known {
			return nil
		}
		delete(session.Values, rowValue)
		return accounts.DeleteSession(ctx, s.db, row.ID)
	}
	if !known {
		http.SetCookie(w, sessions.NewCookie(session.Name(), session.ID, session.Options))
		return nil
	}
	var kept sessionData
	kept.Watch, _ = session.Values[watchValue].(watch)
	if flashes, ok := session.Values["_flash"].([]any); ok {
		for _, one := range flashes {
			if text, ok := one.(string); ok {
				kept.Flashes = append(kept.Flashes, text)
			}
		}
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return accounts.SaveSessionData(ctx, s.db, row.ID, data)
}

// SignedInAs is the browser's session of a kind, also on public pages and before its second factor; nil: none.
func (c *Call) SignedInAs(kind account.Kind) (*account.Session, error) {
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(kind))
	if err != nil {
		return nil, err
	}
	if row, ok := s.Values[rowValue].(account.Session); ok {
		return &row, nil
	}
	return nil, nil
}

// SetSession gives the browser the token of a new session. It ends the browser's former session, if any: a token that
// was known before the sign-in has no value after it.
func (c *Call) SetSession(kind account.Kind, token string) error {
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(kind))
	if err != nil {
		return err
	}
	if row, ok := s.Values[rowValue].(account.Session); ok {
		if err := accounts.DeleteSession(c.Ctx(), c.kit.sessions.db, row.ID); err != nil {
			return err
		}
	}
	return c.RenewSession(kind, token)
}

// RenewSession gives the browser a new token of its session.
func (c *Call) RenewSession(kind account.Kind, token string) error {
	s := sessions.NewSession(c.kit.sessions, c.kit.sessions.Cookie(kind))
	s.Options, s.ID = c.kit.sessions.options(kind), token
	return s.Save(c.Request, c.Writer)
}

// EndSession ends the browser's session of a kind.
func (c *Call) EndSession(kind account.Kind) error {
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(kind))
	if err != nil {
		return err
	}
	s.Options.MaxAge = -1
	return s.Save(c.Request, c.Writer)
}

// Flash keeps a text for the next page of this session. Without a session it does nothing.
func (c *Call) Flash(text string) {
	if c.Actor.Session == nil {
		return
	}
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(c.Actor.Session.Kind))
	if err != nil {
		return
	}
	s.AddFlash(text)
	if err := s.Save(c.Request, c.Writer); err != nil {
		c.kit.log.Warn("message for the next page not kept", "error", err)
	}
}

// Watch shows the progress of a job of the caller's tenant on each page of this session, until Unwatch.
func (c *Call) Watch(job id.UUID) { c.watch(watch{Tenant: c.Actor.Tenant, Job: job}) }

// Watches says whether this session's pages show the progress of a job.
func (c *Call) Watches(job id.UUID) bool { return c.watched() == job }

// Unwatch ends Watch, if it is for this job.
func (c *Call) Unwatch(job id.UUID) {
	if c.watched() == job {
		c.watch(watch{})
	}
}

func (c *Call) watch(w watch) {
	if c.Actor.Session == nil {
		return
	}
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(c.Actor.Session.Kind))
	if err == nil {
		s.Values[watchValue] = w
		err = s.Save(c.Request, c.Writer)
	}
	if err != nil {
		c.kit.log.Warn("job to watch not kept", "error", err)
	}
}

// watched is the job that this session watches in the caller's tenant; zero: none.
func (c *Call) watched() id.UUID {
	if c.Actor.Session == nil {
		return id.UUID{}
	}
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(c.Actor.Session.Kind))
	if err != nil {
		return id.UUID{}
	}
	if w, ok := s.Values[watchValue].(watch); ok && w.Tenant == c.Actor.Tenant {
		return w.Job
	}
	return id.UUID{}
}

// FlashTo is Flash on a public page, for a session of the browser.
func (c *Call) FlashTo(session *account.Session, text string) error {
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(session.Kind))
	if err != nil {
		return err
	}
	s.AddFlash(text)
	return s.Save(c.Request, c.Writer)
}

// flashes returns the texts that were kept for this page, and deletes them.
func (c *Call) flashes() []string {
	if c.Actor.Session == nil {
		return nil
	}
	s, err := c.kit.sessions.Get(c.Request, c.kit.sessions.Cookie(c.Actor.Session.Kind))
	if err != nil {
		return nil
	}
	var texts []string
	for _, one := range s.Flashes() {
		if text, ok := one.(string); ok {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 {
		if err := s.Save(c.Request, c.Writer); err != nil {
			c.kit.log.Warn("message shown and not forgotten", "error", err)
		}
	}
	return texts
}

// SignedIn is the browser's session of a person, also on public pages; nil if nobody is signed in.
func (c *Call) SignedIn() (*account.Session, error) { return c.SignedInAs(account.Person) }

// SignedInHere is SignedIn for the account itself: it is also nil before the second factor, and if a tenant's identity
// provider signed the person in.
func (c *Call) SignedInHere() (*account.Session, error) {
	session, err := c.SignedIn()
	if err != nil || session == nil || session.Pending || session.Only != nil {
		return nil, err
	}
	return session, nil
}
