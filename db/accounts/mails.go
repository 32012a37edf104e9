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
)

// Mail is a mail to be sent.
type Mail struct {
	Tenant *id.UUID // nil: concerns a person or the platform
	Key    string   // what it is for; unique over all mails, and the provider's idempotency key: one mail per purpose
	To     string
	Kind   mail.Kind
	Data   any        // becomes a JSON object for the kind's template
	Keys   *seal.Ring // seals Data at rest; needed where Kind.Secret(), since Data holds a link then
}

// QueueMail puts a mail into the outbox in the transaction at hand, which is one of the worker, the console, or the
// tenant that the mail concerns. False: a mail with this key is there already, sent or not.
func QueueMail(ctx context.Context, q *sql.Queries, m Mail) (bool, error) {
	if !m.Kind.Known() || m.Key == "" || m.To == "" || m.Kind.Secret() && m.Keys == nil {
		return false, fmt.Errorf("queue mail: kind %q, key %q: a kind, a key, an address, and a ring for kinds with links are needed", m.Kind, m.Key)
	}
	data, err := encodeObject(m.Data)
	if err != nil {
		return false, fmt.Errorf("encode mail %s: %w", m.Kind, err)
	}
	mailID := db.NewID()
	row := sql.InsertMailParams{
		ID: mailID, TenantID: m.Tenant, Key: m.Key, Recipient: m.To, Kind: m.Kind, Data: data, CreatedAt: mailID.Time(),
	}
	if m.Keys != nil {
		row.Sealed, row.Data = m.Keys.Seal(data, db.TenantOrZero(m.Tenant), mailID), json.RawMessage("{}")
	}
	rows, err := q.InsertMail(ctx, row)
	return rows > 0, err
}

// tryMail counts one more mail that a limit is for, by what and whose, and says in how many seconds to come back; 0: go
// on.
func tryMail(ctx context.Context, q *sql.Queries, l account.Limit, what string, whose ...string) (wait int, err error) {
	key := limitKey("mail:"+what, strings.Join(whose, "\x00"))
	row, err := q.CountMail(ctx, sql.CountMailParams{Key: key, Seconds: int32(l.Window / time.Second)})
	if err != nil || int(row.N) <= l.Tries {
		return 0, err
	}
	return max(1, int(row.SecondsLeft)), nil
}

// MailText is what a mail in the outbox is made of, opened where it was sealed.
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

// ResendMail gives a mail that failed permanently a fresh chain of tries, and audits it. A mail in any other state is
// mail_not_given_up.
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

var errMailNotGivenUp = fault.New(fault.Conflict, "mail_not_given_up",
	"This email is no longer marked as failed: it was sent again or deleted.")
