package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"posthorn/client"
)

type settingsCommands struct {
	Get    settingsGetCommand    `cmd:"" help:"Show the tenant's settings."`
	Update settingsUpdateCommand `cmd:"" help:"Change the tenant's settings."`
}

type settingsGetCommand struct{ shared }

// Run shows the tenant's settings.
func (c settingsGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.GetOwnTenant(ctx)).print(c.shared, e, e.tenant)
}

type settingsUpdateCommand struct {
	shared
	RetryPolicy string `placeholder:"NAME" help:"Default retry schedule of new endpoints: ${enum}. none uses the platform's." enum:",none,standard,exponential,five,short,quick,daily,seven,once" default:""`
	RetryDelays string `help:"Delays of a custom default schedule: seconds between attempts, such as 60,300,1800." placeholder:"SECONDS"`
	RetryJitter string `help:"Jitter of these delays, from 0 to 1." placeholder:"SHARE"`
	Retention   int    `name:"retention-days" help:"How many days events and deliveries are kept. Older ones are deleted." placeholder:"DAYS"`
}

// Run changes the tenant's settings.
func (c settingsUpdateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	fields := map[string]any{}
	if c.RetryPolicy == "none" {
		fields["retry_policy"] = nil
	} else if err := (settings{
		RetryPolicy: c.RetryPolicy,
		RetryDelays: c.RetryDelays,
		RetryJitter: c.RetryJitter,
	}).retries(fields); err != nil {
		return err
	}
	if c.Retention != 0 {
		fields["retention_days"] = c.Retention
	}
	if len(fields) == 0 {
		return fail(ExitUsage, "Nothing to change: give --retry-policy, --retry-delays, --retry-jitter or --retention-days.")
	}
	body, err := typed[client.TenantPatch](fields)
	if err != nil {
		return err
	}
	return of(sdk.UpdateOwnTenant(ctx, body)).print(c.shared, e, e.tenant)
}

func (e *Env) tenant(t client.Tenant) {
	delays := make([]string, len(t.RetryPolicy.Delays))
	for i, d := range t.RetryPolicy.Delays {
		delays[i] = strconv.Itoa(d)
	}
	schedule := string(t.RetryPolicy.Name)
	if len(delays) > 0 {
		schedule += fmt.Sprintf(": %s s, jitter %v", strings.Join(delays, ", "), t.RetryPolicy.Jitter)
	}
	e.pairs("Tenant", t.ID, "Name", t.Name, "State", string(t.State), "Retention", strconv.Itoa(t.RetentionDays)+" days", "Default retries", schedule,
		"Strict types", strconv.FormatBool(t.StrictTypes))
}
