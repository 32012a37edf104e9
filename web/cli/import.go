package cli

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"posthorn/client"
	"posthorn/web/cli/importer"
)

type importCommands struct {
	File    importCommand        `cmd:"" default:"withargs" help:"Import a file of event types and endpoints."`
	Svix    importSvixCommand    `cmd:"" help:"Copy applications, endpoints with their secrets, and event types from a Svix server."`
	Outpost importOutpostCommand `cmd:"" help:"Copy tenants, webhook destinations with their secrets, and topics from an Outpost server."`
	Convoy  importConvoyCommand  `cmd:"" help:"Copy endpoints with their secrets, subscriptions, and event types of a project from a Convoy server."`
}

type importCommand struct {
	shared
	File   string `arg:"" help:"The file to import, as JSON; - reads stdin."`
	DryRun bool   `help:"Print what would be done, and do nothing."`
}

// Run imports everything, and shows the result of each entry. An entry that the server rejects does not stop the
// others, and makes the exit code 1.
func (c importCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	file := "@" + c.File
	if c.File == "-" {
		file = "-"
	}
	text, err := input(ctx, e, file, nothing)
	if err != nil {
		return err
	}
	var list client.ImportInput
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return fail(ExitUsage, "The file is not a JSON object: %v", err)
	}
	if list, err = typed[client.ImportInput](raw); err != nil {
		return err
	}
	done := []client.ImportResult{}
	refused := 0
	for part := range importer.Chunks(list) {
		part.DryRun = &c.DryRun
		did, err := sdk.ImportAll(ctx, part)
		if err != nil {
			return err
		}
		done = append(done, did.Results...)
		refused += did.Refused
	}
	err = c.show(e, done, func() { c.print(e, done) })
	if err == nil && refused > 0 {
		return fail(ExitFailed, "%d of %d were rejected.", refused, len(done))
	}
	return err
}

func (c importCommand) print(e *Env, done []client.ImportResult) {
	rows := make([][]string, len(done))
	for i, one := range done {
		id, problem := "", ""
		if one.ID != nil {
			id = *one.ID
		}
		if one.Problem != nil {
			problem = one.Problem.Detail + " [" + one.Problem.Code + "]"
		}
		rows[i] = []string{string(one.Action), string(one.Kind), one.Name, id, oneLine(problem, 200)}
	}
	e.table([]string{"DONE", "WHAT", "NAME", "ID", ""}, rows)
	if c.DryRun {
		e.notef("Nothing was done.\n")
	} else if slices.ContainsFunc(done, func(one client.ImportResult) bool { return one.Secret != nil }) {
		e.notef("Endpoints without a secret in the file got a new one: --json would have shown it, `posthorn endpoints secret rotate` makes another.\n")
	}
}

// moveFlags are the flags of every command that copies what another sender's server holds.
type moveFlags struct {
	JSON        bool      `help:"Print JSON for a program."`
	Verified    bool      `help:"The endpoints are in use: they are active immediately, without a verification."`
	CutOver     time.Time `placeholder:"TIME" help:"Before this time endpoints are created paused and drop what is emitted. After it, each tenant's endpoints are disabled there and resumed here. Needs --verified."`
	Back        bool      `help:"Undo the cut-over: pause here, and enable there, what the cut-over moved."`
	AcceptNotes bool      `help:"What could not be copied is no failure, and stops no cut-over."`
	Secrets     string    `placeholder:"FILE" help:"A JSON object of the secrets that the other server does not show, by the endpoint's id there."`
	DryRun      bool      `help:"Say what would be made of each endpoint, and do nothing."`
}

// ProvideClient makes a client without a tenant: it acts in each that is copied.
func (f moveFlags) ProvideClient(e *Env) (*client.Client, error) {
	return shared{JSON: f.JSON}.ProvideClient(e)
}

// run copies the tenants that only names, or all. A problem with one makes the exit code 1.
func (f moveFlags) run(ctx context.Context, e *Env, sdk *client.Client, from importer.Sender, only []string) error {
	if !f.CutOver.IsZero() && !f.Verified {
		return fail(ExitUsage, "--cut-over needs --verified: an endpoint that has yet to be verified can't take over at a given time.")
	}
	secrets, err := readSecrets(ctx, f.Secrets)
	if err != nil {
		return err
	}
	done, err := importer.Run(ctx, from, sdk, importer.Options{
		Only:     only,
		Verified: f.Verified,
		CutOver:  f.CutOver,
		Back:     f.Back,
		Accept:   f.AcceptNotes,
		Secrets:  secrets,
		DryRun:   f.DryRun,
		Now:      e.Now(),
	})
	if err != nil {
		return err
	}
	return f.report(e, done)
}

// readSecrets reads the file of --secrets.
func readSecrets(ctx context.Context, file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readFile(ctx, file)
	if err != nil {
		return nil, fail(ExitUsage, "The file of --secrets can't be read: %v", err)
	}
	var out map[string]string
	if json.Unmarshal(text, &out) != nil {
		return nil, fail(ExitUsage, `The file of --secrets is not a JSON object of texts, such as {"ep_1": "whsec_..."}.`)
	}
	return out, nil
}

type importSvixCommand struct {
	moveFlags
	URL        string   `required:"" placeholder:"URL" help:"The Svix server, such as https://api.eu.svix.com."`
	Token      string   `required:"" env:"SVIX_TOKEN" placeholder:"TOKEN" help:"Its token (or SVIX_TOKEN)."`
	App        []string `placeholder:"UID" help:"Only these applications."`
	WhiteLabel bool     `help:"The server sends webhook-id, webhook-timestamp and webhook-signature in place of svix-*."`
}

// Run copies applications as tenants, by their uid.
func (c importSvixCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.run(ctx, e, sdk, importer.Svix(c.URL, c.Token, c.WhiteLabel), c.App)
}

type importConvoyCommand struct {
	moveFlags
	URL     string   `required:"" placeholder:"URL" help:"The Convoy server, such as https://us.getconvoy.cloud."`
	Token   string   `required:"" env:"CONVOY_API_KEY" placeholder:"KEY" help:"An API key of the project (or CONVOY_API_KEY)."`
	Project string   `required:"" placeholder:"ID" help:"The project."`
	Only    []string `placeholder:"ID" help:"Only these owners of endpoints."`
}

// Run copies the project's endpoints. Those with an owner_id become endpoints of a tenant of that name, the others of
// a tenant with the project's id.
func (c importConvoyCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.run(ctx, e, sdk, importer.Convoy(c.URL, c.Token, c.Project, e.Now()), c.Only)
}

type importOutpostCommand struct {
	moveFlags
	URL    string   `required:"" placeholder:"URL" help:"The base of its API, such as http://outpost:3333/api/v1."`
	Token  string   `required:"" env:"OUTPOST_API_KEY" placeholder:"KEY" help:"Its admin API key (or OUTPOST_API_KEY)."`
	Only   []string `name:"only" placeholder:"ID" help:"Only these tenants."`
	Config string   `placeholder:"FILE" help:"Its environment variables, NAME=value a line. Left out, they are read from its API, which self-hosted servers don't have: then the defaults count."`
}

// Run copies tenants and their webhook destinations.
func (c importOutpostCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var config []byte
	var err error
	if c.Config != "" {
		if config, err = readFile(ctx, c.Config); err != nil {
			return fail(ExitUsage, "The file of --config can't be read: %v", err)
		}
	}
	from, err := importer.Outpost(ctx, c.URL, c.Token, config, c.Only)
	if err != nil {
		return err
	}
	return c.run(ctx, e, sdk, from, c.Only)
}
