package cli

import (
	"context"

	"posthorn/client"
)

type signingKeyCommands struct {
	List   signingKeyListCommand   `cmd:"" help:"List the published keys."`
	Rotate signingKeyRotateCommand `cmd:"" help:"Publish a new key, which signs later."`
}

type signingKeyListCommand struct{ shared }

// Run lists keys.
func (c signingKeyListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	keys, err := sdk.ListSigningKeys(ctx)
	if err := (listing[client.SigningKey]{
		empty: "No keys. The first is created with the first endpoint that has a public_signature.",
		head:  []string{"KEY", "KEYID", "STATE", "SIGNS FROM", "EXPIRES"},
		row: func(k client.SigningKey) []string {
			return []string{k.ID, k.KeyID, string(k.State), local(k.StartsAt), optional(k.ExpiresAt)}
		},
	}).print(c.shared, e, keys.Data, err); err != nil {
		return err
	}
	e.notef("Receivers read the keys at %s\n", keys.JwksURL)
	return nil
}

type signingKeyRotateCommand struct {
	shared
	StartsIn string `help:"How long the new key is published before it signs, such as 24h; at most 168h. 0 replaces all keys now." default:"24h"`
}

// Run rotates the key.
func (c signingKeyRotateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	wait, err := span("--starts-in", c.StartsIn)
	if err != nil {
		return err
	}
	body := client.RotateSigningKeysInput{StartsInSeconds: new(int(wait.Seconds()))}
	return of(sdk.RotateSigningKeys(ctx, body)).print(c.shared, e, func(k client.SigningKey) {
		e.printf("%s signs from %s.\n", k.ID, local(k.StartsAt))
	})
}
