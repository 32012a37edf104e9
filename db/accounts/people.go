package accounts

import (
	"context"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// RenamePerson sets a person's name.
func RenamePerson(ctx context.Context, d *db.DB, person id.UUID, name string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetPersonName(ctx, sql.SetPersonNameParams{ID: person, Name: name})
	})
}

// DropLinks invalidates a person's one-time links of one purpose, in the caller's transaction.
func DropLinks(ctx context.Context, q *sql.Queries, person id.UUID, purpose string) error {
	return q.DeleteLinksOfPerson(ctx, sql.DeleteLinksOfPersonParams{PersonID: &person, Purpose: purpose})
}

// ChangeEmail uses up a link of LinkEmail and gives its person the link's address. It deletes links that reset the
// password, since they went to the old address. It returns the person before the change, and the new address. A link
// that was used or has expired is fault.ErrNotFound; an address of another account is already_exists.
func ChangeEmail(ctx context.Context, q *sql.Queries, token, address string) (was sql.Person, email string, err error) {
	link, err := q.UseLink(ctx, sql.UseLinkParams{Hash: HashToken(token), Purpose: LinkEmail})
	if err != nil {
		return was, "", err
	}
	if was, err = q.LockPerson(ctx, *link.PersonID); err != nil {
		return was, "", err
	}
	if err := q.SetPersonEmail(ctx, sql.SetPersonEmailParams{ID: was.ID, Email: link.Email}); err != nil {
		return was, "", err
	}
	if err := DropLinks(ctx, q, was.ID, LinkReset); err != nil {
		return was, "", err
	}
	return was, link.Email, AuditPerson(ctx, q, was.ID, address, "email.changed", nil)
}

// NewPassword describes a password to be set.
type NewPassword struct {
	Hash    string  // a PHC string
	Keep    id.UUID // the session to keep; zero: none
	Address string
}

// ChangePassword sets a person's password, in the caller's transaction. It ends all sessions but one, deletes every
// link that would set another password, and deletes the counted tries.
func ChangePassword(ctx context.Context, q *sql.Queries, person id.UUID, to NewPassword) (sql.Person, error) {
	p, err := q.LockPerson(ctx, person)
	if err != nil {
		return p, err
	}
	if err := q.SetPersonPassword(ctx, sql.SetPersonPasswordParams{ID: p.ID, Password: to.Hash}); err != nil {
		return p, err
	}
	if _, err := q.EndSessionsOfPerson(ctx, sql.EndSessionsOfPersonParams{PersonID: &p.ID, But: to.Keep}); err != nil {
		return p, err
	}
	if err := DropLinks(ctx, q, p.ID, LinkReset); err != nil {
		return p, err
	}
	if err := Succeeded(ctx, q, "password", p.Email); err != nil {
		return p, err
	}
	return p, AuditPerson(ctx, q, p.ID, to.Address, "password.changed", nil)
}

// ResetPassword uses up a link of LinkReset and sets its person's password. A link that was used or has expired is
// fault.ErrNotFound.
func ResetPassword(ctx context.Context, q *sql.Queries, token string, to NewPassword) (sql.Person, error) {
	link, err := q.UseLink(ctx, sql.UseLinkParams{Hash: HashToken(token), Purpose: LinkReset})
	if err != nil {
		return sql.Person{}, err
	}
	return ChangePassword(ctx, q, *link.PersonID, to)
}

// AuditOperator writes to the platform's log what an operator did with their own account, since an operator belongs to
// no tenant. The zero id is an unidentified operator.
func AuditOperator(ctx context.Context, q *sql.Queries, operator id.UUID, address, action string) error {
	return auditOperator(ctx, q, operator, address, db.Audited{Action: action})
}

func auditOperator(ctx context.Context, q *sql.Queries, operator id.UUID, address string, what db.Audited) error {
	what.Kind = "operator"
	by := db.Author{Kind: "system", Address: address}
	if !operator.IsZero() {
		what.Object = id.Operator.Format(operator)
		by.Kind, by.ID = "operator", what.Object
	}
	return db.Audit(ctx, q, by, what)
}

// SetOperatorPassword uses up a link of LinkOperator and sets its operator's password. It turns off the second factor,
// and deletes the recovery codes, the other links and all sessions. A link that was used or has expired is
// fault.ErrNotFound.
func SetOperatorPassword(ctx context.Context, q *sql.Queries, token string, to NewPassword) (operator sql.Operator,
	err error,
) {
	link, err := q.UseLink(ctx, sql.UseLinkParams{Hash: HashToken(token), Purpose: LinkOperator})
	if err != nil {
		return operator, err
	}
	operatorID := *link.OperatorID
	if err := q.SetOperatorPassword(ctx, sql.SetOperatorPasswordParams{
		ID:       operatorID,
		Password: &to.Hash,
	}); err != nil {
		return operator, err
	}
	if err := q.SetOperatorTOTP(ctx, sql.SetOperatorTOTPParams{ID: operatorID}); err != nil {
		return operator, err
	}
	if err := q.DeleteRecoveryCodes(ctx, operatorID); err != nil {
		return operator, err
	}
	if err := q.DeleteLinksOfOperator(ctx, &operatorID); err != nil {
		return operator, err
	}
	if _, err := q.EndSessionsOfOperator(ctx, sql.EndSessionsOfOperatorParams{OperatorID: &operatorID}); err != nil {
		return operator, err
	}
	if err := AuditOperator(ctx, q, operatorID, to.Address, "operator.password.changed"); err != nil {
		return operator, err
	}
	return q.GetOperator(ctx, operatorID)
}

// StartOperatorSession makes an operator's pending session a full one under a new token, in the caller's transaction,
// and audits the sign-in.
func StartOperatorSession(ctx context.Context, q *sql.Queries, session, operator id.UUID, address string) (token string,
	err error,
) {
	if token, err = RotateSession(ctx, q, account.Operator, session); err != nil {
		return "", err
	}
	return token, AuditOperator(ctx, q, operator, address, "operator.sign_in.succeeded")
}
