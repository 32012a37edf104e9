package main

import (
	"context"
	"os/user"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/words"
)

type accountResetCommand struct {
	Email  string `required:"" placeholder:"ADDRESS" help:"The person's email address."`
	Reason string `required:"" help:"The reason, recorded in the audit log of the person's tenants."`
}

// Run turns off the second factor of somebody who has lost it. Who can run it can reach the database; that the person
// is who they say is theirs to find out.
func (c accountResetCommand) Run(ctx context.Context, a *app) error {
	email, why, by, err := aboutPerson(c.Email, c.Reason)
	if err != nil {
		return err
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

// aboutPerson reads what a command about a person needs: the address, the reason, and who runs it.
func aboutPerson(address, given string) (email, why string, by db.Author, err error) {
	if email, err = operatorAddress(address); err != nil {
		return email, why, by, err
	}
	if why = strings.TrimSpace(given); why == "" || len(words.ReasonFaults(why, 1)) > 0 {
		return email, why, by, fault.New(fault.Invalid, "text_length", "--reason says why, in 1 to 500 characters.")
	}
	by = db.Author{Kind: "command", ID: "unknown"}
	if u, err := user.Current(); err == nil {
		by.ID = u.Username
	}
	return email, why, by, nil
}

type accountUnlinkCommand struct {
	Email  string `required:"" placeholder:"ADDRESS" help:"The person's email address."`
	Reason string `required:"" help:"The reason, recorded in the audit log of the person's tenants."`
}

// Run unlinks a person whose account at an identity provider was deleted and created again.
func (c accountUnlinkCommand) Run(ctx context.Context, a *app) error {
	email, why, by, err := aboutPerson(c.Email, c.Reason)
	if err != nil {
		return err
	}
	tenants := 0
	err = a.withDatabase(ctx, func(d *db.DB) error {
		tenants, err = accounts.UnlinkSSO(ctx, d, email, why, by)
		return err
	})
	switch {
	case db.IsMissing(err):
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no account with the address "+email+".")
	case err != nil:
		return err
	case tenants == 0:
		a.printf("%s is not linked to an account of an identity provider. Nothing was changed.\n", email)
		return nil
	}
	a.printf("%s is unlinked in %d tenants. The next sign-in by single sign-on links the account of the provider.\n", email, tenants)
	return nil
}

type operatorUnlinkCommand struct {
	Email  string `required:"" placeholder:"ADDRESS" help:"The operator's email address."`
	Reason string `required:"" help:"The reason, recorded in the platform's audit log."`
}

// Run unlinks an operator whose account at the identity provider was deleted and created again.
func (c operatorUnlinkCommand) Run(ctx context.Context, a *app) error {
	email, why, by, err := aboutPerson(c.Email, c.Reason)
	if err != nil {
		return err
	}
	was := false
	err = a.withDatabase(ctx, func(d *db.DB) error {
		was, err = accounts.UnlinkOperatorSSO(ctx, d, email, why, by)
		return err
	})
	switch {
	case db.IsMissing(err):
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no operator with the address "+email+".")
	case err != nil:
		return err
	case !was:
		a.printf("%s is not linked to an account of the identity provider. Nothing was changed.\n", email)
		return nil
	}
	a.printf("%s is unlinked. The next sign-in by single sign-on links the account of the provider.\n", email)
	return nil
}
