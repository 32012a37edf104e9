package cli

import (
	"context"
	"encoding/json"
	"slices"

	"posthorn/client"
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

// importChunk is how many entries go in one request.
const importChunk = 200

// Run imports everything, and shows the result of each entry. An entry that the server rejects does not stop the
// others, and makes the exit code 1.
func (c importCommand) Run(ctx context.Context, e *Env) error {
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
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	done := []client.ImportResult{}
	refused := 0
	for part := range chunks(list) {
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

// chunks cuts an import into requests, the event types first: endpoints can name them.
func chunks(list client.ImportInput) func(func(client.ImportInput) bool) {
	return func(yield func(client.ImportInput) bool) {
		if n := len(list.EventTypes) + len(list.Endpoints); n > 0 && n <= importChunk {
			yield(list)
			return
		}
		for types := range slices.Chunk(list.EventTypes, importChunk) {
			if !yield(client.ImportInput{EventTypes: types}) {
				return
			}
		}
		for endpoints := range slices.Chunk(list.Endpoints, importChunk) {
			if !yield(client.ImportInput{Endpoints: endpoints}) {
				return
			}
		}
	}
}

func (c importCommand) print(e *Env, done []client.ImportResult) {
	rows := make([][]string, len(done))
	for i, one := range done {
		id, wrong := "", ""
		if one.ID != nil {
			id = *one.ID
		}
		if one.Problem != nil {
			wrong = one.Problem.Detail + " [" + one.Problem.Code + "]"
		}
		rows[i] = []string{string(one.Action), string(one.Kind), one.Name, id, oneLine(wrong, 200)}
	}
	e.table([]string{"DONE", "WHAT", "NAME", "ID", ""}, rows)
	if c.DryRun {
		e.notef("Nothing was done.\n")
	} else if slices.ContainsFunc(done, func(one client.ImportResult) bool { return one.Secret != nil }) {
		e.notef("Endpoints without a secret in the file got a new one: --json would have shown it, `posthorn endpoints secret rotate` makes another.\n")
	}
}
