package main

import (
	"context"
	"os/user"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/reason"
)

type accountResetCommand struct {
	Email  string `required:"" placeholder:"ADDRESS" help:"The person's email address."`
	Reason string `required:"" help:"The reason, recorded in the audit log of the person's tenants."`
}

// Run turns off the second factor of somebody who has lost it. Who can run it can reach the database; that the person
// is who they say is theirs to find out.
func (c accountResetCommand) Run(ctx context.Context, a *app) error {
	email, err := operatorAddress(c.Email)
	if err != nil {
		return err
	}
	why := strings.TrimSpace(c.Reason)
	if why == "" || len(reason.Faults(why, 1)) > 0 {
		return fault.New(fault.Invalid, "text_length", "--reason says why, in 1 to 500 characters.")
	}
	by := db.Author{Kind: "command", ID: "unknown"}
	if u, err := user.Current(); err == nil {
		by.ID = u.Username
	}
	was := false
	err = a.withDatabase(ctx, func(d *db.DB) error {
		was, err = accounts.ResetSecondFactor(ctx, d, email, why, by)
		return err
	})
	switch {
	case db.IsMissing(err):
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no account with the address "+email+".")
	case err != nil:
		return err
	case !was:
		a.printf("%s has no second factor. Nothing was changed.\n", email)
		return nil
	}
	a.printf("The second factor of %s is off. The person got a mail, and signs in with the password alone.\n", email)
	return nil
}
