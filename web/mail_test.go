package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/mail"
	"posthorn/handlers/mailbox"
)

func TestMailsAreShownWhereTheyDoNotLeaveAndNobodyElseCanAsk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mail, addr, base string
		want             bool
	}{
		{"console", "127.0.0.1:8080", "", true},
		{"console", "localhost:8080", "", true},
		{"console", "[::1]:8080", "http://localhost:8080", true},
		{"console", "127.0.0.1:8080", "https://posthorn.example", false},
		{"console", "0.0.0.0:8080", "", false},
		{"console", ":8080", "http://localhost:8080", false},
		{"smtp", "127.0.0.1:8080", "", false},
		{"resend", "127.0.0.1:8080", "", false},
	} {
		p := &Program{Config: Config{Mail: tt.mail, Addr: tt.addr, BaseURL: tt.base}}
		if got := p.Config.showsMails(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestAMailOfDevelopmentIsReadableInTheBrowser(t *testing.T) {
	t.Parallel()
	p := program(t, newDatabase(t), Parts{Web: true, Worker: true})
	ring, err := seal.NewRing(testMasterKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.pools[0].Console(t.Context(), func(q *db.Tx) error {
		_, err := accounts.QueueMail(t.Context(), q, accounts.Mail{
			Key:  "k",
			To:   "ada@acme.example",
			Kind: mail.ResetPassword,
			Keys: ring,
			Data: mail.ResetPasswordData{Link: "https://posthorn.example/reset?token=abc", Expires: time.Now()},
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`/dev/mail/eml_[0-9a-z]+`)
	var path string
	for deadline := time.Now().Add(15 * time.Second); path == ""; {
		status, body := fetch(t, p.URL()+"/dev/mail", "")
		if strings.Contains(body, "No emails yet") {
			t.Fatal("the mailbox says that there is none while a mail is on its way")
		}
		if path = link.FindString(body); status != http.StatusOK || time.Now().After(deadline) {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, body := fetch(t, p.URL()+path, ""); status != http.StatusOK || !strings.Contains(body, "https://posthorn.example/reset?token=abc") ||
		!strings.Contains(body, "ada@acme.example") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := fetch(t, p.URL()+path+"/html", ""); status != http.StatusOK || !strings.Contains(body, `href="https://posthorn.example/reset?token=abc"`) {
		t.Errorf("%d %s", status, body)
	}
	// A page elsewhere that bent its name to this machine sees nothing.
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("under another name: %d", res.StatusCode)
	}
}

func TestThereIsNoSweepWithoutASecret(t *testing.T) {
	t.Parallel()
	for _, r := range mailbox.Routes(mailbox.Deps{}) {
		if r.Path == "/internal/sweep" {
			t.Error("the route is there")
		}
	}
}

func TestMailsAreNotShownWhereTheyLeave(t *testing.T) {
	t.Parallel()
	p := program(t, append(newDatabase(t), "POSTHORN_MAIL=smtp", "POSTHORN_MAIL_FROM=hooks@posthorn.example", "POSTHORN_SMTP_URL=smtp://127.0.0.1:1"), Parts{Web: true, Worker: true})
	if status, body := fetch(t, p.URL()+"/dev/mail", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, body)
	}
}

// refusing is a mail server that rejects each recipient with an address that begins with "gone".
type refusing struct{}

func (refusing) Mail(string, *smtp.MailOptions) error { return nil }
func (refusing) Data(r io.Reader) error               { _, err := io.Copy(io.Discard, r); return err }
func (refusing) Reset()                               {}
func (refusing) Logout() error                        { return nil }

func (refusing) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "gone") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func TestAnInvitationSaysThatItsMailFailed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return refusing{}, nil }))
	server.Domain = "mail.example"
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	environ := append(newDatabase(t), "POSTHORN_MAIL=smtp", "POSTHORN_MAIL_FROM=hooks@posthorn.example", "POSTHORN_SMTP_URL=smtp://"+l.Addr().String())
	p := program(t, environ, Parts{Web: true, Worker: true})
	var made struct {
		Key string `json:"api_key"`
	}
	succeed(t, environ, &made, "tenant", "create", "--name", "Acme", "--json")
	for _, email := range []string{"gone@acme.example", "ada@acme.example"} {
		if got := ask(t, http.MethodPost, p.URL()+"/api/v1/invitations", made.Key, `{"role":"viewer","email":"`+email+`"}`); got.status != http.StatusCreated {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	failed := func() map[string]bool {
		var list struct {
			Data []struct {
				Email      string `json:"email"`
				MailFailed bool   `json:"mail_failed"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(ask(t, http.MethodGet, p.URL()+"/api/v1/invitations", made.Key, "").body), &list); err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, i := range list.Data {
			all[i.Email] = i.MailFailed
		}
		return all
	}
	eventually(t, "the invitation says that its mail failed", func() bool { return failed()["gone@acme.example"] })
	if all := failed(); len(all) != 2 || all["ada@acme.example"] {
		t.Errorf("%v", all)
	}
}
