//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"posthorn/db"
	"posthorn/worker/mail/resendtest"
)

const cronSecret = "0123456789abcdef0123456789abcdef"

// office is an installation whose mails go to a Resend of the test's.
type office struct {
	*world
	resend *resendtest.Server
	worker *process
}

func newOffice(t *testing.T, answer func(*arrival) int) *office {
	t.Helper()
	o := &office{world: newWorld(t, answer), resend: resendtest.New(t)}
	o.environ = append(o.environ, "POSTHORN_MAIL=resend", "POSTHORN_MAIL_FROM=Posthorn <hooks@posthorn.example>", "RESEND_API_KEY="+resendtest.Key,
		"POSTHORN_RESEND_URL="+o.resend.URL, "POSTHORN_CRON_SECRET="+cronSecret)
	o.serveAt(o.launch("web", "web").ready())
	o.worker = o.launch("worker", "worker").ready()
	return o
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// asOwner lets do work as the database's owner, who may what no role may.
func (w *world) asOwner(do func(*pgxpool.Conn) error) {
	w.t.Helper()
	err := w.sql.AcquireFunc(context.Background(), func(conn *pgxpool.Conn) error {
		if _, err := conn.Exec(context.Background(), "RESET ROLE"); err != nil {
			return err
		}
		if err := do(conn); err != nil {
			return err
		}
		_, err := conn.Exec(context.Background(), "SET ROLE posthorn_console")
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// waits reports whether a statement of queries/ waits for a lock. (Other roles see that there is a statement, and not
// which.)
func (w *world) waits(statement string) (yes bool) {
	w.t.Helper()
	w.asOwner(func(conn *pgxpool.Conn) error {
		return conn.QueryRow(context.Background(), `SELECT count(*) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND starts_with(query, '-- name: ' || $1 || ' ')`, statement).Scan(&yes)
	})
	return yes
}

// awaits waits until the worker waits to execute a statement.
func (o *office) awaits(statement string) {
	o.t.Helper()
	eventually(o.t, patience, "the worker waits to do "+statement, func() bool { return o.waits(statement) })
}

// mailed lists the mails that Resend took of those with a word in their text.
func (o *office) mailed(word string) []resendtest.Mail {
	all := o.resend.Sent()
	return slices.DeleteFunc(all, func(m resendtest.Mail) bool {
		return !strings.Contains(m.Text, word) && !strings.Contains(m.To[0], word)
	})
}

var confirmLink = regexp.MustCompile(`/unsubscribe/[^\s"]+`)

// contact makes an address one that gets the tenant's notices: its owner is asked by a mail, and agrees on the page
// that the mail links. It returns how many mails that took.
func (o *office) contact(address string) (mails int) {
	o.t.Helper()
	o.manage(http.MethodPatch, "/tenant", settings{"contacts": []string{address}, "digest": false}, nil)
	o.allSent(1)
	sent := o.mailed(address)
	if len(sent) != 1 {
		o.t.Fatalf("the contact was asked by %d mails", len(sent))
	}
	link := o.web() + confirmLink.FindString(sent[0].Text)
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, link, strings.NewReader("confirm=1"))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		o.t.Fatalf("the contact could not agree: %s", res.Status)
	}
	return len(sent)
}

// mailSteps are what happens from a notice to its mails on record. At each of them, dieAt ends the worker.
var mailSteps = []string{"InsertMail", "MarkMailed", "ClaimMails", "asked", "taken", "MarkMailSent"}

// dieAt has cause make a notice of which word tells and which goes to so many people, and kills the worker before it
// does a step.
func (o *office) dieAt(step, word string, people int, cause func()) {
	o.t.Helper()
	switch step {
	case "InsertDigest", "InsertNotice", "InsertMail":
		thaw := o.freeze(map[string]string{"InsertDigest": "digests", "InsertNotice": "notices", "InsertMail": "mails"}[step])
		defer thaw()
		cause()
		o.awaits(step)
	case "MarkMailed", "ClaimMails":
		insert := o.freeze("mails")
		cause()
		o.awaits("InsertMail")
		mark := o.freeze("notices")
		defer mark()
		insert()
		o.awaits("MarkMailed")
		if step == "ClaimMails" {
			claim, frozen := o.freezeNext("mails")
			defer claim()
			mark()
			<-frozen
			o.awaits(step)
		}
	case "asked":
		dead := make(chan struct{})
		defer close(dead)
		before := o.resend.Calls()
		o.resend.OnCall(func(http.ResponseWriter, int) bool { <-dead; return true })
		defer o.resend.OnCall(nil)
		cause()
		eventually(o.t, patience, "Resend is asked", func() bool { return o.resend.Calls() > before })
	case "taken", "MarkMailSent":
		answer := make(chan struct{})
		o.resend.OnTaken(func(_ resendtest.Mail, gone <-chan struct{}) {
			select {
			case <-answer:
			case <-gone:
			}
		})
		defer o.resend.OnTaken(nil)
		cause()
		eventually(o.t, patience, "Resend has the mails", func() bool { return len(o.mailed(word)) == people })
		if step == "MarkMailSent" {
			defer o.freeze("mails")()
			close(answer)
			o.awaits(step)
		}
	default:
		o.t.Fatalf("there is no step %s", step)
	}
	o.worker.kill()
}

// goOn starts another worker, five minutes after the last one died as far as mails are concerned: the claims have run
// out.
func (o *office) goOn() {
	o.t.Helper()
	o.exec("UPDATE mails SET due_at = now() WHERE state = 'waiting'")
	o.worker = o.launch("worker", "worker").ready()
}

// allSent waits until every mail in the outbox is on record as sent.
func (o *office) allSent(mails int) {
	o.t.Helper()
	eventually(o.t, patience, fmt.Sprintf("%d mails are sent", mails), func() bool {
		return o.ask("SELECT count(*) FROM mails WHERE state = 'sent'") >= mails && o.ask("SELECT count(*) FROM mails WHERE state <> 'sent'") == 0
	})
}

// TestAKilledWorkerMailsANoticeOnce kills the worker at each step between a notice and its mails: whoever wants it
// gets it, once, and so do the operators, who are alerted of the same.
func TestAKilledWorkerMailsANoticeOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(*arrival) int { return http.StatusGone })
	o.exec("INSERT INTO operators (id, email, created_at) VALUES ($1, 'op@posthorn.example', now())", [16]byte(db.NewID()))
	asked := o.contact("ops@acme.example")
	const people = 2
	for i, step := range mailSteps {
		kind := strings.ToLower(step)
		endpoint := o.endpoint("/"+kind, settings{"event_types": []string{"to." + kind}})
		o.dieAt(step, endpoint, people, func() { o.emit(event("to."+kind, i)) })
		o.goOn()
		o.allSent(asked + people*(i+1))
		var to []string
		for _, m := range o.mailed(endpoint) {
			to = append(to, m.To...)
		}
		slices.Sort(to)
		if want := []string{"op@posthorn.example", "ops@acme.example"}; !slices.Equal(to, want) {
			t.Errorf("killed at %s: mails to %q, want %q", step, to, want)
		}
	}
	// The key that the tenant began with may be told of to who wants mail by now.
	var subjects []string
	for _, m := range o.resend.Sent() {
		if strings.Contains(m.Subject, "was disabled") {
			subjects = append(subjects, m.Subject)
		}
	}
	if n := o.ask("SELECT count(*) FROM notices WHERE kind = 'endpoint.disabled'"); n != len(mailSteps) || len(subjects) != people*n {
		t.Errorf("%d notices of %d endpoints that were disabled, and the mails %q", n, len(mailSteps), subjects)
	}
}

// TestAKilledWorkerMakesADigestOnce kills the worker at each step from the sweep to the mail.
func TestAKilledWorkerMakesADigestOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil)
	sweep := func() {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, o.web()+"/internal/sweep", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+cronSecret)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusAccepted {
			t.Fatalf("a sweep was asked for: %d", res.StatusCode)
		}
	}
	for _, step := range append([]string{"InsertDigest", "InsertNotice"}, mailSteps...) {
		contact := strings.ToLower(step) + "@acme.example"
		// A tenant that is not well: something failed for good just now.
		tenant := [16]byte(db.NewID())
		o.dieAt(step, contact, 1, func() {
			o.exec("INSERT INTO tenants (id, name, created_at, settings) VALUES ($1, $2, now(), jsonb_build_object('contacts', jsonb_build_array($3::text)))", tenant, step, contact)
			o.exec("INSERT INTO notice_preferences (tenant_id, recipient, kind, wanted) VALUES ($1, $2, 'contact.confirmed', true)", tenant, contact)
			o.exec("INSERT INTO endpoints (tenant_id, id, url, event_types, created_at) VALUES ($1, $2, 'https://acme.example', '{*}', now())", tenant, [16]byte(db.NewID()))
			o.exec("INSERT INTO dead_letters (tenant_id, delivery_id, endpoint_id, event_type, reason) VALUES ($1, $2, $2, 'a', 1)", tenant, [16]byte(db.NewID()))
			sweep()
		})
		o.goOn()
		sweep() // the dead one's is over
		eventually(t, patience, "the digest is mailed to "+contact, func() bool {
			return o.ask("SELECT count(*) FROM mails WHERE state = 'sent' AND recipient = $1", contact) > 0
		})
	}
	sweep()
	eventually(t, patience, "the last sweep was made", func() bool {
		return o.ask("SELECT count(*) FROM chores WHERE name = 'digests' AND done_at > '-infinity'") == 1
	})
	// One a tenant and day: the test may run over midnight.
	days := o.ask("SELECT count(*) FROM digests")
	o.allSent(days)
	for what, got := range map[string]int{
		"notices of them": o.ask("SELECT count(*) FROM notices n JOIN digests d ON d.notice_id = n.id WHERE n.kind = 'digest'"),
		"notices":         o.ask("SELECT count(*) FROM notices WHERE kind = 'digest'"),
		"mails":           o.ask("SELECT count(*) FROM mails"),
		"mails at Resend": len(o.resend.Sent()),
	} {
		if got != days {
			t.Errorf("%d %s for %d digests", got, what, days)
		}
	}
	if tenants := o.ask("SELECT count(DISTINCT tenant_id) FROM digests"); tenants != len(mailSteps)+2 || days > 2*tenants {
		t.Errorf("%d digests of %d tenants, want one of each of %d", days, tenants, len(mailSteps)+2)
	}
}

// TestAMailProviderThatHangsDelaysMailsAlone: nothing is answered at Resend, while deliveries and what else follows
// from them go on.
func TestAMailProviderThatHangsDelaysMailsAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(a *arrival) int {
		if strings.HasPrefix(a.path, "/gone") {
			return http.StatusGone
		}
		return http.StatusOK
	})
	asked := o.contact("ops@acme.example")
	const gone = 6 // more than are sent at once
	for i := range gone {
		o.endpoint(fmt.Sprintf("/gone/%d", i), settings{"event_types": []string{"to.gone"}})
	}
	o.endpoint("/well", settings{"event_types": []string{"to.well"}})
	hanging := make(chan struct{})
	hang := sync.OnceFunc(func() { close(hanging) })
	defer hang()
	o.resend.OnCall(func(http.ResponseWriter, int) bool { <-hanging; return false })
	o.emit(event("to.gone", 0))
	eventually(t, patience, "Resend hangs", func() bool { return o.resend.Calls() >= asked+4 })
	for i := range 20 {
		o.emit(event("to.well", i))
	}
	eventually(t, patience, "deliveries go on", func() bool { return o.ask("SELECT count(*) FROM deliveries WHERE status = 2") == 20 })
	if n := o.ask("SELECT count(*) FROM endpoints WHERE status = 'disabled'"); n != gone {
		t.Errorf("%d endpoints are disabled, want %d", n, gone)
	}
	if n := len(o.resend.Sent()) - asked; n != 0 {
		t.Errorf("%d mails were taken by a Resend that hangs", n)
	}
	hang()
	o.allSent(asked + gone)
	if n := len(o.resend.Sent()) - asked; n != gone {
		t.Errorf("%d mails, want %d", n, gone)
	}
}
