package accounts

import (
	"context"
	"encoding/json"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// read finds an account with the statement of its kind.
func read[K any](
	ctx context.Context,
	kind account.Kind,
	key K,
	person func(context.Context, K) (sql.Person, error),
	operator func(context.Context, K) (sql.Operator, error),
) (account.Account, error) {
	if kind != account.Operator {
		p, err := person(ctx, key)
		return ofPerson(p), err
	}
	o, err := operator(ctx, key)
	a := account.Account{
		User:     account.User{Kind: kind, ID: o.ID, Name: o.Name, Email: o.Email, TOTP: o.TotpAt != nil},
		Seed:     o.Totp,
		Disabled: o.DisabledAt != nil,
	}
	if o.Password != nil {
		a.Password = *o.Password
	}
	return a, err
}

func ofPerson(p sql.Person) account.Account {
	return account.Account{
		User:            account.User{Kind: account.Person, ID: p.ID, Name: p.Name, Email: p.Email, TOTP: p.TotpAt != nil},
		Password:        p.Password,
		Seed:            p.Totp,
		PasskeyRequired: p.PasskeyRequiredAt != nil,
		Disabled:        p.DisabledAt != nil,
		LastTenant:      p.LastTenant,
	}
}

// Get reads an account by its id, or returns fault.ErrNotFound.
func Get(ctx context.Context, q *sql.Queries, kind account.Kind, of id.UUID) (account.Account, error) {
	return read(ctx, kind, of, q.GetPerson, q.GetOperator)
}

// Find reads an account by its address, or returns fault.ErrNotFound.
func Find(ctx context.Context, q *sql.Queries, kind account.Kind, email string) (account.Account, error) {
	return read(ctx, kind, email, q.FindPerson, q.FindOperator)
}

// Self is a user who changes their own account, and where from. The zero id is nobody who is known.
type Self struct {
	Kind    account.Kind
	ID      id.UUID
	Address string
}

func (s Self) lock(ctx context.Context, q *sql.Queries) (account.Account, error) {
	return read(ctx, s.Kind, s.ID, q.LockPerson, q.LockOperator)
}

// Audit writes to the audit logs what a user did with their account, or what was tried in their name, in the caller's
// transaction. An operator belongs to no tenant, so that the platform's log has it.
func (s Self) Audit(ctx context.Context, q *sql.Queries, action string, details any) error {
	if s.Kind == account.Operator {
		return s.auditOperator(ctx, q, db.Audited{Action: "operator." + action, Details: details})
	}
	return auditPerson(ctx, q, s.ID, s.Address, action, details)
}

func (s Self) auditOperator(ctx context.Context, q *sql.Queries, what db.Audited) error {
	what.Kind = "operator"
	by := db.Author{Kind: "system", Address: s.Address}
	if !s.ID.IsZero() {
		what.Object = id.Operator.Format(s.ID)
		by.Kind, by.ID = "operator", what.Object
	}
	return db.Audit(ctx, q, by, what)
}

// RenamePerson sets a person's name.
func RenamePerson(ctx context.Context, d *db.DB, person id.UUID, name string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetPersonName(ctx, name, person)
	})
}

// Link is a one-time link that can still be used.
type Link struct {
	Owner id.UUID // zero: nobody who has an account
	Email string
	Data  json.RawMessage
}

// PeekLink reads a one-time link without using it up: mail programs open links before people do. A link that was used
// or has expired is fault.ErrNotFound.
func PeekLink(ctx context.Context, d *db.DB, purpose, token string) (l Link, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err := q.PeekLink(ctx, HashToken(token), purpose)
		l = linkOf(row)
		return err
	})
	return l, err
}

func linkOf(row sql.OneTimeLink) Link {
	l := Link{Email: row.Email, Data: row.Data}
	if owner := ownerOf(row.PersonID, row.OperatorID); owner != nil {
		l.Owner = *owner
	}
	return l
}

// ownerOf is the one of two columns that is set; nil: none.
func ownerOf(person, operator *id.UUID) *id.UUID {
	if person != nil {
		return person
	}
	return operator
}

// DropLinks invalidates the one-time links of an account that have one purpose, in the caller's transaction.
func DropLinks(ctx context.Context, q *sql.Queries, owner id.UUID, purpose string) error {
	return q.DeleteLinksOf(ctx, &owner, purpose)
}

// ChangeEmail uses up a link of LinkEmail and gives its person the link's address. It deletes links that reset the
// password, since they went to the old address. It returns the person before the change, and the new address. A link
// that was used or has expired is fault.ErrNotFound; an address of another account is already_exists.
func ChangeEmail(ctx context.Context, q *sql.Queries, token, address string) (was account.Account, email string, err error) {
	link, err := q.UseLink(ctx, HashToken(token), LinkEmail)
	if err != nil {
		return was, "", err
	}
	self := Self{Kind: account.Person, ID: *link.PersonID, Address: address}
	if was, err = self.lock(ctx, q); err != nil {
		return was, "", err
	}
	if err := q.SetPersonEmail(ctx, link.Email, was.ID); err != nil {
		return was, "", err
	}
	if err := DropLinks(ctx, q, was.ID, LinkReset); err != nil {
		return was, "", err
	}
	return was, link.Email, self.Audit(ctx, q, "email.changed", nil)
}

// PasswordLink is the purpose of the links that set the password of an account.
func PasswordLink(kind account.Kind) string {
	if kind == account.Operator {
		return LinkOperator
	}
	return LinkReset
}

// ChangePassword sets the password of an account to one with the given hash (a PHC string), in the caller's
// transaction. It ends all sessions but one, deletes every link that would set another password, and deletes the
// counted tries. The zero id keeps no session.
func ChangePassword(ctx context.Context, q *sql.Queries, self Self, hash string, keep id.UUID) (account.Account, error) {
	a, err := self.lock(ctx, q)
	if err != nil {
		return a, err
	}
	if self.Kind == account.Operator {
		err = q.SetOperatorPassword(ctx, &hash, a.ID)
	} else {
		err = q.SetPersonPassword(ctx, hash, a.ID)
	}
	if err != nil {
		return a, err
	}
	if _, err := q.EndSessionsOf(ctx, &a.ID, keep); err != nil {
		return a, err
	}
	if err := DropLinks(ctx, q, a.ID, PasswordLink(self.Kind)); err != nil {
		return a, err
	}
	if err := Succeeded(ctx, q, PasswordTries(self.Kind), a.Email); err != nil {
		return a, err
	}
	return a, self.Audit(ctx, q, "password.changed", nil)
}

// ResetPassword uses up a link of PasswordLink and sets the password of its account. The link of an operator, who asked
// for it on the command line, also turns off the second factor. A link that was used or has expired is
// fault.ErrNotFound.
func ResetPassword(ctx context.Context, q *sql.Queries, self Self, token, hash string) (account.Account, error) {
	row, err := q.UseLink(ctx, HashToken(token), PasswordLink(self.Kind))
	if err != nil {
		return account.Account{}, err
	}
	self.ID = linkOf(row).Owner
	a, err := ChangePassword(ctx, q, self, hash, id.UUID{})
	if err != nil || self.Kind != account.Operator {
		return a, err
	}
	a.Seed, a.TOTP = nil, false
	return a, removeTOTP(ctx, q, a)
}

// CreateOperator adds an operator in the caller's transaction. The address of another operator is already_exists.
func CreateOperator(ctx context.Context, q *sql.Queries, email string) (id.UUID, error) {
	operator := db.NewID()
	n, err := q.InsertOperator(ctx, sql.InsertOperatorParams{ID: operator, Email: email, CreatedAt: operator.Time()})
	if err == nil && n == 0 {
		err = fault.New(fault.Conflict, "already_exists", "There is an operator with this address already.")
	}
	return operator, err
}
