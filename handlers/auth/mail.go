package auth

import (
	"encoding/hex"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
)

// link is the URL in a mail.
func (a *auth) link(path, token string) string {
	return a.BaseURL + path + "?token=" + url.QueryEscape(token)
}

func (a *auth) until(life time.Duration) time.Time {
	return a.Now().Add(life).UTC().Truncate(time.Second)
}

// mail queues a mail with a link. The mail's key is made from the hash of the token, so a link is mailed once.
func (a *auth) mail(c *handlers.Call, q *db.Tx, kind mail.Kind, to, token string, data any) error {
	_, err := accounts.QueueMail(c.Ctx(), q, accounts.Mail{
		Key:  mailKey(kind, token),
		To:   to,
		Kind: kind,
		Keys: a.Keys,
		Data: data,
	})
	return err
}

func mailKey(kind mail.Kind, token string) string {
	return string(kind) + ":" + hex.EncodeToString(accounts.HashToken(token)[:16])
}

// alert tells a person about a change of their account. An empty sentence means a new sign-in. Operators get no such
// mail: the platform's audit log has their changes.
func (a *auth) alert(c *handlers.Call, q *db.Tx, p account.Account, what string) error {
	return a.alertWith(c, q, p, what, "")
}

// alertWith is alert with advice for a person who did not make the change, and who can't reach its sessions and
// password.
func (a *auth) alertWith(c *handlers.Call, q *db.Tx, p account.Account, what, advice string) error {
	if a.operator() {
		return nil
	}
	link := a.BaseURL + "/account#sessions"
	if advice != "" {
		link = ""
	}
	_, err := accounts.QueueMail(c.Ctx(), q, accounts.Mail{
		Key:  string(mail.SignInAlert) + ":" + id.Person.Format(db.NewID()),
		To:   p.Email,
		Kind: mail.SignInAlert,
		Keys: a.Keys,
		Data: mail.SignInAlertData{
			Name:    p.Name,
			What:    what,
			At:      a.Now().UTC().Truncate(time.Second),
			Address: c.Actor.Address,
			Browser: account.Browser(c.Request.UserAgent()),
			Link:    link,
			Advice:  advice,
		},
	})
	return err
}
