package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	gomail "github.com/wneessen/go-mail"

	"posthorn/domain/mail"
)

// mailServer is a real SMTP server that keeps its mails.
type mailServer struct {
	address string
	roots   *tls.Config

	mu     sync.Mutex
	mails  [][]byte
	secure []bool                     // whether each came over TLS
	refuse map[string]*smtp.SMTPError // by recipient
}

type mailOptions struct{ implicit, starttls, auth bool }

const smtpPassword = "canary-p%ss"

func newMailServer(t *testing.T, o mailOptions) *mailServer {
	t.Helper()
	cert, roots := certificate(t)
	m := &mailServer{
		roots:  &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		refuse: map[string]*smtp.SMTPError{},
	}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &mailSession{
			server: m,
			conn:   c,
			auth:   o.auth,
		}, nil
	}))
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "mail.example", true, quiet{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if o.starttls {
		s.TLSConfig = config
	}
	if o.implicit {
		l = tls.NewListener(l, config)
	}
	m.address = l.Addr().String()
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return m
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

type mailSession struct {
	server *mailServer
	conn   *smtp.Conn
	auth   bool
	signed bool
}

func (s *mailSession) AuthMechanisms() []string {
	if !s.auth {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ada" || password != smtpPassword {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "credentials invalid: " + password}
		}
		s.signed = true
		return nil
	}), nil
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if s.auth && !s.signed {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if r := s.server.refuse[to]; r != nil {
		return r
	}
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	_, secure := s.conn.TLSConnectionState()
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, text)
	s.server.secure = append(s.server.secure, secure)
	return err
}

func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

// certificate is valid for 127.0.0.1 and no other name.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "mail.example"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestAMailServerGetsTheSameMail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options        mailOptions
		scheme, user   string
		wantEncryption bool
	}{
		"STARTTLS":                     {mailOptions{starttls: true}, "smtp", "", true},
		"STARTTLS and a password":      {mailOptions{starttls: true, auth: true}, "smtp", "ada:canary-p%25ss@", true},
		"TLS from the start":           {mailOptions{implicit: true}, "smtps", "", true},
		"TLS and a password":           {mailOptions{implicit: true, auth: true}, "smtps", "ada:canary-p%25ss@", true},
		"plain, on this machine":       {mailOptions{}, "smtp", "", false},
		"plain, with a password, here": {mailOptions{auth: true}, "smtp", "ada:canary-p%25ss@", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, tt.options)
			d, err := NewSMTP(tt.scheme+"://"+tt.user+s.address, s.roots)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for range 2 {
				u, err := d.Send(t.Context(), message("a"))
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, u)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if ids[0] != ids[1] || len(s.mails) != 2 || s.secure[0] != tt.wantEncryption {
				t.Fatalf("ids %q, %d mails, encrypted %v", ids, len(s.mails), s.secure)
			}
			checkMail(t, s.mails[0], ids[0])
		})
	}
}

func checkMail(t *testing.T, text []byte, messageID string) {
	t.Helper()
	m, err := netmail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From":                  `"Posthorn" <hooks@posthorn.example>`,
		"To":                    "<ada@acme.example>",
		"Subject":               "Subject",
		"Message-Id":            "<" + messageID + ">",
		"Date":                  "Sun, 09 Mar 2031 14:05:00 +0000",
		"List-Unsubscribe":      "<https://posthorn.example/u/x>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"X-Mailer", "User-Agent"} {
		if got := m.Header.Get(name); got != "" {
			t.Errorf("%s names the software and its version: %q", name, got)
		}
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatal(kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []struct{ kind, text string }{{"text/plain", "grüße"}, {"text/html", "<p>grüße</p>"}} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil || strings.TrimSpace(string(body)) != want.text || !strings.HasPrefix(p.Header.Get("Content-Type"), want.kind) {
			t.Errorf("%s: %q, %v", p.Header.Get("Content-Type"), body, err)
		}
	}
}

func TestASubjectShowsAsItIs(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{})
	d, err := NewSMTP("smtp://"+s.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, subject := range []string{
		"Join =?utf-8?q?=0D=0ABcc:x@y?= on Posthorn", "Join “=?utf-8?q?hidden?=” on Posthorn", "=?utf-8?b?aGlkZGVu?=",
		"=?x " + strings.Repeat("A subject of many words ", 8) + "=?utf-8?q?hidden?=", "plain",
	} {
		m := message(fmt.Sprint("subject", i))
		m.Subject = subject
		if _, err := d.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		got, err := netmail.ReadMessage(bytes.NewReader(s.mails[i]))
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		shown, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		if err != nil || shown != strings.TrimSpace(subject) || got.Header.Get("Bcc") != "" {
			t.Errorf("%q shows as %q, %v", subject, shown, err)
		}
	}
}

func TestOnlyAServerOnThisMachineMayDoWithoutEncryption(t *testing.T) {
	t.Parallel()
	for address, here := range map[string]bool{
		"smtp://127.0.0.1:25":      true,
		"smtp://[::1]:25":          true,
		"smtp://localhost":         true,
		"smtp://mail.example":      false,
		"smtp://10.0.0.1":          false,
		"smtp://localhost.example": false,
	} {
		made, err := NewSMTP(address, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := made.(*smtpDriver)
		client, err := gomail.NewClient(d.host, d.options()...)
		if err != nil {
			t.Fatal(err)
		}
		want := gomail.TLSMandatory.String()
		if here {
			want = gomail.TLSOpportunistic.String()
		}
		if got := client.TLSPolicy(); d.onThisMachine() != here || got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	made, err := NewSMTP("smtp://ada:canary-p%25ss@mail.example", nil)
	if text := fmt.Sprint(made); err != nil || strings.Contains(text, "canary") {
		t.Errorf("printed: %s, %v", text, err)
	}
}

func TestAMailServerWithAWrongCertificateGetsNothing(t *testing.T) {
	t.Parallel()
	for scheme, o := range map[string]mailOptions{"smtp": {starttls: true}, "smtps": {implicit: true}} {
		s := newMailServer(t, o)
		d, err := NewSMTP(scheme+"://"+s.address, nil) // the system's roots
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Send(t.Context(), message("a")); verdict(err) != mail.Retry {
			t.Errorf("%s: %v", scheme, err)
		}
		s.mu.Lock()
		if len(s.mails) != 0 {
			t.Errorf("%s: it got %d mails", scheme, len(s.mails))
		}
		s.mu.Unlock()
	}
}

func TestWhatAMailServerRefuses(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, mailOptions{starttls: true, auth: true})
	s.refuse["full@acme.example"] = &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"}
	s.refuse["gone@acme.example"] = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	for name, tt := range map[string]struct {
		address, to string
		want        mail.Verdict
		says        string
	}{
		"a full mailbox":     {"smtp://ada:canary-p%25ss@" + s.address, "full@acme.example", mail.Retry, "mailbox full"},
		"nobody there":       {"smtp://ada:canary-p%25ss@" + s.address, "gone@acme.example", mail.Refused, "no such user"},
		"no address":         {"smtp://ada:canary-p%25ss@" + s.address, "nobody", mail.Refused, "could not be written"},
		"the wrong password": {"smtp://ada:canary-wrong@" + s.address, "ada@acme.example", mail.Retry, "credentials"},
		"no server":          {"smtp://127.0.0.1:1", "ada@acme.example", mail.Retry, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := NewSMTP(tt.address, s.roots)
			if err != nil {
				t.Fatal(err)
			}
			m := message("a")
			m.To = tt.to
			_, err = d.Send(t.Context(), m)
			if verdict(err) != tt.want || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAMailServerThatDripsIsGivenUpWithTheContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close() // and never responds
		}
	}()
	d, err := NewSMTP("smtp://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := d.Send(ctx, message("a")); err == nil || errors.Is(err, context.Canceled) ||
		time.Since(began) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestAddressesOfMailServers(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"smtp://mail.example":       true,
		"smtps://mail.example:465":  true,
		"smtp://u:p@[::1]:25":       true,
		"http://mail.example":       false,
		"mail.example:25":           false,
		"smtp://":                   false,
		"smtp://mail.example:99999": false,
		"":                          false,
	} {
		if _, err := NewSMTP(address, nil); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
