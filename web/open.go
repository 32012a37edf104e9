package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
)

type openCommand struct{}

var errNotLocal = fault.New(fault.Forbidden, "not_local", "This server is reached from elsewhere, or sends its mails: sign in with a password there. `posthorn operator create` and invitations let people in.")

// acceptsLinks asks the server whether it opens such links. The server has its own settings: one that sends mail opens
// none. A server that does not run yet is not asked.
func acceptsLinks(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+localPath, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil //nolint:nilerr // it does not run
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err == nil && res.StatusCode == http.StatusNotFound && bytes.Contains(page, []byte("no_such_path")) {
		return errNotLocal
	}
	return nil
}

// Run prints a link into the dashboard for who runs Posthorn on their own machine.
func (openCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !cfg.showsMails() {
		return errNotLocal
	}
	if err := acceptsLinks(ctx, cfg.publicURL()); err != nil {
		return err
	}
	return a.readDatabase(ctx, func(d *db.DB) error {
		token, err := accounts.MakeLocalLink(ctx, d)
		if err != nil {
			return err
		}
		a.printf("%s\n", cfg.publicURL()+localPath+url.QueryEscape(token))
		return nil
	})
}
