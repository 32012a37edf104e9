package accounts

import (
	"context"
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
// returns 0 and changes nothing, else 1.
func ResetSecondFactor(ctx context.Context, d *db.DB, email, reason string, by db.Author) (n int, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		found, err := q.FindPerson(ctx, email)
		if err != nil {
			return err
		}
		p, err := Self{Kind: account.Person, ID: found.ID}.lock(ctx, q)
		if err != nil || !p.TOTP && !p.PasskeyRequired {
			return err
		}
		n = 1
		if _, err := q.RequirePasskey(ctx, false, p.ID); err != nil {
			return err
		}
		p.PasskeyRequired = false
		if err := removeTOTP(ctx, q, p); err != nil {
			return err
		}
		if err := auditReset(ctx, q, p.ID, reason, by); err != nil {
			return err
		}
		_, err = QueueMail(ctx, q, Mail{
			Key:  string(mail.SignInAlert) + ":" + id.Person.Format(db.NewID()),
			To:   p.Email,
			Kind: mail.SignInAlert,
			Data: mail.SignInAlertData{
				Name:   p.Name,
				What:   "The operator of this Posthorn server turned off the second factor of your account.",
				At:     time.Now().UTC().Truncate(time.Second),
				Advice: "sign in, choose a new password, and set up a second factor now.",
			},
		})
		return err
	})
	return n, err
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
			Tenant: &t.TenantID,
			Action: "totp.reset",
			Kind:   "member",
			Object: id.Member.Format(t.MemberID),
			Reason: reason,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNoSetup says that no setup of a second factor is in progress, or that the second factor is on already.
var ErrNoSetup = fault.New(fault.Conflict, "totp_not_started", "There is no second factor to confirm. Start again on the account page.")

// StartTOTP stores the sealed seed of an authenticator app. Sign-ins require the app only after ConfirmTOTP.
func StartTOTP(ctx context.Context, d *db.DB, user account.User, sealed []byte) error {
	return d.Account(ctx, func(q *sql.Queries) error { return setTOTP(ctx, q, user, sealed) })
}

// setTOTP stores a seed that was shown and is to be confirmed, or none.
func setTOTP(ctx context.Context, q *sql.Queries, user account.User, sealed []byte) error {
	if user.Kind == account.Operator {
		return q.SetOperatorTOTP(ctx, sealed, user.ID)
	}
	return q.SetPersonTOTP(ctx, sealed, user.ID)
}

// ConfirmTOTP turns on an authenticator app that StartTOTP stored, in the caller's transaction, and audits it. step is
// that of the first code, which is used up. codes are the recovery codes, as they are typed. Without a stored seed it
// returns ErrNoSetup.
func ConfirmTOTP(ctx context.Context, q *sql.Queries, self Self, step int64, codes []string) (err error) {
	var n int64
	if self.Kind == account.Operator {
		n, err = q.ConfirmOperatorTOTP(ctx, step, self.ID)
	} else {
		n, err = q.ConfirmPersonTOTP(ctx, step, self.ID)
	}
	if err == nil && n == 0 {
		err = ErrNoSetup
	}
	if err != nil {
		return err
	}
	if err := replaceRecoveryCodes(ctx, q, self.ID, codes); err != nil {
		return err
	}
	return self.Audit(ctx, q, "totp.enabled", nil)
}

// StopTOTP turns off an authenticator app, in the caller's transaction, and audits it. was is false if there was none.
func StopTOTP(ctx context.Context, q *sql.Queries, self Self) (a account.Account, was bool, err error) {
	if a, err = self.lock(ctx, q); err != nil || a.Seed == nil {
		return a, false, err
	}
	if err := removeTOTP(ctx, q, a); err != nil {
		return a, true, err
	}
	return a, true, self.Audit(ctx, q, "totp.disabled", nil)
}

// removeTOTP keeps the recovery codes if there is another second factor.
func removeTOTP(ctx context.Context, q *sql.Queries, a account.Account) error {
	if err := setTOTP(ctx, q, a.User, nil); err != nil || a.PasskeyRequired {
		return err
	}
	return q.DeleteRecoveryCodes(ctx, a.ID)
}

// FactorsOf lists what a user can sign in with besides the password, in the caller's transaction.
func FactorsOf(ctx context.Context, q *sql.Queries, a account.Account) (account.Factors, error) {
	n, err := q.CountPasskeys(ctx, &a.ID)
	return account.Factors{App: a.TOTP, Passkeys: int(n), Required: a.PasskeyRequired}, err
}

// ReadSecurity reads what protects an account besides its password, in the caller's transaction.
func ReadSecurity(ctx context.Context, q *sql.Queries, user account.User) (s account.Security, err error) {
	a, err := Get(ctx, q, user.Kind, user.ID)
	if err != nil {
		return s, err
	}
	if s.Passkeys, err = passkeysOf(ctx, q, user.ID); err != nil {
		return s, err
	}
	s.Factors = account.Factors{App: a.TOTP, Passkeys: len(s.Passkeys), Required: a.PasskeyRequired}
	left, err := q.CountRecoveryCodes(ctx, user.ID)
	s.RecoveryCodes = int(left)
	return s, err
}

var errNoPasskey = fault.New(fault.Conflict, "passkey_missing", "Add a passkey first, or reload the page: an authenticator app is already required.")

// RequirePasskey makes sign-ins of a person require a passkey after the password, in the caller's transaction, and
// audits it. codes are the recovery codes, as people type them. It rejects a person without a passkey, or with an
// authenticator app.
func RequirePasskey(ctx context.Context, q *sql.Queries, self Self, codes []string) (a account.Account, err error) {
	if a, err = self.lock(ctx, q); err != nil {
		return a, err
	}
	has, err := FactorsOf(ctx, q, a)
	if err == nil && !has.CanRequire() {
		err = errNoPasskey
	}
	if err != nil {
		return a, err
	}
	if _, err := q.RequirePasskey(ctx, true, a.ID); err != nil {
		return a, err
	}
	if err := replaceRecoveryCodes(ctx, q, a.ID, codes); err != nil {
		return a, err
	}
	return a, self.Audit(ctx, q, "passkey.required", nil)
}

// StopRequiringPasskey undoes RequirePasskey. was is false if no passkey was required.
func StopRequiringPasskey(ctx context.Context, q *sql.Queries, self Self) (a account.Account, was bool, err error) {
	if a, err = self.lock(ctx, q); err != nil {
		return a, false, err
	}
	n, err := q.RequirePasskey(ctx, false, a.ID)
	if err != nil || n == 0 {
		return a, false, err
	}
	if !a.TOTP {
		if err := q.DeleteRecoveryCodes(ctx, a.ID); err != nil {
			return a, true, err
		}
	}
	return a, true, self.Audit(ctx, q, "passkey.optional", nil)
}

// RenewRecoveryCodes replaces the recovery codes of an account and audits it.
func RenewRecoveryCodes(ctx context.Context, d *db.DB, self Self, codes []string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		if err := replaceRecoveryCodes(ctx, q, self.ID, codes); err != nil {
			return err
		}
		return self.Audit(ctx, q, "recovery_codes.renewed", nil)
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
	return q.InsertRecoveryCodes(ctx, owner, hashes)
}

// UseRecoveryCode uses up a recovery code, in the caller's transaction, and audits it. It returns false if the account
// has no such code.
func UseRecoveryCode(ctx context.Context, q *sql.Queries, self Self, code string) (bool, error) {
	n, err := q.UseRecoveryCode(ctx, self.ID, HashToken(code))
	if err != nil || n == 0 {
		return false, err
	}
	return true, self.Audit(ctx, q, "recovery_code.used", nil)
}

// UseCode uses up an authenticator code by its time step, in the caller's transaction. It returns false if a code of
// this step or a later one was used before.
func UseCode(ctx context.Context, q *sql.Queries, self Self, step int64) (used bool, err error) {
	var n int64
	if self.Kind == account.Operator {
		n, err = q.UseOperatorCode(ctx, step, self.ID)
	} else {
		n, err = q.UsePersonCode(ctx, step, self.ID)
	}
	return n > 0, err
}
