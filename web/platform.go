package main

import (
	"context"
	"text/tabwriter"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/web/cli"
)

type platformTenantCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run makes the platform's own tenant, or finds it.
func (c platformTenantCommand) Run(ctx context.Context, a *app) error {
	var tenant id.UUID
	var key string
	err := a.withDatabase(ctx, func(d *db.DB) (err error) {
		tenant, key, err = accounts.EnsurePlatformTenant(ctx, d, db.Author{Kind: "command"})
		return err
	})
	if err != nil {
		return err
	}
	text := id.Tenant.Format(tenant)
	if c.JSON {
		out := map[string]string{"tenant_id": text}
		if key != "" {
			out["api_key"] = key
		}
		return a.printJSON(out)
	}
	a.printf("The platform's tenant is %s.\n", text)
	if key != "" {
		a.printf("Its API key, shown this once: %s\nCreate endpoints with it that subscribe to posthorn.platform.*, endpoint.*, secret.rotated or delivery.failed.\n", key)
	}
	return nil
}

type platformAlertsCommand struct {
	All  bool `help:"List those that ended, too."`
	JSON bool `name:"json" help:"Print JSON."`
}

// platformAlert is an alert as the command prints it.
type platformAlert struct {
	ID         string     `json:"id"`
	Kind       string     `json:"kind"`
	Severity   string     `json:"severity"`
	Status     string     `json:"status"`
	Title      string     `json:"title"`
	Message    string     `json:"message"`
	OpenedAt   time.Time  `json:"opened_at"`
	ResolvedAt *time.Time `json:"resolved_at"`
	Sent       bool       `json:"sent"`
}

// platformAlertsRead is how many alerts the command reads at most.
const platformAlertsRead = 250

// Run lists the platform's alerts.
func (c platformAlertsCommand) Run(ctx context.Context, a *app) error {
	var all []incidents.Kept
	err := a.readDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Tx) (err error) {
			all, err = accounts.ListPlatformAlerts(ctx, q, platformAlertsRead)
			return err
		})
	})
	if err != nil {
		return err
	}
	list := []platformAlert{}
	for _, k := range all {
		p := platformAlert{
			ID:       id.Alert.Format(k.ID),
			Kind:     string(k.Alert.Kind),
			Severity: string(k.Alert.Kind.Severity()),
			Status:   string(k.Status()),
			Title:    k.Alert.Title,
			Message:  k.Alert.Message,
			OpenedAt: k.OpenedAt,
			Sent:     k.Sent,
		}
		if !k.EndedAt.IsZero() {
			p.ResolvedAt = &k.EndedAt
		}
		if p.ResolvedAt == nil || c.All {
			list = append(list, p)
		}
	}
	if c.JSON {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		a.printf("No open alerts.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	cli.Fprintf(table, "STATUS\tSEVERITY\tOPENED\tKIND\tALERT\n")
	for _, p := range list {
		cli.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Status, p.Severity, p.OpenedAt.Local().Format("2006-01-02 15:04:05 MST"), p.Kind, p.Title)
	}
	return table.Flush()
}
