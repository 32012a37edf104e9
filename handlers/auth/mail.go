package auth

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/handlers"
)

// mailTo is a mail with a link that is good once.
type mailTo struct {
	to, name   string
	kind       mail.Kind
	path       string
	life       time.Duration
	tenant     *id.UUID
	tenantName string
	by         string // who invites
}

// mail queues a mail whose link carries a token. The key is of the token's hash: a link is mailed once.
func (a *auth) mail(c *handlers.Call, q *db.Queries, token string, m mailTo) error {
	_, err := q.QueueMail(c.Ctx(), db.Mail{
		Tenant: m.tenant, Key: fmt.Sprintf("%s:%s", m.kind, hex.EncodeToString(db.HashToken(token)[:16])), To: m.to, Kind: m.kind, Keys: a.Keys,
		Data: map[string]any{
			"name": m.name, "link": a.BaseURL + m.path + "?token=" + url.QueryEscape(token), "expires": a.Now().Add(m.life).UTC(),
			"tenant": m.tenantName, "by": m.by,
		},
	})
	return err
}
