package db

import (
	"context"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// ResetSecondFactor turns off the second factor of a person who has lost the authenticator and the recovery codes. Every tenant of
// the person has it in its audit log, and the person gets a mail. Without a second factor nothing changes, and it is false.
func (d *DB) ResetSecondFactor(ctx context.Context, email, reason string, by Author) (was bool, err error) {
	err = d.Console(ctx, func(q *Queries) error {
		found, err := q.FindPerson(ctx, email)
		if err != nil {
			return err
		}
		p, err := q.LockPerson(ctx, found.ID)
		if err != nil || p.TotpAt == nil {
			return err
		}
		was = true
		if err := q.SetPersonTOTP(ctx, SetPersonTOTPParams{ID: p.ID}); err != nil {
			return err
		}
		if err := q.DeleteRecoveryCodes(ctx, p.ID); err != nil {
			return err
		}
		if err := q.auditReset(ctx, p.ID, reason, by); err != nil {
			return err
		}
		_, err = q.QueueMail(ctx, Mail{
			Key: string(mail.SignInAlert) + ":" + id.Person.Format(NewID()), To: p.Email, Kind: mail.SignInAlert,
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
func (q *Queries) auditReset(ctx context.Context, person id.UUID, reason string, by Author) error {
	tenants, err := q.TenantsOf(ctx, person)
	if err != nil {
		return err
	}
	if len(tenants) == 0 {
		return q.Audit(ctx, by, Audited{Action: "totp.reset", Kind: "person", Object: id.Person.Format(person), Reason: reason})
	}
	for i := range tenants {
		t := &tenants[i]
		err := q.Audit(ctx, by, Audited{Tenant: &t.TenantID, Action: "totp.reset", Kind: "member", Object: id.Member.Format(t.MemberID), Reason: reason})
		if err != nil {
			return err
		}
	}
	return nil
}
