package main

import (
	"context"
	"os/user"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/words"
)

// userCommand is a command about a person or an operator, with a reason for the audit log.
type userCommand struct {
	Email  string `required:"" placeholder:"ADDRESS" help:"The email address."`
	Reason string `required:"" help:"The reason, recorded in the audit log of the person's tenants, or of the platform."`
}

type (
	accountResetCommand   struct{ userCommand }
	accountUnlinkCommand  struct{ userCommand }
	operatorUnlinkCommand struct{ userCommand }
)

// change does something to a user's account, and returns how often: 0 says that there was nothing to do.
type change func(ctx context.Context, d *db.DB, email, reason string, by db.Author) (int, error)

func unlink(kind account.Kind) change {
	return func(ctx context.Context, d *db.DB, email, reason string, by db.Author) (int, error) {
		return accounts.UnlinkSSO(ctx, d, kind, email, reason, by)
	}
}

// run does it for a user, who has to exist. who is what such users are called, and nothing is the sentence for one
// without what the change is about.
func (c userCommand) run(ctx context.Context, a *app, who string, do change, nothing string) (n int, err error) {
	email, err := operatorAddress(c.Email)
	if err != nil {
		return 0, err
	}
	why := strings.TrimSpace(c.Reason)
	if why == "" || len(words.ReasonFaults(why, 1)) > 0 {
		return 0, fault.New(fault.Invalid, "text_length", "--reason says why, in 1 to 500 characters.")
	}
	err = a.withDatabase(ctx, func(d *db.DB) error {
		n, err = do(ctx, d, email, why, author())
		return err
	})
	if db.IsMissing(err) {
		err = fault.New(fault.NotFound, fault.ErrNotFound.Code, "There is no "+who+" with the address "+email+".")
	}
	if err == nil && n == 0 {
		a.printf("%s %s. Nothing was changed.\n", email, nothing)
	}
	return n, err
}

// author is who runs a command, for the audit log: the account on this machine.
func author() db.Author {
	by := db.Author{Kind: "command", ID: "unknown"}
	if u, err := user.Current(); err == nil {
		by.ID = u.Username
	}
	return by
}

// Run turns off the second factor of a person who lost it. Only somebody with access to the database can run it; they
// have to check the person's identity.
func (c accountResetCommand) Run(ctx context.Context, a *app) error {
	n, err := c.run(ctx, a, "account", accounts.ResetSecondFactor, "has no second factor")
	if n > 0 {
		a.printf("The second factor of %s is off. The person got a mail, and signs in with the password alone.\n", c.Email)
	}
	return err
}

// Run unlinks a person from an account at an identity provider that was deleted and created again.
func (c accountUnlinkCommand) Run(ctx context.Context, a *app) error {
	n, err := c.run(ctx, a, "account", unlink(account.Person), "is not linked to an account of an identity provider")
	if n > 0 {
		a.printf("%s is unlinked in %d tenants. The next sign-in by single sign-on links the account of the provider.\n", c.Email, n)
	}
	return err
}

// Run unlinks an operator from an account at the identity provider that was deleted and created again.
func (c operatorUnlinkCommand) Run(ctx context.Context, a *app) error {
	n, err := c.run(ctx, a, "operator", unlink(account.Operator), "is not linked to an account of the identity provider")
	if n > 0 {
		a.printf("%s is unlinked. The next sign-in by single sign-on links the account of the provider.\n", c.Email)
	}
	return err
}
