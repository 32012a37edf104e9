package accounts

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// ResetSecondFactor turns off the second factor of a person who has lost the authenticator and the recovery codes. Every tenant of
// the person has it in its audit log, and the person gets a mail. Without a second factor nothing changes, and it is false.
func ResetSecondFactor(ctx context.Context, d *db.DB, email, reason string, by db.Author) (was bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		found, err := q.FindPerson(ctx, email)
		if err != nil {
			return err
		}
		p, err := q.LockPerson(ctx, found.ID)
		if err != nil || p.TotpAt == nil {
			return err
		}
		was = true
		if err := q.SetPersonTOTP(ctx, sql.SetPersonTOTPParams{ID: p.ID}); err != nil {
			return err
		}
		if err := q.DeleteRecoveryCodes(ctx, p.ID); err != nil {
			return err
		}
		if err := auditReset(ctx, q, p.ID, reason, by); err != nil {
			return err
		}
		_, err = QueueMail(ctx, q, Mail{
			Key: string(mail.SignInAlert) + ":" + id.Person.Format(db.NewID()), To: p.Email, Kind: mail.SignInAlert,
			Data: mail.SignInAlertData{
				Name: p.Name, What: "The people who run this Posthorn turned off the second factor of your account.", At: time.Now().UTC().Truncate(time.Second),
				Advice: "sign in, choose a new password, and set up a second factor now.",
			},
		})
		return err
	})
	return was && err == nil, err
}

// auditReset writes to the log of each of a person's tenants; of a person without one, to the platform's.
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
		err := db.Audit(ctx, q, by, db.Audited{Tenant: &t.TenantID, Action: "totp.reset", Kind: "member", Object: id.Member.Format(t.MemberID), Reason: reason})
		if err != nil {
			return err
		}
	}
	return nil
}
