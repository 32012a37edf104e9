package cli

import (
	"context"
	"fmt"
	"time"

	"posthorn/client"
)

type historyCommands struct {
	List    historyListCommand    `cmd:"" help:"List days of history in storage, newest first."`
	Restore historyRestoreCommand `cmd:"" help:"Bring days of history back from storage."`
}

type historyListCommand struct{ shared }

// Run lists days in storage.
func (c historyListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	list, err := sdk.ListHistory(ctx)
	return listing[client.HistoryDay]{
		empty: "No days are in storage.",
		head:  []string{"DAY", "STATE", "EVENTS", "DELIVERIES", "ATTEMPTS", "EXPUNGING"},
		row: func(d client.HistoryDay) []string {
			return []string{d.Day, string(d.State), fmt.Sprint(d.Events), fmt.Sprint(d.Deliveries), fmt.Sprint(d.Attempts), fmt.Sprint(d.Expunging)}
		},
	}.print(c.shared, e, list.Data, err)
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
func (c historyRestoreCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	if c.All == (len(c.Days) > 0) {
		return fail(ExitUsage, "Name the days, such as 2031-03-30, or give --all.")
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
	restored := map[string]bool{}
	for _, day := range days {
		d, err := sdk.RestoreHistory(ctx, day)
		if err != nil {
			return err
		}
		e.notef("%s: %d events, %d deliveries, %d attempts\n", day, d.Events, d.Deliveries, d.Attempts)
		restored[day] = true
	}
	return c.wait(ctx, e, sdk, restored)
}

// wait returns when the days are back.
func (c historyRestoreCommand) wait(ctx context.Context, e *Env, sdk *client.Client, restored map[string]bool) error {
	until := e.Now().Add(c.Wait)
	for c.Wait > 0 {
		list, err := sdk.ListHistory(ctx)
		if err != nil {
			return err
		}
		left, delayed := 0, ""
		for _, d := range list.Data {
			if day := d.Day; restored[day] && d.State != client.Back {
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
			return fail(ExitUnavailable, "%s not back yet. `posthorn history list` shows them.", plural(left, "day is", "days are"))
		}
		if !sleep(ctx, restoreLook) {
			return ctx.Err()
		}
	}
	return nil
}
