package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/client"
)

type secretListCommand struct{ one }

// Run lists secrets.
func (c secretListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	page, err := sdk.ListSecrets(ctx, c.ID)
	return listing[client.Secret]{
		empty: "No secrets.",
		head:  []string{"SECRET", "TYPE", "ENDS IN", "NOW", "CHECK", "CREATED", "EXPIRES"},
		row: func(s client.Secret) []string {
			signing := ""
			if s.Signing {
				signing = "signs"
			}
			return []string{s.ID, string(s.Type), "…" + s.Hint, signing, checked(s), local(s.CreatedAt), optional(s.ExpiresAt)}
		},
	}.print(c.shared, e, page.Data, err)
}

type secretRotateCommand struct {
	one
	Overlap string  `help:"How long the old secret also signs, such as 24h; at most 168h." default:"24h"`
	Secret  *string `placeholder:"@FILE" help:"An existing secret: @FILE or - for stdin. Default: a new one."`
}

// Run rotates the secret.
func (c secretRotateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	overlap, err := span("--overlap", c.Overlap)
	if err != nil {
		return err
	}
	body := client.RotateInput{OverlapSeconds: new(int(overlap.Seconds()))}
	if c.Secret != nil {
		secret, err := input(ctx, e, *c.Secret, nothing)
		if err != nil {
			return err
		}
		body.Secret = new(string(secret))
	}
	return of(sdk.RotateSecret(ctx, c.ID, body)).print(c.shared, e, func(made client.SecretCreated) {
		e.pairs("Secret", made.Secret, "Public key", optional(made.PublicKey))
		e.notef("Shown this once. The old one goes on signing for %s.\n", c.Overlap)
	})
}

type secretSwitchCommand struct{ one }

// Run signs with the newest secret.
func (c secretSwitchCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.SwitchSecret(ctx, c.ID)).print(c.shared, e, func(s client.Secret) { e.printf("%s signs now.\n", s.ID) })
}

// checked is what a check of a secret showed; empty: there was none.
func checked(s client.Secret) string {
	check, err := s.Check.Get()
	if err != nil {
		return ""
	}
	if status, err := check.StatusCode.Get(); err == nil {
		return fmt.Sprintf("%s (%d)", check.State, status)
	}
	return string(check.State)
}

// oneSecret are the flags of a command about one secret of an endpoint.
type oneSecret struct {
	one
	Secret string `arg:"" name:"secret" help:"The secret's id (sec_...), as in the list."`
}

type (
	secretCheckCommand struct{ oneSecret }
	secretEndCommand   struct {
		oneSecret
		Unchecked bool `help:"End it although the receiver hasn't accepted the remaining secret."`
	}
	secretExtendCommand struct {
		oneSecret
		Overlap string `help:"How long it stays active from now, such as 24h; at most 168h." default:"24h"`
	}
)

// checkTimeout is how long the result of a check is waited for: the longest timeout of an endpoint, and some more.
const checkTimeout = 40 * time.Second

// Run checks a secret, and waits for the result.
func (c secretCheckCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	asked, err := sdk.CheckSecret(ctx, c.ID, c.Secret)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for checked(asked) == string(client.SecretCheckStatePending) {
		if !sleep(ctx, time.Second) {
			return fail(ExitFailed, "No result yet. `posthorn endpoints secret list %s` shows it.", c.ID)
		}
		page, err := sdk.ListSecrets(ctx, c.ID)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(page.Data, func(s client.Secret) bool { return s.ID == asked.ID })
		if i < 0 {
			return fail(ExitFailed, "The secret has ended.")
		}
		asked = page.Data[i]
	}
	return c.show(e, asked, func() {
		check, _ := asked.Check.Get()
		e.printf("%s\n", oneLine(strings.TrimSpace(checked(asked)+" "+check.Detail), 300))
	})
}

// Run ends a secret.
func (c secretEndCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var in client.EndSecretInput
	if c.Unchecked {
		in.Unchecked = new(true)
	}
	return of(sdk.EndSecret(ctx, c.ID, c.Secret, in)).print(c.shared, e, func(client.SecretPage) {
		e.printf("%s no longer signs.\n", c.Secret)
	})
}

// Run sets the end of a secret.
func (c secretExtendCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	overlap, err := span("--overlap", c.Overlap)
	if err != nil {
		return err
	}
	in := client.ExtendSecretInput{OverlapSeconds: int(overlap.Seconds())}
	return of(sdk.ExtendSecret(ctx, c.ID, c.Secret, in)).print(c.shared, e, func(s client.Secret) {
		e.printf("%s stays active until %s.\n", s.ID, optional(s.ExpiresAt))
	})
}
