package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/tools/dbtest"
	"posthorn/tools/schematest"
	"posthorn/worker/mail/resendtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const masterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// post is a database with an outbox.
type post struct {
	t    *testing.T
	db   *db.DB
	ring *seal.Ring
	sql  *pgxpool.Pool
	log  *strings.Builder
	mu   sync.Mutex
}

func newPost(t *testing.T) *post {
	t.Helper()
	url := schematest.Clone(t)
	d, err := db.Open(t.Context(), url, db.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	ring, err := seal.NewRing(masterKey)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.RuntimeParams["search_path"] = "posthorn"
	cfg.ConnConfig.RuntimeParams["role"] = "posthorn_console"
	sql, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sql.Close)
	return &post{t: t, db: d, ring: ring, sql: sql, log: &strings.Builder{}}
}

func (p *post) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *post) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// queue puts a mail with a link into the outbox.
func (p *post) queue(key, to string) {
	p.t.Helper()
	err := p.db.Console(p.t.Context(), func(q *sql.Queries) error {
		_, err := accounts.QueueMail(p.t.Context(), q, accounts.Mail{
			Key:  key,
			To:   to,
			Kind: mail.ResetPassword,
			Keys: p.ring,
			Data: mail.ResetPasswordData{Link: "https://posthorn.example/reset/canary", Expires: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)},
		})
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// start runs an outbox until the returned function is called.
func (p *post) start(d Driver) (stop func()) {
	p.t.Helper()
	o := New(Config{DB: p.db, Driver: d, Keys: p.ring, From: "Posthorn <hooks@posthorn.example>", Log: slog.New(slog.NewTextHandler(p, nil))})
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Run(ctx) }()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	p.t.Cleanup(stop)
	return stop
}

type mailState struct {
	State, Provider, Error string
	Tries                  int
	Wait                   float64 // seconds until it is due
	Sealed                 bool
}

func (p *post) state(key string) (s mailState) {
	p.t.Helper()
	err := p.sql.QueryRow(p.t.Context(), `SELECT state, provider_id, last_error, tries, extract(epoch FROM due_at - now())::float8, sealed IS NOT NULL
		FROM mails WHERE key = $1`, key).Scan(&s.State, &s.Provider, &s.Error, &s.Tries, &s.Wait, &s.Sealed)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// due removes every claim and delay of a mail.
func (p *post) due() {
	p.t.Helper()
	if _, err := p.sql.Exec(p.t.Context(), "UPDATE mails SET due_at = now() WHERE state = 'waiting'"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) until(what string, fn func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !fn(); {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\n%s", what, p.logged())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSeveralWorkersSendOneMailForAPurpose(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	const n = 30
	for i := range n {
		p.queue(fmt.Sprintf("reset:%d", i), "ada@acme.example")
	}
	for range 3 {
		p.start(resendDriverTo(t, f, resendtest.Key))
	}
	p.until("all are sent", func() bool {
		return p.state(fmt.Sprintf("reset:%d", n-1)).State == "sent" && len(f.Sent()) == n
	})
	p.until("every one is marked", func() bool {
		var waiting int
		if err := p.sql.QueryRow(t.Context(), "SELECT count(*) FROM mails WHERE state <> 'sent'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting == 0
	})
	if f.Calls() != n {
		t.Errorf("%d calls for %d mails", f.Calls(), n)
	}
	s := p.state("reset:0")
	if s.Tries != 1 || s.Sealed || !strings.HasPrefix(s.Provider, "mail-") {
		t.Errorf("%+v; the link is forgotten once it is sent", s)
	}
}

// The provider accepted the mail, and the worker died before it could record that.
func TestAWorkerThatDiesAfterTheProviderTookAMailMakesNoSecondOne(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	p.queue("reset:1", "ada@acme.example")
	f.OnTaken(func(resendtest.Mail, <-chan struct{}) { panic(http.ErrAbortHandler) }) // accepted without a response
	stop := p.start(resendDriverTo(t, f, resendtest.Key))
	p.until("the provider has it", func() bool { return len(f.Sent()) == 1 })
	p.until("the worker knows nothing of it", func() bool { s := p.state("reset:1"); return s.Error != "" })
	stop()
	if s := p.state("reset:1"); s.State != "waiting" || !s.Sealed {
		t.Fatalf("%+v", s)
	}
	f.OnTaken(nil)
	p.due()
	p.start(resendDriverTo(t, f, resendtest.Key))
	p.until("it is sent", func() bool { return p.state("reset:1").State == "sent" })
	if sent := f.Sent(); len(sent) != 1 || p.state("reset:1").Provider != sent[0].ID || f.Calls() != 2 {
		t.Errorf("%d mails after %d calls, row %+v", len(sent), f.Calls(), p.state("reset:1"))
	}
}

func TestAMailThatRendersDifferentlyNowCountsAsSent(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	if _, err := resendDriverTo(t, f, resendtest.Key).Send(t.Context(), message("reset:1")); err != nil { // of an older version
		t.Fatal(err)
	}
	p.queue("reset:1", "ada@acme.example")
	p.start(resendDriverTo(t, f, resendtest.Key))
	p.until("it counts as sent", func() bool { return p.state("reset:1").State == "sent" })
	if len(f.Sent()) != 1 {
		t.Errorf("%d mails", len(f.Sent()))
	}
}

func TestAProviderThatIsDownDelaysAMail(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	f.OnCall(func(w http.ResponseWriter, call int) bool {
		if call <= 2 {
			resendtest.Refuse(w, 503, "service_unavailable", "down")
		}
		return call <= 2
	})
	p.queue("reset:1", "ada@acme.example")
	p.start(resendDriverTo(t, f, resendtest.Key))
	for try := 1; try <= 2; try++ {
		p.until("it was refused", func() bool { s := p.state("reset:1"); return s.Tries == try && s.Error != "" && s.Wait < 60 })
		if s := p.state("reset:1"); s.State != "waiting" || s.Wait < 5 || !strings.Contains(s.Error, "503") {
			t.Errorf("after try %d: %+v", try, s)
		}
		p.due()
	}
	p.until("it is sent", func() bool { return p.state("reset:1").State == "sent" })
}

func TestTooManyRequestsMakeTheWholeOutboxWaitAndUseUpNoTry(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	f.OnCall(func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Retry-After", "3600")
		resendtest.Refuse(w, 429, "rate_limit_exceeded", "Too many requests.")
		return true
	})
	for i := range 30 {
		p.queue(fmt.Sprintf("reset:%d", i), "ada@acme.example")
	}
	p.start(resendDriverTo(t, f, resendtest.Key))
	// Of the tries in progress any can be rejected first; the others are returned without having been sent.
	refused := ""
	p.until("one says so", func() bool {
		err := p.sql.QueryRow(t.Context(), "SELECT coalesce(min(key), '') FROM mails WHERE last_error LIKE '%429%'").Scan(&refused)
		if err != nil {
			t.Fatal(err)
		}
		return refused != ""
	})
	p.until("the claims are given back", func() bool {
		var claimed int
		if err := p.sql.QueryRow(t.Context(), "SELECT count(*) FROM mails WHERE tries > 0").Scan(&claimed); err != nil {
			t.Fatal(err)
		}
		return claimed == 0
	})
	if s := p.state(refused); s.State != "waiting" || s.Wait < 3000 {
		t.Errorf("%+v", s)
	}
	if f.Calls() > atOnce {
		t.Errorf("%d calls although the first said to wait", f.Calls())
	}
}

func TestARefusalEndsAMailVisibly(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	f.OnCall(func(w http.ResponseWriter, _ int) bool {
		resendtest.Refuse(w, 422, "validation_error", "Invalid `to` field.")
		return true
	})
	p.queue("reset:1", "ada@acme.example")
	p.queue("reset:2", "no address")
	p.start(resendDriverTo(t, f, resendtest.Key))
	p.until("both have failed", func() bool { return p.state("reset:1").State == "failed" && p.state("reset:2").State == "failed" })
	if s := p.state("reset:1"); !strings.Contains(s.Error, "422 validation_error") || s.Sealed || f.Calls() != 1 {
		t.Errorf("%+v after %d calls", s, f.Calls())
	}
	if log := p.logged(); !strings.Contains(log, "a mail will not be sent") || strings.Contains(log, "canary") || strings.Contains(log, "ada@") {
		t.Errorf("the log: %s", log)
	}
}

func TestTheLastTryEndsAMail(t *testing.T) {
	t.Parallel()
	p, f := newPost(t), resendtest.New(t)
	f.OnCall(func(w http.ResponseWriter, _ int) bool {
		resendtest.Refuse(w, 500, "internal_server_error", "sorry")
		return true
	})
	p.queue("reset:1", "ada@acme.example")
	if _, err := p.sql.Exec(t.Context(), "UPDATE mails SET tries = $1", len(mail.Delays())); err != nil {
		t.Fatal(err)
	}
	p.start(resendDriverTo(t, f, resendtest.Key))
	p.until("it has failed", func() bool { return p.state("reset:1").State == "failed" })
}

func TestTheConsoleKeepsMailsAndTellsTheLogNoLink(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.queue("reset:1", "ada@acme.example")
	p.start(NewConsole(p.db, p.ring, slog.New(slog.NewTextHandler(p, nil))))
	p.until("it is kept", func() bool { return p.state("reset:1").State == "sent" })
	kept, _, err := accounts.KeptMails(t.Context(), p.db, p.ring)
	if err != nil || len(kept) != 1 || !strings.Contains(kept[0].Text, "/reset/canary") || kept[0].To != "ada@acme.example" {
		t.Fatalf("%+v, %v", kept, err)
	}
	one, err := accounts.KeptMail(t.Context(), p.db, p.ring, kept[0].ID)
	if err != nil || one.HTML != kept[0].HTML {
		t.Error(one, err)
	}
	if log := p.logged(); !strings.Contains(log, "/dev/mail/"+id.Mail.Format(kept[0].ID)) || strings.Contains(log, "canary") {
		t.Errorf("the log: %s", log)
	}
	var dump []byte
	if err := p.sql.QueryRow(t.Context(), "SELECT json_agg(m)::text || (SELECT json_agg(b)::text FROM mailbox b) FROM mails m").Scan(&dump); err != nil || strings.Contains(string(dump), "canary") {
		t.Errorf("%v; the database holds the link: %s", err, dump)
	}
}

// The same row makes the same mail on every try and on every machine.
func TestAMailComesOutTheSameEveryTime(t *testing.T) {
	t.Parallel()
	ring, err := seal.NewRing(masterKey)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(mail.NoticeData{
		TenantName:  "Acme",
		Kind:        "digest",
		Details:     json.RawMessage(`{"severity":"critical","findings":[{"detail":"x"}]}`),
		Preferences: "https://posthorn.example/unsubscribe/a",
		Unsubscribe: "https://posthorn.example/unsubscribe/a",
	})
	if err != nil {
		t.Fatal(err)
	}
	row := sql.ClaimMailsRow{ID: db.NewID(), Key: "digest:1", Recipient: "ada@acme.example", Kind: mail.Digest, Data: data}
	first, err := compose(row, ring, "Posthorn <hooks@posthorn.example>")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		row.Tries++
		again, err := compose(row, ring, "Posthorn <hooks@posthorn.example>")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("%v\n%+v\n%+v", err, first, again)
		}
	}
	if first.Headers["List-Unsubscribe"] != "<https://posthorn.example/unsubscribe/a>" || first.Headers["List-Unsubscribe-Post"] != "List-Unsubscribe=One-Click" {
		t.Errorf("%v", first.Headers)
	}
}
