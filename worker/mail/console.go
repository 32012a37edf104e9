package mail

import (
	"context"
	"log/slog"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// NewConsole keeps mails for /dev/mail in development, and logs that there is one. The log contains neither the text
// nor a link.
func NewConsole(d *db.DB, keys *seal.Ring, log *slog.Logger) Driver {
	return &consoleDriver{db: d, keys: keys, log: log}
}

type consoleDriver struct {
	db   *db.DB
	keys *seal.Ring
	log  *slog.Logger
}

func (c *consoleDriver) Send(ctx context.Context, m Message) (string, error) {
	err := accounts.KeepMail(ctx, c.db, c.keys, mail.Kept{
		ID:      m.ID,
		At:      m.At,
		Kind:    m.Kind,
		From:    m.From,
		To:      m.To,
		Subject: m.Subject,
		HTML:    m.HTML,
		Text:    m.Text,
		Headers: m.Headers,
	})
	if err != nil {
		return "", err
	}
	u := id.Mail.Format(m.ID)
	c.log.Info("mail, not sent: POSTHORN_MAIL is console", "to", m.To, "subject", m.Subject, "kind", m.Kind, "mail", u, "path", "/dev/mail/"+u)
	return u, nil
}
