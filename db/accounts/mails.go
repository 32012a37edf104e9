package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/show"
)

// Mail is a mail to be sent.
type Mail struct {
	ID     id.UUID  // zero: a new one
	Tenant *id.UUID // nil: concerns a person or the platform
	Key    string   // what it is for; unique over all mails, and the provider's idempotency key: one mail per purpose
	To     string
	Kind   mail.Kind
	Data   any        // becomes a JSON object for the kind's template
	Keys   *seal.Ring // seals Data at rest; required if Kind.Secret(), since Data then holds a link
}

// QueueMail puts a mail into the outbox in the caller's transaction, which runs as the worker, the console, or the
// tenant that the mail concerns. It returns false if a mail with this key exists already, sent or not.
func QueueMail(ctx context.Context, q *sql.Queries, m Mail) (bool, error) {
	if !m.Kind.Known() || m.Key == "" || m.To == "" || m.Kind.Secret() && m.Keys == nil {
		return false, fmt.Errorf("queue mail: kind %q, key %q: a kind, a key, an address, and a ring for kinds with links are needed", m.Kind, m.Key)
	}
	data, err := encodeObject(m.Data)
	if err != nil {
		return false, fmt.Errorf("encode mail %s: %w", m.Kind, err)
	}
	mailID := m.ID
	if mailID.IsZero() {
		mailID = db.NewID()
	}
	row := sql.InsertMailParams{
		ID:        mailID,
		TenantID:  m.Tenant,
		Key:       m.Key,
		Recipient: m.To,
		Kind:      m.Kind,
		Data:      data,
		CreatedAt: mailID.Time(),
	}
	if m.Keys != nil {
		row.Sealed, row.Data = m.Keys.Seal(data, db.TenantOrZero(m.Tenant), mailID), json.RawMessage("{}")
	}
	rows, err := q.InsertMail(ctx, row)
	return rows > 0, err
}

// tryMail counts one more mail against a limit. what and whose name the limit. It returns how many seconds to wait; 0
// means that the mail is allowed.
func tryMail(ctx context.Context, q *sql.Queries, l account.Limit, what string, whose ...string) (wait int, err error) {
	key := limitKey("mail:"+what, strings.Join(whose, "\x00"))
	row, err := q.CountMail(ctx, key, int32(l.Window/time.Second))
	if err != nil || int(row.N) <= l.Tries {
		return 0, err
	}
	return max(1, int(row.SecondsLeft)), nil
}

// MailText holds the data of a mail in the outbox, unsealed if it was sealed.
func MailText(m sql.ClaimMailsRow, ring *seal.Ring) (json.RawMessage, error) {
	if m.Sealed == nil {
		return m.Data, nil
	}
	text, err := ring.Open(m.Sealed, db.TenantOrZero(m.TenantID), m.ID)
	if err != nil {
		return nil, db.Unopened(err)
	}
	return text, nil
}

// MailList narrows the mails of the outbox. Zero fields narrow nothing.
type MailList struct {
	Tenant *id.UUID
	State  string
}

// List reads a page of the mails, the newest first.
func (l MailList) List(ctx context.Context, q *sql.Queries, r show.Range) (show.Page[show.Mail], error) {
	rows, err := q.ConsoleMails(ctx, sql.ConsoleMailsParams{
		Before: r.Edge(),
		State:  l.State,
		Tenant: l.Tenant,
		Limit:  db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.ConsoleMailsRow) id.UUID { return row.ID })
	return show.Each(page, func(row sql.ConsoleMailsRow) show.Mail {
		return show.Mail{
			ID:         row.ID,
			Tenant:     row.TenantID,
			TenantName: row.TenantName,
			Recipient:  row.Recipient,
			Kind:       row.Kind,
			State:      row.State,
			Tries:      int(row.Tries),
			LastError:  row.LastError,
			CreatedAt:  row.CreatedAt,
		}
	}), err
}

// ResendMail starts a new series of tries for a mail that failed permanently, and audits it. A mail in any other state
// is mail_not_given_up.
func ResendMail(ctx context.Context, d *db.DB, mailID id.UUID, by db.Author) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		n, err := q.SendMailAgain(ctx, mailID)
		if err != nil {
			return err
		}
		if n == 0 {
			return errMailNotGivenUp
		}
		return db.Audit(ctx, q, by, db.Audited{Action: "mail.sent_again", Kind: "mail", Object: id.Mail.Format(mailID)})
	})
}

var errMailNotGivenUp = fault.New(
	fault.Conflict,
	"mail_not_given_up",
	"This email is no longer marked as failed: it was sent again or deleted.",
)
