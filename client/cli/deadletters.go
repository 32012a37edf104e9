package cli

import (
	"context"
	"fmt"
	"time"

	"posthorn/client"
)

type deadCommands struct {
	List      deadListCommand      `cmd:"" help:"List dead letters, newest first."`
	Replay    deadReplayCommand    `cmd:"" help:"Send some of them again."`
	ReplayAll deadReplayAllCommand `cmd:"" help:"Send all of them again that the flags select, at their endpoints' own rates."`
}

type deadListCommand struct {
	shared
	window
	selection
}

// Run lists dead letters.
func (c deadListCommand) Run(ctx context.Context, e *Env) error {
	return listDeliveries(ctx, e, c.shared, c.window, c.selection, string(client.ListDeliveriesParamsStatusFailed), false, "No dead letters.")
}

type deadReplayCommand struct {
	shared
	IDs    []string `arg:"" name:"delivery" help:"Ids of dead letters (dlv_...)."`
	Reason string   `help:"Why; kept in the audit log."`
}

// Run replays deliveries one by one, and goes on after one that is refused.
func (c deadReplayCommand) Run(ctx context.Context, e *Env) error {
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	var first error
	for _, id := range c.IDs {
		d, err := sdk.ReplayDelivery(ctx, id, client.ReplayInput{Reason: given(c.Reason)})
		if err != nil {
			line, _, _ := Explain(err)
			e.notef("%s: %s\n", id, line)
			if first == nil {
				first = err
			}
			continue
		}
		if err := c.show(e, d, func() { e.printf("%s is sent again as %s.\n", id, d.ID) }); err != nil {
			return err
		}
	}
	return first
}

type deadReplayAllCommand struct {
	shared
	selection
	Since  string        `placeholder:"TIME" help:"Created at or after: a time span back from now, such as 24h or 7d, or a time."`
	Until  string        `placeholder:"TIME" help:"Created before: a span or a time, as in --since."`
	Reason string        `help:"Why; kept with the job and in the audit log."`
	Pace   int           `help:"Deliveries a second, at most." placeholder:"N"`
	DryRun bool          `help:"Say how many it would be, and send none."`
	Wait   time.Duration `help:"How long to wait for the job; 0 not at all." default:"0s"`
}

// Run starts a bulk job on the server, which goes on whatever becomes of this command.
func (c deadReplayAllCommand) Run(ctx context.Context, e *Env) error {
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	body := client.ReplaysInput{Reason: given(c.Reason), Filter: client.BulkFilter{
		Status: new(string(client.DeliveryStatusFailed)), Endpoint: given(c.Endpoint), Type: given(c.Type), Channel: given(c.Channel),
	}}
	if body.Filter.Since, err = moment("--since", c.Since, e.Now()); err != nil {
		return err
	}
	if body.Filter.Until, err = moment("--until", c.Until, e.Now()); err != nil {
		return err
	}
	if c.Pace != 0 {
		body.Pace = &c.Pace
	}
	if c.DryRun {
		body.DryRun = &c.DryRun
		estimate, err := sdk.CreateReplaysBulkEstimate(ctx, body)
		if err != nil {
			return err
		}
		return c.show(e, estimate, func() { e.printf("%s would be sent again.\n", count(estimate.Expected, estimate.ExpectedExact)) })
	}
	job, err := sdk.CreateReplays(ctx, body)
	if err != nil {
		return err
	}
	if c.Wait > 0 {
		if job, err = waitFor(ctx, sdk, job, c.Wait); err != nil {
			return err
		}
	}
	return c.show(e, job, func() {
		e.pairs("Job", job.ID, "State", string(job.State), "Selected", count(job.Expected, job.ExpectedExact), "Sent again", fmt.Sprint(job.Done), "Failure", optional(job.Failure))
	})
}

func count(n int, exact bool) string {
	if exact {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d or more", n)
}

// waitFor reads a job until it is over.
func waitFor(ctx context.Context, sdk *client.Client, job client.BulkJob, most time.Duration) (client.BulkJob, error) {
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		switch job.State {
		case client.BulkStateDone, client.BulkStateCanceled, client.BulkStateFailed:
			return job, nil
		}
		if !sleep(waiting, 200*time.Millisecond) {
			return job, fail(ExitUnavailable, "%s goes on, and is not done after %s.", job.ID, most)
		}
		var err error
		if job, err = sdk.GetBulkJob(ctx, job.ID); err != nil {
			return job, err
		}
	}
}
