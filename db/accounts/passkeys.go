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
func StartPasskey(ctx context.Context, d *db.DB, p PasskeyCeremony) (token string, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		token, err = MakeLink(ctx, q, NewLink{Purpose: linkPasskey, Data: p, Life: ceremonyLife})
		return err
	})
	return token, err
}

// TakePasskey uses up a ceremony and returns its session. A ceremony that was used, has expired, belongs to another
// browser, or is for another kind of account is fault.ErrNotFound.
func TakePasskey(ctx context.Context, d *db.DB, token, browser string, kind account.Kind) (session json.RawMessage,
	err error,
) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		link, err := q.UseLink(ctx, sql.UseLinkParams{Hash: HashToken(token), Purpose: linkPasskey})
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

// Passkeys lists those of a person or an operator, oldest first.
func Passkeys(ctx context.Context, d *db.DB, owner id.UUID) (rows []sql.Passkey, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		rows, err = q.ListPasskeys(ctx, &owner)
		return err
	})
	return rows, err
}

// PasskeyOwner is the person or operator who owns a passkey.
func PasskeyOwner(row sql.Passkey) id.UUID {
	if row.PersonID != nil {
		return *row.PersonID
	}
	return *row.OperatorID
}

// FindPasskey finds a passkey of a kind of accounts by its credential id, or returns fault.ErrNotFound.
func FindPasskey(ctx context.Context, d *db.DB, credential []byte, kind account.Kind) (row sql.Passkey, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err = q.FindPasskey(ctx, credential)
		if err == nil && (row.PersonID != nil) != (kind == account.Person) {
			err = fault.ErrNotFound
		}
		return err
	})
	return row, err
}

// UsePasskey stores the state of a passkey after a sign-in.
func UsePasskey(ctx context.Context, d *db.DB, passkey id.UUID, credential json.RawMessage) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.UsePasskey(ctx, sql.UsePasskeyParams{ID: passkey, Credential: credential})
	})
}

// maxPasskeys is how many passkeys an account can have.
const maxPasskeys = 20

var errPasskeys = fault.New(fault.Conflict, "passkeys_limit", "This account has 20 passkeys, the maximum. Remove one first.")

// NewPasskey describes a passkey to be added.
type NewPasskey struct {
	ID         []byte // from the authenticator
	Credential json.RawMessage
	Name       string
	Address    string
}

// AddPasskey adds a passkey to a person, in the caller's transaction, and audits it.
func AddPasskey(ctx context.Context, q *sql.Queries, person id.UUID, p NewPasskey) (sql.Person, error) {
	who, err := q.LockPerson(ctx, person)
	if err != nil {
		return who, err
	}
	if err := insertPasskey(ctx, q, sql.InsertPasskeyParams{PersonID: &person}, p); err != nil {
		return who, err
	}
	return who, AuditPerson(ctx, q, person, p.Address, "passkey.added", map[string]string{"name": p.Name})
}

// AddOperatorPasskey is AddPasskey for an operator.
func AddOperatorPasskey(ctx context.Context, q *sql.Queries, operator id.UUID, p NewPasskey) error {
	if err := insertPasskey(ctx, q, sql.InsertPasskeyParams{OperatorID: &operator}, p); err != nil {
		return err
	}
	return AuditOperator(ctx, q, operator, p.Address, "operator.passkey.added")
}

func insertPasskey(ctx context.Context, q *sql.Queries, row sql.InsertPasskeyParams, p NewPasskey) error {
	owner := row.PersonID
	if owner == nil {
		owner = row.OperatorID
	}
	all, err := q.ListPasskeys(ctx, owner)
	if err == nil && len(all) >= maxPasskeys {
		err = errPasskeys
	}
	if err != nil {
		return err
	}
	row.ID, row.CredentialID, row.Credential, row.Name = db.NewID(), p.ID, p.Credential, p.Name
	return q.InsertPasskey(ctx, row)
}

// RenamePasskey renames a passkey of an account. A passkey of another account is fault.ErrNotFound.
func RenamePasskey(ctx context.Context, d *db.DB, owner id.UUID, credential []byte, name string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		n, err := q.RenamePasskey(ctx, sql.RenamePasskeyParams{OwnerID: &owner, CredentialID: credential, Name: name})
		if err == nil && n == 0 {
			err = fault.ErrNotFound
		}
		return err
	})
}

// RemovePasskey removes a passkey of a person, in the caller's transaction, and audits it. A passkey of somebody else
// is fault.ErrNotFound.
func RemovePasskey(ctx context.Context, q *sql.Queries, person id.UUID, credential []byte, address string) (sql.Person,
	error,
) {
	who, err := q.LockPerson(ctx, person)
	if err != nil {
		return who, err
	}
	if err := deletePasskey(ctx, q, person, credential); err != nil {
		return who, err
	}
	left, err := q.CountPasskeys(ctx, &person)
	if err == nil && left == 0 {
		_, _, err = StopRequiringPasskey(ctx, q, person, address)
	}
	if err != nil {
		return who, err
	}
	return who, AuditPerson(ctx, q, person, address, "passkey.removed", nil)
}

// RemoveOperatorPasskey is RemovePasskey for an operator.
func RemoveOperatorPasskey(ctx context.Context, q *sql.Queries, operator id.UUID, credential []byte,
	address string,
) error {
	if err := deletePasskey(ctx, q, operator, credential); err != nil {
		return err
	}
	return AuditOperator(ctx, q, operator, address, "operator.passkey.removed")
}

func deletePasskey(ctx context.Context, q *sql.Queries, owner id.UUID, credential []byte) error {
	n, err := q.DeletePasskey(ctx, sql.DeletePasskeyParams{OwnerID: &owner, CredentialID: credential})
	if err == nil && n == 0 {
		err = fault.ErrNotFound
	}
	return err
}
