package accounts

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// PasskeyCeremony is a sign-in or a registration with a passkey that is in progress.
type PasskeyCeremony struct {
	Browser []byte          `json:"browser"` // the hash of the browser's cookie
	Kind    account.Kind    `json:"kind"`
	Session json.RawMessage `json:"session"` // the challenge, and what it is for
}

// ceremonyLife is how long a ceremony can take.
const ceremonyLife = 5 * time.Minute

// StartPasskey stores a ceremony and returns the token by which its form names it.
func StartPasskey(ctx context.Context, d *db.DB, p PasskeyCeremony) (string, error) {
	return db.Read(ctx, d.Account, func(q *sql.Queries) (string, error) {
		return MakeLink(ctx, q, NewLink{Purpose: linkPasskey, Data: p, Life: ceremonyLife})
	})
}

// TakePasskey uses up a ceremony and returns its session. A ceremony that was used, has expired, belongs to another
// browser, or is for another kind of account is fault.ErrNotFound.
func TakePasskey(ctx context.Context, d *db.DB, token, browser string, kind account.Kind) (session json.RawMessage, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		link, err := q.UseLink(ctx, HashToken(token), linkPasskey)
		if err != nil {
			return err
		}
		var p PasskeyCeremony
		if err := json.Unmarshal(link.Data, &p); err != nil {
			return err
		}
		if browser == "" || string(p.Browser) != string(HashToken(browser)) || p.Kind != kind {
			return fault.ErrNotFound
		}
		session = p.Session
		return nil
	})
	return session, err
}

// Passkeys lists those of an account, oldest first.
func Passkeys(ctx context.Context, d *db.DB, owner id.UUID) ([]account.Passkey, error) {
	return db.Read(ctx, d.Account, func(q *sql.Queries) ([]account.Passkey, error) { return passkeysOf(ctx, q, owner) })
}

func passkeysOf(ctx context.Context, q *sql.Queries, owner id.UUID) ([]account.Passkey, error) {
	rows, err := q.ListPasskeys(ctx, &owner)
	all := make([]account.Passkey, len(rows))
	for i, r := range rows {
		all[i] = passkeyOf(r)
	}
	return all, err
}

func passkeyOf(r sql.Passkey) account.Passkey {
	return account.Passkey{
		ID:         r.ID,
		Owner:      *ownerOf(r.PersonID, r.OperatorID),
		Credential: r.CredentialID,
		State:      r.Credential,
		Name:       r.Name,
		Created:    r.CreatedAt,
		Used:       r.UsedAt,
	}
}

// FindPasskey finds a passkey of a kind of accounts by its credential id, or returns fault.ErrNotFound.
func FindPasskey(ctx context.Context, d *db.DB, credential []byte, kind account.Kind) (p account.Passkey, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err := q.FindPasskey(ctx, credential)
		if err == nil && (row.PersonID != nil) != (kind == account.Person) {
			err = fault.ErrNotFound
		}
		if err == nil {
			p = passkeyOf(row)
		}
		return err
	})
	return p, err
}

// UsePasskey stores the state of a passkey after a sign-in.
func UsePasskey(ctx context.Context, d *db.DB, passkey id.UUID, state json.RawMessage) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.UsePasskey(ctx, state, passkey)
	})
}

// maxPasskeys is how many passkeys an account can have.
const maxPasskeys = 20

var errPasskeys = fault.New(fault.Conflict, "passkeys_limit", "This account has 20 passkeys, the maximum. Remove one first.")

// AddPasskey adds a passkey to an account, in the caller's transaction, and audits it. p has the credential, its state,
// and the name.
func AddPasskey(ctx context.Context, q *sql.Queries, self Self, p account.Passkey) (account.Account, error) {
	a, err := self.lock(ctx, q)
	if err != nil {
		return a, err
	}
	n, err := q.CountPasskeys(ctx, &a.ID)
	if err == nil && n >= maxPasskeys {
		err = errPasskeys
	}
	if err != nil {
		return a, err
	}
	row := sql.InsertPasskeyParams{
		ID:           db.NewID(),
		PersonID:     &a.ID,
		CredentialID: p.Credential,
		Credential:   p.State,
		Name:         p.Name,
	}
	if self.Kind == account.Operator {
		row.PersonID, row.OperatorID = nil, &a.ID
	}
	if err := q.InsertPasskey(ctx, row); err != nil {
		return a, err
	}
	return a, self.Audit(ctx, q, "passkey.added", map[string]string{"name": p.Name})
}

// RenamePasskey renames a passkey of an account. A passkey of another account is fault.ErrNotFound.
func RenamePasskey(ctx context.Context, d *db.DB, owner id.UUID, credential []byte, name string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		n, err := q.RenamePasskey(ctx, sql.RenamePasskeyParams{OwnerID: &owner, CredentialID: credential, Name: name})
		return foundOne(n, err)
	})
}

// foundOne is the error of a statement that had to change a row: fault.ErrNotFound if it changed none.
func foundOne(n int64, err error) error {
	if err == nil && n == 0 {
		err = fault.ErrNotFound
	}
	return err
}

// RemovePasskey removes a passkey of an account, in the caller's transaction, and audits it. A passkey of somebody else
// is fault.ErrNotFound.
func RemovePasskey(ctx context.Context, q *sql.Queries, self Self, credential []byte) (account.Account, error) {
	a, err := self.lock(ctx, q)
	if err != nil {
		return a, err
	}
	err = foundOne(q.DeletePasskey(ctx, credential, &a.ID))
	if err != nil {
		return a, err
	}
	has, err := FactorsOf(ctx, q, a)
	if err == nil && has.Required && has.Passkeys == 0 {
		_, _, err = StopRequiringPasskey(ctx, q, self)
	}
	if err != nil {
		return a, err
	}
	return a, self.Audit(ctx, q, "passkey.removed", nil)
}
