package cli

import (
	"context"
	"time"

	"posthorn/client"
)

type jobsCommands struct {
	Get      jobGetCommand      `cmd:"" help:"Show a bulk job and its progress."`
	Continue jobContinueCommand `cmd:"" help:"Send the rest of a job that sent one delivery first."`
	Cancel   jobCancelCommand   `cmd:"" help:"Cancel a bulk job. What it has already done stays done."`
}

// oneJob names a bulk job.
type oneJob struct {
	shared
	ID string `arg:"" name:"job" help:"The job's id (job_...)."`
}

type jobGetCommand struct {
	oneJob
	Wait time.Duration `help:"How long to wait for the job; 0 doesn't wait." default:"0s"`
}

// Run shows a job.
func (c jobGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	job, err := sdk.GetBulkJob(ctx, c.ID)
	if err != nil {
		return err
	}
	return c.showJob(ctx, e, sdk, job, c.Wait)
}

type jobContinueCommand struct {
	oneJob
	Reason string        `help:"The reason, recorded in the audit log."`
	Wait   time.Duration `help:"How long to wait for the job; 0 doesn't wait." default:"0s"`
}

// Run sends the rest of a job.
func (c jobContinueCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	job, err := sdk.ContinueBulkJob(ctx, c.ID, client.ReasonInput{Reason: nonEmpty(c.Reason)})
	if err != nil {
		return err
	}
	return c.showJob(ctx, e, sdk, job, c.Wait)
}

type jobCancelCommand struct {
	oneJob
	Reason string `help:"The reason, recorded in the audit log."`
}

// Run cancels a job.
func (c jobCancelCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	job, err := sdk.CancelBulkJob(ctx, c.ID, client.ReasonInput{Reason: nonEmpty(c.Reason)})
	if err != nil {
		return err
	}
	return c.showJob(ctx, e, sdk, job, 0)
}
