// Package mailbox serves the links of mails that need no sign-in: the unsubscribe page, and in development the mails
// themselves, which are not sent.
package mailbox

import (
	"net"
	"net/http"
	"net/netip"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB          *db.DB
	Keys        *seal.Ring
	Development bool   // /dev/mail is served
	CronSecret  string // lets an outside scheduler request sweeps; empty: there is no such route
}

// mailbox holds the handlers.
type mailbox struct{ Deps }

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	a := &mailbox{d}
	routes := []handlers.Route{
		open("GET", "/unsubscribe/:token", a.showUnsubscribe),
		open("POST", "/unsubscribe/:token", a.unsubscribe),
	}
	if d.CronSecret != "" {
		routes = append(routes, open("POST", "/internal/sweep", a.sweep))
	}
	if d.Development {
		routes = append(routes,
			open("GET", "/dev/mail", a.list),
			open("GET", "/dev/mail/:mail_id", a.show),
			open("GET", "/dev/mail/:mail_id/html", a.html),
		)
	}
	return routes
}

// maxForm bounds the body of a form.
const maxForm = 16 << 10

func open(method, path string, h handlers.Handler) handlers.Route {
	return handlers.Route{
		Method:  method,
		Path:    path,
		Access:  handlers.Access{Public: true},
		MaxBody: maxForm,
		Handler: h,
	}
}

// onlyHere rejects requests that reached this machine under another name than its own. Another site can point its
// name here to read the mails (DNS rebinding).
func onlyHere(c *handlers.Call) error {
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return fault.ErrNotFound
}

func (a *mailbox) list(c *handlers.Call) error {
	if err := onlyHere(c); err != nil {
		return err
	}
	mails, waiting, err := accounts.KeptMails(c.Ctx(), a.DB, a.Keys)
	if err != nil {
		return err
	}
	v := pages.MailboxView{Shell: c.Shell("Emails", ""), Waiting: waiting}
	if waiting > 0 {
		c.Writer.Header().Set("Refresh", "1") // until they are here
	}
	for _, m := range mails {
		v.Mails = append(v.Mails, pages.MailLine{
			ID:      id.Mail.Format(m.ID),
			At:      m.At,
			To:      m.To,
			Subject: m.Subject,
			Kind:    string(m.Kind),
		})
	}
	return c.Render(http.StatusOK, pages.Mailbox(v))
}

// kept is the mail that the path names.
func (a *mailbox) kept(c *handlers.Call) (m mail.Kept, err error) {
	if err := onlyHere(c); err != nil {
		return m, err
	}
	mailID := c.PathID("mail_id")
	return accounts.KeptMail(c.Ctx(), a.DB, a.Keys, mailID)
}

// show shows a mail as plain text, with its headers.
func (a *mailbox) show(c *handlers.Call) error {
	m, err := a.kept(c)
	if err != nil {
		return err
	}
	v := pages.MailView{
		Shell:       c.Shell(m.Subject, ""),
		ID:          id.Mail.Format(m.ID),
		At:          m.At,
		From:        m.From,
		To:          m.To,
		Subject:     m.Subject,
		Text:        m.Text,
		Unsubscribe: m.Headers["List-Unsubscribe"],
	}
	return c.Render(http.StatusOK, pages.Mail(v))
}

// html shows a mail as a mail program does. Nothing in it can run or load resources.
func (a *mailbox) html(c *handlers.Call) error {
	m, err := a.kept(c)
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(m.HTML))
	return nil
}
