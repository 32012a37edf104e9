package cli

import (
	"context"
	"fmt"
	"time"

	"posthorn/client"
)

type deliveryTailCommand struct {
	shared
	selection
	Status string        `placeholder:"STATUS" help:"Only deliveries that change to this status: ${enum}." enum:",pending,retrying,held,delivered,failed,canceled" default:""`
	Every  time.Duration `help:"How often to poll." default:"1s"`
}

// How far back tail looks for deliveries that can still change, and how many of them at most.
const (
	tailWindow = 15 * time.Minute
	tailRows   = 1000
)

// Run prints a line whenever a delivery appears or changes, until the context ends. It shows older deliveries when
// they change.
func (c deliveryTailCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	seen := map[string]string{}
	for first := true; ; first = false {
		now, err := c.look(ctx, sdk, e.Now().Add(-tailWindow))
		if ctx.Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		if err != nil {
			return err
		}
		current := make(map[string]string, len(now))
		for i := len(now) - 1; i >= 0; i-- { // oldest first
			d := now[i]
			state := fmt.Sprint(d.Status, d.AttemptCount)
			current[d.ID] = state
			if first || seen[d.ID] == state || c.Status != "" && c.Status != string(d.Status) {
				continue
			}
			if err := c.line(e, d); err != nil {
				return err
			}
		}
		seen = current
		if !sleep(ctx, c.Every) {
			return nil
		}
	}
}

func (c deliveryTailCommand) look(ctx context.Context, sdk *client.Client, since time.Time) ([]client.Delivery, error) {
	params := c.params()
	params.Since, params.Limit = &since, new(250)
	return collect(sdk.Deliveries(ctx, params), tailRows)
}

func (c deliveryTailCommand) line(e *Env, d client.Delivery) error {
	return c.show(e, d, func() {
		status := statusOf(d)
		e.printf("%s  %s  %s  %-24s  %s  %s\n", e.clock(), e.paint(colourOf(status), fmt.Sprintf("%-9s", status)), d.ID, d.EventType, endpointOf(d), lastOf(d))
	})
}
