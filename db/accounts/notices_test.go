package accounts_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/tools/schematest"
)

func TestANoticeIsPostedOnceByEveryRole(t *testing.T) {
	t.Parallel()
	d, _, a, b := schematest.Tenants(t, 2)
	ctx := t.Context()
	post := func(q *sql.Queries, tenant id.UUID, key string) bool {
		t.Helper()
		endpoint := db.NewID()
		posted, err := accounts.PostNotice(ctx, q, accounts.Notice{
			Tenant:   tenant,
			Kind:     notice.SecretRotated,
			Key:      key,
			Endpoint: &endpoint,
			Details:  map[string]int{"n": 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		return posted
	}
	for _, tt := range []struct {
		by     string
		key    string
		posted bool
	}{{"tenant", "one", true}, {"worker", "one", false}, {"worker", "two", true}, {"console", "two", false}, {"console", "three", true}, {"tenant", "three", false}} {
		fn := func(q *sql.Queries) error {
			if got := post(q, a, tt.key); got != tt.posted {
				t.Errorf("%s posting %s: %v, want %v", tt.by, tt.key, got, tt.posted)
			}
			return nil
		}
		var err error
		switch tt.by {
		case "tenant":
			err = d.Tenant(ctx, a, fn)
		case "worker":
			err = d.Worker(ctx, fn)
		default:
			err = d.Console(ctx, fn)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Worker(ctx, func(q *sql.Queries) error {
		if !post(q, b, "one") {
			t.Error("another tenant's key is another")
		}
		return errors.New("rolled back")
	}); err == nil {
		t.Fatal(err)
	}
	if err := d.Worker(ctx, func(q *sql.Queries) error {
		if !post(q, b, "one") {
			t.Error("a notice that was rolled back is there")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Tenant(ctx, a, func(q *sql.Queries) error {
		_, err := accounts.PostNotice(ctx, q, accounts.Notice{Tenant: b, Kind: notice.KeyCreated, Key: "foreign"})
		return err
	}); err == nil {
		t.Error("a tenant posted a notice of another")
	}
}

func TestAMailIsQueuedOnceForItsPurpose(t *testing.T) {
	t.Parallel()
	d, _, a, b := schematest.Tenants(t, 2)
	ctx := t.Context()
	queue := func(m accounts.Mail, want bool) func(*sql.Queries) error {
		return func(q *sql.Queries) error {
			got, err := accounts.QueueMail(ctx, q, m)
			if err == nil && got != want {
				t.Errorf("%s: queued %v, want %v", m.Key, got, want)
			}
			return err
		}
	}
	one := accounts.Mail{Tenant: &a, Key: "k1", To: "a@example.com", Kind: mail.Notice}
	for _, err := range []error{
		d.Tenant(ctx, a, queue(one, true)),
		d.Tenant(ctx, a, queue(one, false)),
		d.Worker(ctx, queue(one, false)),
		d.Console(ctx, queue(accounts.Mail{Key: "k2", To: "b@example.com", Kind: mail.SignInAlert}, true)),
		d.Worker(ctx, queue(accounts.Mail{Key: "k2", To: "b@example.com", Kind: mail.SignInAlert}, false)),
		// A key is unique over all tenants. Another tenant's key is rejected, and the error reveals nothing about it.
		d.Tenant(ctx, b, queue(accounts.Mail{Tenant: &b, Key: "k1", To: "c@example.com", Kind: mail.Notice}, false)),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for name, m := range map[string]accounts.Mail{
		"another tenant's":                {Tenant: &b, Key: "k3", To: "a@example.com", Kind: mail.Notice},
		"the platform's":                  {Key: "k4", To: "a@example.com", Kind: mail.Notice},
		"one of no kind":                  {Tenant: &a, Key: "k5", To: "a@example.com", Kind: "junk"},
		"one with a link and no key ring": {Tenant: &a, Key: "k6", To: "a@example.com", Kind: mail.Invitation},
	} {
		if err := d.Tenant(ctx, a, queue(m, true)); err == nil {
			t.Errorf("a tenant queued %s", name)
		}
	}
}

func TestAMailWithALinkIsSealed(t *testing.T) {
	t.Parallel()
	d, owner, a, _ := schematest.Tenants(t, 2)
	ring, err := seal.NewRing("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	link := map[string]string{"link": "https://posthorn.example/invitations/canary"}
	if err := d.Console(t.Context(), func(q *sql.Queries) error {
		_, err := accounts.QueueMail(t.Context(), q, accounts.Mail{
			Tenant: &a,
			Key:    "i",
			To:     "a@example.com",
			Kind:   mail.Invitation,
			Data:   link,
			Keys:   ring,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), "SET ROLE posthorn_worker"); err != nil {
		t.Fatal(err)
	}
	var uuid id.UUID
	var data string
	var sealed []byte
	if err := owner.QueryRow(t.Context(), "SELECT id, data::text, sealed FROM posthorn.mails").Scan((*[16]byte)(&uuid), &data, &sealed); err != nil {
		t.Fatal(err)
	}
	text, err := ring.Open(sealed, a, uuid)
	var got map[string]string
	if err != nil || json.Unmarshal(text, &got) != nil || got["link"] != link["link"] || data != "{}" {
		t.Errorf("%s, %s, %v", data, text, err)
	}
}

// TestAMailThatIsBeingSentIsOnItsWay: the mailbox of development shows one or says that one comes, also when a worker
// takes it while the page is being made.
func TestAMailThatIsBeingSentIsOnItsWay(t *testing.T) {
	t.Parallel()
	f := newTold(t)
	if err := f.db.Console(t.Context(), func(q *sql.Queries) error {
		_, err := accounts.QueueMail(t.Context(), q, accounts.Mail{
			Key:  "k",
			To:   "ada@acme.example",
			Kind: mail.ResetPassword,
			Keys: f.ring,
			Data: mail.ResetPasswordData{Link: "https://posthorn.example/reset?token=abc", Expires: time.Now()},
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	err := f.db.Console(t.Context(), func(page *sql.Queries) error { // its time is before the claim
		if err := f.db.Worker(t.Context(), func(q *sql.Queries) error {
			claimed, err := q.ClaimMails(t.Context(), 300, 10)
			if err == nil && len(claimed) != 1 {
				t.Errorf("%d mails are due", len(claimed))
			}
			return err
		}); err != nil {
			return err
		}
		n, err := page.WaitingMails(t.Context())
		if err == nil && n != 1 {
			t.Errorf("%d mails are on their way", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
