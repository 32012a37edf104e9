package mail

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"posthorn/domain/mail"
)

// smtpPhase bounds the time that a mail server has for one step.
const smtpPhase = 15 * time.Second

// NewSMTP sends through a mail server. The address is smtp://user:password@host:587, where STARTTLS encrypts the
// connection before anything is sent, or smtps://...:465, where it is encrypted from the start. A server on this
// machine can do without encryption. Certificates are always checked; roots is nil except in tests.
func NewSMTP(address string, roots *tls.Config) (Driver, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("the address of the mail server is not one: write smtp://user:password@host:587")
	}
	d := &smtpDriver{
		host:     u.Hostname(),
		implicit: u.Scheme == "smtps",
		port:     587,
		tls:      &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if d.implicit {
		d.port = 465
	}
	if text := u.Port(); text != "" {
		if d.port, err = strconv.Atoi(text); err != nil || d.port < 1 || d.port > 65535 {
			return nil, errors.New("the port of the mail server is not one")
		}
	}
	if roots != nil {
		d.tls = roots.Clone()
	}
	d.tls.ServerName = d.host
	if u.User != nil {
		d.user = u.User.Username()
		d.password, _ = u.User.Password()
	}
	return d, nil
}

type smtpDriver struct {
	host           string
	port           int
	implicit       bool
	user, password string
	tls            *tls.Config
}

func (d *smtpDriver) Send(ctx context.Context, m Message) (string, error) {
	msg, messageID, err := d.compose(m)
	if err != nil {
		return "", &Refusal{Verdict: mail.Refused, Detail: "The mail could not be written: " + short(err.Error())}
	}
	client, err := gomail.NewClient(d.host, d.options()...)
	if err != nil {
		return "", &Refusal{Detail: short(err.Error())}
	}
	// The library's own limits bound the conversation, step by step; the context bounds only the wait for it.
	said := make(chan error, 1)
	go func() {
		err := client.DialAndSendWithContext(ctx, msg)
		// The server's acceptance of the mail counts, not an error in the farewell.
		if msg.IsDelivered() {
			err = nil
		}
		said <- err
	}()
	select {
	case err = <-said:
	case <-ctx.Done():
		return "", &Refusal{Detail: "The mail server did not respond in time."}
	}
	if err != nil {
		return "", d.refusal(err)
	}
	return messageID, nil
}

// compose writes a mail. Its Message-ID is derived from its key, so that the recipient's server can recognize a
// duplicate.
func (d *smtpDriver) compose(m Message) (*gomail.Msg, string, error) {
	msg := gomail.NewMsg(gomail.WithEncoding(gomail.EncodingQP), gomail.WithNoDefaultUserAgent())
	if err := msg.From(m.From); err != nil {
		return nil, "", fmt.Errorf("sender: %w", err)
	}
	if err := msg.To(m.To); err != nil {
		return nil, "", fmt.Errorf("recipient: %w", err)
	}
	from, err := netmail.ParseAddress(m.From)
	if err != nil {
		return nil, "", fmt.Errorf("sender: %w", err)
	}
	sum := sha256.Sum256([]byte(m.Key))
	_, domain, _ := strings.Cut(from.Address, "@")
	messageID := hex.EncodeToString(sum[:16]) + "@" + domain
	msg.SetMessageIDWithValue(messageID)
	msg.SetDateWithValue(m.At)
	msg.Subject(encodeLookalikes(m.Subject))
	for name, value := range m.Headers {
		msg.SetGenHeaderPreformatted(gomail.Header(name), value)
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return msg, messageID, nil
}

// encodeLookalikes encodes a subject that contains text which a mail program would decode (RFC 2047, section 2), so
// that it is shown as written. The library encodes only text that is not ASCII.
func encodeLookalikes(subject string) string {
	if !strings.Contains(subject, "=?") || strings.ContainsFunc(subject, func(r rune) bool { return r > unicode.MaxASCII }) {
		return subject
	}
	const most = 45 // bytes of text in a word of 75 characters
	var words []string
	for chunk := range slices.Chunk([]byte(subject), most) {
		words = append(words, "=?UTF-8?B?"+base64.StdEncoding.EncodeToString(chunk)+"?=")
	}
	return strings.Join(words, " ")
}

func (d *smtpDriver) options() []gomail.Option {
	options := []gomail.Option{gomail.WithPort(d.port), gomail.WithTimeout(smtpPhase), gomail.WithTLSConfig(d.tls)}
	switch {
	case d.implicit:
		options = append(options, gomail.WithSSL())
	case d.onThisMachine():
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if d.user != "" {
		options = append(
			options,
			gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover),
			gomail.WithUsername(d.user),
			gomail.WithPassword(d.password),
		)
		if d.onThisMachine() && !d.implicit {
			options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthPlainNoEnc))
		}
	}
	return options
}

// onThisMachine reports whether the connection to the server stays on this machine.
func (d *smtpDriver) onThisMachine() bool {
	ip, err := netip.ParseAddr(d.host)
	return d.host == "localhost" || err == nil && ip.IsLoopback()
}

// refusal describes a server's error response.
func (d *smtpDriver) refusal(err error) *Refusal {
	r := &Refusal{Detail: "The mail server rejected it: " + d.clean(err)}
	var reply *textproto.Error
	var send *gomail.SendError
	switch {
	case errors.As(err, &reply):
		r.Verdict = mail.ClassifySMTP(reply.Code)
	case errors.As(err, &send) && send.ErrorCode() > 0:
		r.Verdict = mail.ClassifySMTP(send.ErrorCode())
	}
	return r
}

func (d *smtpDriver) clean(err error) string {
	text := err.Error()
	if d.password != "" {
		text = strings.ReplaceAll(text, d.password, "***")
	}
	return short(text)
}

// String keeps the password out of logs.
func (d *smtpDriver) String() string { return fmt.Sprintf("smtp %s:%d", d.host, d.port) }
