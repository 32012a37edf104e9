package main

import (
	"context"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/worker/mail"
	"posthorn/worker/notify"
)

// mailConnections are few: a mail's row is written before and after it is sent, not while.
const mailConnections = 3

// developmentSender is who mails are from that never leave.
const developmentSender = "Posthorn <posthorn@localhost>"

// startMail makes notices known and empties the outbox of mails.
func (p *Program) startMail(ctx context.Context, ring *seal.Ring) error {
	pool, err := p.pool(ctx, "mail", mailConnections)
	if err != nil {
		return err
	}
	driver, err := p.mailDriver(pool, ring)
	if err != nil {
		return err
	}
	from := p.Config.MailFrom
	if from == "" {
		from = developmentSender
	}
	outbox := mail.New(mail.Config{DB: pool, Driver: driver, Keys: ring, From: from, Log: p.Log, Registry: p.registry})
	p.mails = p.run("outbox of mails", outbox.Run)
	notifier := notify.New(notify.Config{
		DB: pool,
		Links: accounts.Links{
			BaseURL:    p.publicURL(),
			ConsoleURL: p.Config.consoleURL(p.publicURL()),
			Keys:       ring,
		},
		Log: p.Log,
	})
	p.notices = p.run("notices", notifier.Run)
	return nil
}

func (p *Program) mailDriver(pool *db.DB, ring *seal.Ring) (mail.Driver, error) {
	switch p.Config.Mail {
	case "resend":
		return mail.NewResend(p.Config.ResendAPIKey.Reveal(), p.Config.ResendURL)
	case "smtp":
		return mail.NewSMTP(p.Config.SMTPURL.Reveal(), nil)
	}
	return mail.NewConsole(pool, ring, p.Log), nil
}

// showsMails reports whether /dev/mail is served: links in mails are as good as passwords, so only if mails are not
// sent, and only this machine can ask.
func (c *Config) showsMails() bool {
	if c.Mail != "console" || !isLoopback(c.Addr) {
		return false
	}
	u, err := url.Parse(c.BaseURL)
	return c.BaseURL == "" || err == nil && isLoopback(u.Hostname()+":0")
}

// publicURL is what links in mails begin with, also where this process serves no pages itself.
func (p *Program) publicURL() string {
	if u := p.URL(); u != "" {
		return u
	}
	return p.Config.publicURL()
}

// publicURL is the same for a command, which listens nowhere.
func (c *Config) publicURL() string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	return "http://" + c.Addr
}
