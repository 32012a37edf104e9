package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"posthorn/client"
	"posthorn/web/cli/apply"
	"posthorn/web/cli/desired"
)

type applyCommand struct {
	JSON         bool   `help:"Print JSON for a program: an object with the changes."`
	File         string `short:"f" required:"" placeholder:"FILE" help:"The file, as YAML; - reads stdin."`
	DryRun       bool   `help:"Print the plan, and change nothing."`
	Check        bool   `help:"Print the plan, change nothing, and exit with code 6 where the server differs from the file."`
	Prune        bool   `help:"Delete what a list of the file leaves out: endpoints, event types, members, keys."`
	PruneTenants bool   `help:"Delete the tenants that the file leaves out, with all their events."`
	KeepSecrets  bool   `help:"A reference to a variable that is not set keeps what the server has."`
	SecretsFile  string `placeholder:"FILE" help:"Append the secrets that the server makes, and the texts of new keys, to this file, readable by you alone."`
	Yes          bool   `short:"y" help:"Don't ask for confirmation."`
}

// report is what apply prints for programs.
type report struct {
	Changes []desired.Change `json:"changes"`
	Applied bool             `json:"applied"`
}

// Run plans, shows the plan, and does it.
func (c applyCommand) Run(ctx context.Context, e *Env) error {
	text, err := c.read(ctx, e)
	if err != nil {
		return err
	}
	name, dir := c.File, filepath.Dir(c.File)
	if c.File == "-" {
		name, dir = "stdin", "."
	}
	file, err := apply.Decode(ctx, apply.Source{
		Name:     name,
		Text:     text,
		Keep:     c.KeepSecrets,
		Variable: e.lookup,
		ReadFile: func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			return readFile(ctx, name)
		},
	})
	if err != nil {
		return invalid(err)
	}
	server, err := e.server(ctx)
	if err != nil {
		return err
	}
	plan, err := server.Plan(ctx, file, apply.Options{Prune: c.Prune, PruneTenants: c.PruneTenants})
	if err != nil {
		return invalid(err)
	}
	if !c.JSON {
		e.plan(plan.Changes)
	}
	for _, note := range plan.Notes {
		e.notef("%s\n", note)
	}
	if c.DryRun || c.Check || len(plan.Changes) == 0 {
		return c.end(e, plan, false)
	}
	if keys := plan.NewKeys(); len(keys) > 0 && c.SecretsFile == "" {
		return fail(ExitUsage, "The plan creates API keys, whose texts are shown once: %s. Say with --secrets-file where they go. Nothing was changed.", strings.Join(keys, "; "))
	}
	if err := c.confirm(ctx, e); err != nil {
		return err
	}
	if err := c.run(ctx, e, plan); err != nil {
		return err
	}
	return c.end(e, plan, true)
}

// confirm asks a person who could still say no.
func (c applyCommand) confirm(ctx context.Context, e *Env) error {
	if c.Yes || !e.InTerminal || c.File == "-" {
		return nil
	}
	e.notef("Do this? [y/N] ")
	reply, err := readLine(ctx, bufio.NewReader(e.Stdin))
	if err != nil {
		return err
	}
	if !strings.EqualFold(reply, "y") && !strings.EqualFold(reply, "yes") {
		return fail(ExitFailed, "Nothing was changed.")
	}
	return nil
}

func (c applyCommand) read(ctx context.Context, e *Env) ([]byte, error) {
	file := "@" + c.File
	if c.File == "-" {
		file = "-"
	}
	return input(ctx, e, file, withoutFile)
}

// run does the changes. What was done before a failure stays.
func (c applyCommand) run(ctx context.Context, e *Env, plan *apply.Plan) error {
	done, made := 0, 0
	err := plan.Run(ctx, func(desired.Change) { done++ }, func(m apply.Made) error {
		made++
		return c.store(m)
	})
	if made > 0 && c.SecretsFile == "" {
		e.notef("%s without a secret in the file got one. Rotate it to see it, or use --secrets-file next time.\n", plural(made, "endpoint"))
	}
	if err != nil && done > 0 {
		e.notef("%d of %d changes were done. Run the same command again after fixing what follows: it does the rest.\n", done, len(plan.Changes))
	}
	return invalid(err)
}

// store appends a secret as a line of JSON to a file that only its owner can read.
func (c applyCommand) store(m apply.Made) error {
	if c.SecretsFile == "" {
		return nil
	}
	f, err := os.OpenFile(c.SecretsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(ExitFailed, "%s", fileText(err))
	}
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(m), f.Close()); err != nil { //nolint:gosec // G117: the file is for secrets
		return fail(ExitFailed, "%s", fileText(err))
	}
	return nil
}

// end prints the report, and says by the exit code whether the server differs.
func (c applyCommand) end(e *Env, plan *apply.Plan, applied bool) error {
	if c.JSON {
		changes := plan.Changes
		if changes == nil {
			changes = []desired.Change{}
		}
		if err := e.json(report{Changes: changes, Applied: applied}); err != nil {
			return err
		}
	}
	if c.Check && len(plan.Changes) > 0 {
		return fail(ExitDiffers, "The server differs from the file.")
	}
	if applied && !c.JSON {
		e.printf("Done.\n")
	}
	return nil
}

// invalid gives errors about a file the exit code of bad input.
func invalid(err error) error {
	var invalidFile *apply.InvalidError
	if errors.As(err, &invalidFile) {
		return fail(ExitUsage, "%s", invalidFile.Error())
	}
	if own := new(client.Error); err != nil && !errors.As(err, &own) && unreachable(err) == "" &&
		!errors.Is(err, context.Canceled) {
		return fail(ExitFailed, "%s", err.Error())
	}
	return err
}

// lookup is a variable of the environment, and whether it is set and not empty.
func (e *Env) lookup(name string) (string, bool) {
	v := e.variable(name)
	return v, v != ""
}

// server is the server of the account, for a whole file.
func (e *Env) server(ctx context.Context) (*apply.Server, error) {
	account, err := e.account()
	if err != nil {
		return nil, err
	}
	sdk, err := client.New(account.URL, account.Key, client.WithUserAgent("posthorn-cli"), client.WithRetries(3, 5*time.Second))
	if err != nil {
		return nil, fail(ExitUsage, "%s", strings.TrimPrefix(err.Error(), "posthorn: "))
	}
	return apply.Connect(ctx, sdk, account.Key, e.Now())
}

var signs = map[desired.Action]string{desired.Create: "+", desired.Update: "~", desired.Delete: "-"}

// plan prints the changes for a person.
func (e *Env) plan(changes []desired.Change) {
	counts := map[desired.Action]int{}
	for _, c := range changes {
		counts[c.Action]++
		name := c.Name
		if c.Tenant != "" {
			name = c.Tenant + "/" + name
		}
		e.printf("%s %s %s\n", signs[c.Action], strings.ReplaceAll(string(c.Kind), "_", " "), oneLine(name, 200))
		for _, d := range c.Fields {
			if d.Secret {
				e.printf("    %s: changes (not shown)\n", d.Field)
				continue
			}
			e.printf("    %s: %s -> %s\n", d.Field, shownValue(d.From), shownValue(d.To))
		}
	}
	if len(changes) == 0 {
		e.printf("No changes: the server is as the file says.\n")
		return
	}
	e.printf("%d to create, %d to change, %d to delete.\n", counts[desired.Create], counts[desired.Update], counts[desired.Delete])
}

func shownValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return oneLine(string(text), 120)
}

type exportCommand struct {
	Out    string   `short:"o" placeholder:"FILE" help:"Write to this file instead of stdout."`
	Tenant []string `placeholder:"TENANT" help:"With a platform's key: only this tenant, by id or external id; repeat the flag for more."`
}

// Run prints the file. Secrets are references to variables, which are listed on stderr.
func (c exportCommand) Run(ctx context.Context, e *Env) error {
	server, err := e.server(ctx)
	if err != nil {
		return err
	}
	out, err := server.Export(ctx, c.Tenant)
	if err != nil {
		return err
	}
	if c.Out == "" {
		err = e.file(out.Text)
	} else {
		err = os.WriteFile(c.Out, out.Text, 0o600)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return fail(ExitFailed, "%s", fileText(err))
	}
	if len(out.Variables) > 0 {
		e.notef("%s. Set each variable before you apply the file elsewhere, or keep what a server has with --keep-secrets:\n  %s\n",
			plural(len(out.Variables), "secret is a reference to a variable", "secrets are references to variables"), strings.Join(out.Variables, "\n  "))
	}
	return err
}
