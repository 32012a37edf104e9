package cli

import (
	"context"
	"strconv"
	"time"

	"posthorn/client"
)

type historyCommands struct {
	List    historyListCommand    `cmd:"" help:"List days of history in storage, newest first."`
	Restore historyRestoreCommand `cmd:"" help:"Bring days of history back from storage."`
}

type historyListCommand struct{ shared }

// Run lists days in storage.
func (c historyListCommand) Run(ctx context.Context, e *Env) error {
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	list, err := sdk.ListHistory(ctx)
	if err != nil {
		return err
	}
	return c.show(e, list.Data, func() {
		if len(list.Data) == 0 {
			e.printf("No days are in storage.\n")
			return
		}
		rows := make([][]string, len(list.Data))
		for i, d := range list.Data {
			rows[i] = []string{
				d.Day, string(d.State), strconv.FormatInt(d.Events, 10), strconv.FormatInt(d.Deliveries, 10),
				strconv.FormatInt(d.Attempts, 10),
			}
		}
		e.table([]string{"DAY", "STATE", "EVENTS", "DELIVERIES", "ATTEMPTS"}, rows)
	})
}

type historyRestoreCommand struct {
	shared
	Days []string      `arg:"" optional:"" name:"day" help:"UTC days, as 2031-03-30."`
	All  bool          `help:"All days in storage."`
	Wait time.Duration `default:"10m" help:"How long to wait until the days are back; 0 returns immediately."`
}

// restoreLook is how often a command that waits looks.
const restoreLook = time.Second

// Run brings days back and waits for them.
func (c historyRestoreCommand) Run(ctx context.Context, e *Env) error {
	if c.All == (len(c.Days) > 0) {
		return fail(ExitUsage, "Name the days, such as 2031-03-30, or give --all.")
	}
	sdk, err := c.connect(e)
	if err != nil {
		return err
	}
	days := c.Days
	if c.All {
		list, err := sdk.ListHistory(ctx)
		if err != nil {
			return err
		}
		for _, d := range list.Data {
			if d.State != client.Back {
				days = append(days, d.Day)
			}
		}
	}
	asked := map[string]bool{}
	for _, day := range days {
		d, err := sdk.RestoreHistory(ctx, day)
		if err != nil {
			return err
		}
		e.notef("%s: %d events, %d deliveries, %d attempts\n", day, d.Events, d.Deliveries, d.Attempts)
		asked[day] = true
	}
	return c.wait(ctx, e, sdk, asked)
}

// wait returns when the days are back.
func (c historyRestoreCommand) wait(ctx context.Context, e *Env, sdk *client.Client, asked map[string]bool) error {
	until := e.Now().Add(c.Wait)
	for c.Wait > 0 {
		list, err := sdk.ListHistory(ctx)
		if err != nil {
			return err
		}
		left, delayed := 0, ""
		for _, d := range list.Data {
			if day := d.Day; asked[day] && d.State != client.Back {
				left++
				if d.Delayed {
					delayed = day
				}
			}
		}
		switch {
		case left == 0:
			return c.show(e, list.Data, func() { e.printf("The days are back.\n") })
		case delayed != "":
			return fail(ExitUnavailable, "%s could not be brought back. It is tried again by itself; the operators can see why.", delayed)
		case !e.Now().Before(until):
			return fail(ExitUnavailable, "%d days are still on their way. `posthorn history list` shows them.", left)
		}
		select {
		case <-time.After(restoreLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
