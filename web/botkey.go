package main

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

type botKeyRotateCommand struct {
	StartsIn time.Duration `default:"24h" help:"How long the new key is published before it signs; at most 168h. 0 replaces all keys now."`
	JSON     bool          `name:"json" help:"Print JSON: id, key_id and starts_at."`
}

// Run publishes a new key of the platform's own signature.
func (c botKeyRotateCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var key show.SigningKey
	err = a.withStoreAndDatabase(ctx, func(s *store, d *db.DB) error {
		ring, err := openRing(ctx, &cfg, s, d)
		if err != nil {
			return err
		}
		return d.Console(ctx, func(q *db.Tx) (err error) {
			by := endpoints.Editor{Keys: ring, By: commandAuthor()}
			key, err = by.RotateSigningKeys(ctx, q, endpoints.Platform, int(c.StartsIn.Seconds()))
			return err
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			ID       string    `json:"id"`
			KeyID    string    `json:"key_id"`
			StartsAt time.Time `json:"starts_at"`
		}{id.SigningKey.Format(key.ID), key.Thumbprint(), key.StartsAt})
	}
	a.printf("%s signs from %s.\n", key.Thumbprint(), key.StartsAt.UTC().Format(time.RFC3339))
	return nil
}
