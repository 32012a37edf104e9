package db

import (
	"context"
	"encoding/json"

	"posthorn/db/seal"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// keptMails is how many mails the console driver's mailbox holds.
const keptMails = 200

// KeepMail puts a mail into the mailbox of the console driver; one that is there already stays as it is.
func (d *DB) KeepMail(ctx context.Context, ring *seal.Ring, m mail.Kept) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return d.Worker(ctx, func(q *Queries) error {
		if err := q.KeepMail(ctx, KeepMailParams{ID: m.ID, Sealed: ring.Seal(text, id.UUID{}, m.ID)}); err != nil {
			return err
		}
		return q.DropKeptMails(ctx, keptMails)
	})
}

// KeptMails are the mails in the console driver's mailbox, newest first.
func (d *DB) KeptMails(ctx context.Context, ring *seal.Ring) (mails []mail.Kept, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		rows, err := q.ListKeptMails(ctx, keptMails)
		for _, r := range rows {
			m, err := r.open(ring)
			if err != nil {
				return err
			}
			mails = append(mails, m)
		}
		return err
	})
	return mails, err
}

// KeptMail is one of them.
func (d *DB) KeptMail(ctx context.Context, ring *seal.Ring, u id.UUID) (m mail.Kept, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		r, err := q.GetKeptMail(ctx, u)
		if err != nil {
			return err
		}
		m, err = r.open(ring)
		return err
	})
	return m, err
}

func (r Mailbox) open(ring *seal.Ring) (m mail.Kept, err error) {
	text, err := ring.Open(r.Sealed, id.UUID{}, r.ID)
	if err != nil {
		return m, unopened(err)
	}
	m.ID = r.ID
	return m, json.Unmarshal(text, &m)
}
