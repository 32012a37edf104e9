package accounts

import (
	"context"
	"encoding/json"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// keptMails is how many mails the console driver's mailbox holds.
const keptMails = 200

// KeepMail puts a mail into the mailbox of the console driver. If the mail is there already, nothing changes.
func KeepMail(ctx context.Context, d *db.DB, ring *seal.Ring, m mail.Kept) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return d.Worker(ctx, func(q *sql.Queries) error {
		if err := q.KeepMail(ctx, m.ID, ring.Seal(text, id.UUID{}, m.ID)); err != nil {
			return err
		}
		return q.DropKeptMails(ctx, keptMails)
	})
}

// KeptMails returns the mails in the console driver's mailbox, newest first, and how many more are waiting in the
// outbox.
func KeptMails(ctx context.Context, d *db.DB, ring *seal.Ring) (mails []mail.Kept, waiting int64, err error) {
	err = d.Console(ctx, func(q *sql.Queries) (err error) {
		if waiting, err = q.WaitingMails(ctx); err != nil {
			return err
		}
		rows, err := q.ListKeptMails(ctx, keptMails)
		for _, r := range rows {
			m, err := open(r, ring)
			if err != nil {
				return err
			}
			mails = append(mails, m)
		}
		return err
	})
	return mails, waiting, err
}

// KeptMail returns one of these mails.
func KeptMail(ctx context.Context, d *db.DB, ring *seal.Ring, mailID id.UUID) (m mail.Kept, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		r, err := q.GetKeptMail(ctx, mailID)
		if err != nil {
			return err
		}
		m, err = open(r, ring)
		return err
	})
	return m, err
}

func open(r sql.Mailbox, ring *seal.Ring) (m mail.Kept, err error) {
	text, err := ring.Open(r.Sealed, id.UUID{}, r.ID)
	if err != nil {
		return m, db.Unopened(err)
	}
	m.ID = r.ID
	return m, json.Unmarshal(text, &m)
}
