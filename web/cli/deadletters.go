package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"posthorn/client"
)

type deadCommands struct {
	List      deadListCommand      `cmd:"" help:"List dead letters, newest first: deliveries that failed permanently and were neither replayed nor archived."`
	Replay    deadReplayCommand    `cmd:"" help:"Replay dead letters, or all of an event."`
	ReplayAll deadReplayAllCommand `cmd:"" help:"Replay all dead letters that the flags select, at their endpoints' own rates."`
}

type deadListCommand struct{ deliveryList }

// Run lists dead letters.
func (c deadListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	params := c.params()
	params.Status = new(client.ListDeliveriesParamsStatusDeadLetter)
	return c.print(ctx, e, sdk, params, "No dead letters.")
}

type deadReplayCommand struct {
	shared
	IDs    []string `arg:"" name:"id" help:"Ids of dead letters (dlv_...), or of events (evt_...) to replay all of their dead letters."`
	Reason string   `help:"The reason, recorded in the audit log."`
	Again  bool     `help:"Include those that were replayed before."`
}

// Run replays deliveries one by one, and continues after one that is rejected.
func (c deadReplayCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	sent, failures := 0, []failedReplay{}
	for _, named := range c.IDs {
		ids, err := c.targets(ctx, sdk, named)
		if err != nil {
			failures = append(failures, failedReplay{named, err})
		}
		for _, id := range ids {
			d, err := replayOne(ctx, sdk, id, c.Reason, c.Again)
			if err != nil {
				failures = append(failures, failedReplay{id, err})
				continue
			}
			sent++
			if err := c.show(e, d, func() { e.printf("%s is sent again as %s.\n", id, d.ID) }); err != nil {
				return err
			}
		}
	}
	return e.failedReplays(failures, sent)
}

// failedReplay is an id on the command line, or the delivery of an event, that was not replayed.
type failedReplay struct {
	id  string
	err error
}

// failedReplays is the error of the command: the only one that there is, or how many failed, after a line about each.
func (e *Env) failedReplays(failures []failedReplay, sent int) error {
	if len(failures) == 0 {
		return nil
	}
	_, code, explained := Explain(failures[0].err)
	if len(failures)+sent == 1 || !explained {
		return failures[0].err
	}
	for _, f := range failures {
		line, _, _ := Explain(f.err)
		e.notef("%s: %s\n", f.id, line)
	}
	return fail(code, "%d of %d were not sent again.", len(failures), len(failures)+sent)
}

// targets are the deliveries of an id on the command line: the delivery itself, or the dead letters of an event.
func (c deadReplayCommand) targets(ctx context.Context, sdk *client.Client, named string) ([]string, error) {
	if !strings.HasPrefix(named, "evt_") {
		return []string{named}, wantDelivery(named)
	}
	var ids []string
	for d, err := range sdk.EventDeliveries(ctx, named, client.ListEventDeliveriesParams{}) {
		if err != nil {
			return nil, err
		}
		if d.DeadLetter || c.Again && d.Status == client.DeliveryStatusFailed && optional(d.ReplayedBy) != "" {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fail(ExitNotFound, "The event has no dead letters. `posthorn events get %s` shows its deliveries; --again replays dead letters that were replayed before.", named)
	}
	return ids, nil
}

// replayOne replays a delivery. For one that was replayed before, it names the replay, and the flag that replays it
// again.
func replayOne(ctx context.Context, sdk *client.Client, id, reason string, again bool) (client.Delivery, error) {
	in := client.ReplayInput{Reason: nonEmpty(reason)}
	if again {
		in.Again = &again
	}
	d, err := sdk.ReplayDelivery(ctx, id, in)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == "delivery_replayed" {
		last := "replayed before"
		if len(refused.Fields) > 0 {
			last = strings.TrimSuffix(refused.Fields[0].Detail, ".")
		}
		return d, fail(ExitFailed, "%s was replayed before (%s). Nothing was sent. --again replays it once more.", id, lowerFirst(last))
	}
	return d, err
}

// lowerFirst writes a sentence as a part of another.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// wantDelivery says what was given if it is the id of something else.
func wantDelivery(named string) error {
	kind, _, found := strings.Cut(named, "_")
	names := map[string]string{"evt": "an event", "ep": "an endpoint", "job": "a bulk job", "ten": "a tenant", "att": "an attempt"}
	name := names[kind]
	if !found || name == "" {
		return nil
	}
	hint := ""
	if kind == "ep" {
		hint = fmt.Sprintf(" `posthorn dlq replay-all --endpoint %s` replays all dead letters of an endpoint.", named)
	}
	return fail(ExitUsage, "%s is the id of %s. Give the id of a delivery (dlv_...).%s", named, name, hint)
}

type deadReplayAllCommand struct {
	shared
	selection
	Since  string        `placeholder:"TIME" help:"Created at or after: a duration back from now, such as 24h or 7d, or a time."`
	Until  string        `placeholder:"TIME" help:"Created before: a duration or a time, as in --since."`
	Reason string        `help:"The reason, recorded with the job and in the audit log."`
	Pace   int           `help:"Maximum deliveries a second." placeholder:"N"`
	Sample bool          `help:"Send one first. \"posthorn jobs continue\" then sends the rest."`
	DryRun bool          `help:"Count the deliveries, and send none."`
	Wait   time.Duration `help:"How long to wait for the job; 0 doesn't wait." default:"0s"`
}

// Run starts a bulk job on the server, which continues without this command.
func (c deadReplayAllCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	body := client.ReplaysInput{
		Reason: nonEmpty(c.Reason),
		Filter: client.BulkFilter{
			Status:   new(string(client.ListDeliveriesParamsStatusDeadLetter)),
			Endpoint: nonEmpty(c.Endpoint),
			Type:     nonEmpty(c.Type),
			Channel:  nonEmpty(c.Channel),
		},
	}
	var err error
	if body.Filter.Since, err = moment("--since", c.Since, e.Now()); err != nil {
		return err
	}
	if body.Filter.Until, err = moment("--until", c.Until, e.Now()); err != nil {
		return err
	}
	if c.Pace != 0 {
		body.Pace = &c.Pace
	}
	if c.Sample {
		body.Sample = &c.Sample
	}
	if c.DryRun {
		body.DryRun = &c.DryRun
		return of(sdk.CreateReplaysBulkEstimate(ctx, body)).print(c.shared, e, func(estimate client.BulkEstimate) {
			e.printf("%s would be sent again.\n", count(estimate.Expected, estimate.ExpectedExact))
		})
	}
	job, err := sdk.CreateReplays(ctx, body)
	if err != nil {
		return err
	}
	return c.showJob(ctx, e, sdk, job, c.Wait)
}

// showJob shows a bulk job, at its end if the command waits for that.
func (s shared) showJob(ctx context.Context, e *Env, sdk *client.Client, job client.BulkJob, wait time.Duration) (err error) {
	if wait > 0 {
		if job, err = waitFor(ctx, sdk, job, wait); err != nil {
			return err
		}
	}
	return s.show(e, job, func() {
		e.pairs("Job", job.ID, "State", string(job.State), "Selected", count(job.Expected, job.ExpectedExact), "Sent again", fmt.Sprint(job.Done), "Failure",
			optional(job.Failure))
		if sample, err := job.Sample.Get(); err == nil {
			e.pairs("Sample", sample.ID, "Status", string(sample.Status))
		}
		if job.State == client.BulkStateSampled {
			e.printf("`posthorn jobs continue %s` sends the rest, `posthorn jobs cancel %s` sends no more.\n", job.ID, job.ID)
		}
	})
}

func count(n int, exact bool) string {
	if exact {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d or more", n)
}

// waitFor reads a job until it has ended, or until its sample has.
func waitFor(ctx context.Context, sdk *client.Client, job client.BulkJob, limit time.Duration) (client.BulkJob, error) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		switch job.State {
		case client.BulkStateDone, client.BulkStateCanceled, client.BulkStateFailed:
			return job, nil
		case client.BulkStateSampled:
			if sample, err := job.Sample.Get(); err != nil || sample.SettledAt.IsSpecified() && !sample.SettledAt.IsNull() {
				return job, nil //nolint:nilerr // a sample that is older than the retention has ended
			}
		}
		if !sleep(waiting, 200*time.Millisecond) {
			return job, fail(ExitUnavailable, "%s goes on, and is not done after %s.", job.ID, limit)
		}
		var err error
		if job, err = sdk.GetBulkJob(ctx, job.ID); err != nil {
			return job, err
		}
	}
}
