package cli

import (
	"context"
	"fmt"
	"time"

	"posthorn/client"
)

// recovery holds the flags of the commands that send missed events to an endpoint. A bulk job on the server does it.
type recovery struct {
	one
	Since  string        `required:"" placeholder:"TIME" help:"Created at or after: a duration back from now, such as 24h or 7d, or a time."`
	Until  string        `placeholder:"TIME" help:"Created before: a duration or a time, as in --since."`
	Type   string        `placeholder:"TYPE" help:"Only this event type."`
	Reason string        `help:"The reason, recorded with the job and in the audit log."`
	Pace   int           `help:"Maximum deliveries a second." placeholder:"N"`
	Sample bool          `help:"Send one first. \"posthorn jobs continue\" then sends the rest."`
	DryRun bool          `help:"Only count them."`
	Wait   time.Duration `help:"How long to wait for the job; 0 doesn't wait." default:"0s"`
}

func (c recovery) body(now time.Time) (client.RecoverInput, error) {
	in := client.RecoverInput{Type: nonEmpty(c.Type), Reason: nonEmpty(c.Reason)}
	since, err := moment("--since", c.Since, now)
	if err != nil {
		return in, err
	}
	if since == nil {
		return in, fail(ExitUsage, "--since is empty. Give a time span such as 24h, or a time.")
	}
	in.Since = *since
	if in.Until, err = moment("--until", c.Until, now); err != nil {
		return in, err
	}
	if c.Pace != 0 {
		in.Pace = &c.Pace
	}
	if c.Sample {
		in.Sample = &c.Sample
	}
	if c.DryRun {
		in.DryRun = &c.DryRun
	}
	return in, nil
}

// The two methods of the SDK for one operation: one reads an estimate, the other a job.
type (
	estimateCall func(context.Context, client.EndpointID, client.RecoverInput) (client.BulkEstimate, error)
	startCall    func(context.Context, client.EndpointID, client.RecoverInput) (client.BulkJob, error)
)

func (c recovery) run(ctx context.Context, e *Env, sdk *client.Client, noun string, estimate estimateCall, start startCall) error {
	in, err := c.body(e.Now())
	if err != nil {
		return err
	}
	if c.DryRun {
		return of(estimate(ctx, c.ID, in)).print(c.shared, e, func(found client.BulkEstimate) {
			e.printf("%s %s would be sent.\n", count(found.Expected, found.ExpectedExact), noun)
		})
	}
	job, err := start(ctx, c.ID, in)
	if err != nil {
		return err
	}
	return c.showJob(ctx, e, sdk, job, c.Wait)
}

type recoverCommand struct{ recovery }

// Run sends an endpoint again what failed.
func (c recoverCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.run(ctx, e, sdk, "failed deliveries", sdk.RecoverEndpointBulkEstimate, sdk.RecoverEndpoint)
}

type replayMissingCommand struct{ recovery }

// Run sends an endpoint the events that it never received.
func (c replayMissingCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.run(ctx, e, sdk, "missing events", sdk.ReplayMissingBulkEstimate, sdk.ReplayMissing)
}

type failuresCommand struct{ one }

// Run groups an endpoint's failures by the response.
func (c failuresCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.ListEndpointFailures(ctx, c.ID)).print(c.shared, e, func(found client.EndpointFailures) {
		if len(found.Data) == 0 {
			e.printf("No failures.\n")
			return
		}
		rows := make([][]string, len(found.Data))
		for i, g := range found.Data {
			response := optional(g.Status)
			if response == "" {
				response = optional(g.Failure)
			}
			rows[i] = []string{fmt.Sprintf("%d of %d", g.Count, found.Total), response, oneLine(g.Text, 80), local(g.NewestAt)}
		}
		e.table([]string{"FAILURES", "RESPONSE", "TEXT", "NEWEST"}, rows)
	})
}
