package main

import (
	"context"
	"net/url"

	"posthorn/db"
	"posthorn/domain/fault"
)

type openCommand struct{}

var errNotLocal = fault.New(fault.Forbidden, "not_local", "This server is reached from elsewhere, or sends its mails: sign in with a password there. `posthorn operator create` and invitations let people in.")

// Run prints a link into the dashboard for who runs Posthorn on their own machine.
func (openCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !cfg.showsMails() {
		return errNotLocal
	}
	return a.withDatabase(ctx, func(d *db.DB) error {
		token, err := d.MakeLocalLink(ctx)
		if err != nil {
			return err
		}
		a.printf("%s\n", cfg.publicURL()+localPath+url.QueryEscape(token))
		return nil
	})
}
