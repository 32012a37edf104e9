package accounts

import (
	"context"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// ResetSecondFactor turns off the second factor of a person who has lost the authenticator and the recovery codes. The
// audit log of each of the person's tenants records it, and the person gets a mail. If there is no second factor, it
// returns false and changes nothing.
func ResetSecondFactor(ctx context.Context, d *db.DB, email, reason string, by db.Author) (was bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		found, err := q.FindPerson(ctx, email)
		if err != nil {
			return err
		}
		p, err := q.LockPerson(ctx, found.ID)
		if err != nil || p.TotpAt == nil && p.PasskeyRequiredAt == nil {
			return err
		}
		was = true
		if _, err := q.RequirePasskey(ctx, sql.RequirePasskeyParams{ID: p.ID}); err != nil {
			return err
		}
		p.PasskeyRequiredAt = nil
		if err := removeTOTP(ctx, q, p); err != nil {
			return err
		}
		if err := auditReset(ctx, q, p.ID, reason, by); err != nil {
			return err
		}
		_, err = QueueMail(ctx, q, Mail{
			Key: string(mail.SignInAlert) + ":" + id.Person.Format(db.NewID()), To: p.Email, Kind: mail.SignInAlert,
			Data: mail.SignInAlertData{
				Name: p.Name, What: "The operator of this Posthorn server turned off the second factor of your account.", At: time.Now().UTC().Truncate(time.Second),
				Advice: "sign in, choose a new password, and set up a second factor now.",
			},
		})
		return err
	})
	return was && err == nil, err
}

// auditReset writes to the audit log of each of a person's tenants, or to the platform's log if the person has no
// tenant.
func auditReset(ctx context.Context, q *sql.Queries, person id.UUID, reason string, by db.Author) error {
	tenants, err := q.TenantsOf(ctx, person)
	if err != nil {
		return err
	}
	if len(tenants) == 0 {
		return db.Audit(ctx, q, by, db.Audited{Action: "totp.reset", Kind: "person", Object: id.Person.Format(person), Reason: reason})
	}
	for i := range tenants {
		t := &tenants[i]
		err := db.Audit(ctx, q, by, db.Audited{
			Tenant: &t.TenantID, Action: "totp.reset", Kind: "member",
			Object: id.Member.Format(t.MemberID), Reason: reason,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNoSetup says that no setup of a second factor is in progress, or that the second factor is on already.
var ErrNoSetup = fault.New(fault.Conflict, "totp_not_started", "There is no second factor to confirm. Start again on the account page.")

var errOperatorSetup = errors.New("another request confirmed the second factor")

// StartTOTP stores the sealed seed of a second factor. Sign-ins require it only after ConfirmTOTP.
func StartTOTP(ctx context.Context, d *db.DB, person id.UUID, sealed []byte) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetPersonTOTP(ctx, sql.SetPersonTOTPParams{ID: person, Totp: sealed})
	})
}

// StartOperatorTOTP is StartTOTP for an operator.
func StartOperatorTOTP(ctx context.Context, d *db.DB, operator id.UUID, sealed []byte) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetOperatorTOTP(ctx, sql.SetOperatorTOTPParams{ID: operator, Totp: sealed})
	})
}

// NewTOTP describes a second factor to be turned on.
type NewTOTP struct {
	Step    int64    // of the first code, which is used up
	Codes   []string // the recovery codes, as they are typed
	Address string
}

// ConfirmTOTP turns on a second factor that StartTOTP stored, in the caller's transaction, and audits it. Without a
// stored seed it returns ErrNoSetup.
func ConfirmTOTP(ctx context.Context, q *sql.Queries, person id.UUID, to NewTOTP) error {
	n, err := q.ConfirmPersonTOTP(ctx, sql.ConfirmPersonTOTPParams{ID: person, Step: to.Step})
	if err == nil && n == 0 {
		err = ErrNoSetup
	}
	if err != nil {
		return err
	}
	if err := replaceRecoveryCodes(ctx, q, person, to.Codes); err != nil {
		return err
	}
	return AuditPerson(ctx, q, person, to.Address, "totp.enabled", nil)
}

// ConfirmOperatorTOTP is ConfirmTOTP for an operator.
func ConfirmOperatorTOTP(ctx context.Context, q *sql.Queries, operator id.UUID, to NewTOTP) error {
	n, err := q.ConfirmOperatorTOTP(ctx, sql.ConfirmOperatorTOTPParams{ID: operator, Step: to.Step})
	if err == nil && n == 0 {
		err = errOperatorSetup
	}
	if err != nil {
		return err
	}
	if err := replaceRecoveryCodes(ctx, q, operator, to.Codes); err != nil {
		return err
	}
	return AuditOperator(ctx, q, operator, to.Address, "operator.totp.enabled")
}

// StopTOTP turns off a person's second factor, in the caller's transaction, and audits it. was is false if there was
// none.
func StopTOTP(ctx context.Context, q *sql.Queries, person id.UUID, address string) (p sql.Person, was bool, err error) {
	if p, err = q.LockPerson(ctx, person); err != nil || p.Totp == nil {
		return p, false, err
	}
	if err := removeTOTP(ctx, q, p); err != nil {
		return p, true, err
	}
	return p, true, AuditPerson(ctx, q, p.ID, address, "totp.disabled", nil)
}

// removeTOTP keeps the recovery codes if the person has another second factor.
func removeTOTP(ctx context.Context, q *sql.Queries, p sql.Person) error {
	if err := q.SetPersonTOTP(ctx, sql.SetPersonTOTPParams{ID: p.ID}); err != nil || p.PasskeyRequiredAt != nil {
		return err
	}
	return q.DeleteRecoveryCodes(ctx, p.ID)
}

// FactorsOf lists what a person can sign in with besides the password, in the caller's transaction.
func FactorsOf(ctx context.Context, q *sql.Queries, p sql.Person) (account.Factors, error) {
	n, err := q.CountPasskeys(ctx, &p.ID)
	return account.Factors{App: p.TotpAt != nil, Passkeys: int(n), Required: p.PasskeyRequiredAt != nil}, err
}

var errNoPasskey = fault.New(fault.Conflict, "passkey_missing", "Add a passkey first, or reload the page: an authenticator app is already required.")

// RequirePasskey makes sign-ins of a person require a passkey after the password, in the caller's transaction, and
// audits it. codes are the recovery codes, as people type them. It rejects a person without a passkey, or with an
// authenticator app.
func RequirePasskey(ctx context.Context, q *sql.Queries, person id.UUID, codes []string, address string) (p sql.Person,
	err error,
) {
	if p, err = q.LockPerson(ctx, person); err != nil {
		return p, err
	}
	has, err := FactorsOf(ctx, q, p)
	if err == nil && !has.CanRequire() {
		err = errNoPasskey
	}
	if err != nil {
		return p, err
	}
	if _, err := q.RequirePasskey(ctx, sql.RequirePasskeyParams{ID: person, Required: true}); err != nil {
		return p, err
	}
	if err := replaceRecoveryCodes(ctx, q, person, codes); err != nil {
		return p, err
	}
	return p, AuditPerson(ctx, q, person, address, "passkey.required", nil)
}

// StopRequiringPasskey undoes RequirePasskey. was is false if no passkey was required.
func StopRequiringPasskey(ctx context.Context, q *sql.Queries, person id.UUID, address string) (p sql.Person, was bool,
	err error,
) {
	if p, err = q.LockPerson(ctx, person); err != nil {
		return p, false, err
	}
	n, err := q.RequirePasskey(ctx, sql.RequirePasskeyParams{ID: person})
	if err != nil || n == 0 {
		return p, false, err
	}
	if p.TotpAt == nil {
		if err := q.DeleteRecoveryCodes(ctx, person); err != nil {
			return p, true, err
		}
	}
	return p, true, AuditPerson(ctx, q, person, address, "passkey.optional", nil)
}

// RenewRecoveryCodes replaces a person's recovery codes and audits it.
func RenewRecoveryCodes(ctx context.Context, d *db.DB, person id.UUID, codes []string, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		if err := replaceRecoveryCodes(ctx, q, person, codes); err != nil {
			return err
		}
		return AuditPerson(ctx, q, person, address, "recovery_codes.renewed", nil)
	})
}

func replaceRecoveryCodes(ctx context.Context, q *sql.Queries, owner id.UUID, codes []string) error {
	hashes := make([][]byte, len(codes))
	for i, code := range codes {
		hashes[i] = HashToken(code)
	}
	if err := q.DeleteRecoveryCodes(ctx, owner); err != nil {
		return err
	}
	return q.InsertRecoveryCodes(ctx, sql.InsertRecoveryCodesParams{OwnerID: owner, Hashes: hashes})
}

// UseRecoveryCode uses up a recovery code of a person or an operator, in the caller's transaction. It returns false if
// the owner has no such code.
func UseRecoveryCode(ctx context.Context, q *sql.Queries, owner id.UUID, code string) (bool, error) {
	n, err := q.UseRecoveryCode(ctx, sql.UseRecoveryCodeParams{OwnerID: owner, Hash: HashToken(code)})
	return n > 0, err
}

// UseCode uses up a person's authenticator code by its time step, in the caller's transaction. It returns false if a
// code of this step or a later one was used before.
func UseCode(ctx context.Context, q *sql.Queries, person id.UUID, step int64) (bool, error) {
	n, err := q.UsePersonCode(ctx, sql.UsePersonCodeParams{ID: person, Step: step})
	return n > 0, err
}

// UseOperatorCode is UseCode for an operator.
func UseOperatorCode(ctx context.Context, q *sql.Queries, operator id.UUID, step int64) (bool, error) {
	n, err := q.UseOperatorCode(ctx, sql.UseOperatorCodeParams{ID: operator, Step: step})
	return n > 0, err
}
