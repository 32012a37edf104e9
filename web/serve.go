package main

import (
	"context"
	"strings"

	"posthorn/db"
)

type (
	serveCommand  struct{}
	webCommand    struct{}
	workerCommand struct{}
)

// Run serves everything until it is told to stop.
func (serveCommand) Run(ctx context.Context, a *app) error {
	return a.serve(ctx, Parts{Web: true, Worker: true})
}

// Run serves the API and the dashboard until it is told to stop.
func (webCommand) Run(ctx context.Context, a *app) error { return a.serve(ctx, Parts{Web: true}) }

// Run delivers until it is told to stop.
func (workerCommand) Run(ctx context.Context, a *app) error { return a.serve(ctx, Parts{Worker: true}) }

// Help lists the variables that a server reads.
func (serveCommand) Help() string  { return variablesHelp() }
func (webCommand) Help() string    { return variablesHelp() }
func (workerCommand) Help() string { return variablesHelp() }

// serve runs a Program for as long as the context lasts and nothing fails.
func (a *app) serve(ctx context.Context, parts Parts) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	go keepMemory(ctx)
	p := &Program{Config: cfg, Parts: parts, Log: a.logger(&cfg)}
	if err := p.Run(ctx); err != nil {
		return err
	}
	if a.terminal || cfg.LogFormat == "text" {
		a.welcome(ctx, p)
	}
	select {
	case <-ctx.Done():
		p.Log.Info("stopping; a second signal stops at once")
	case err = <-p.Failed():
		p.Log.Error("stopping, since a part failed", "error", err)
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	p.Log.Info("posthorn has stopped")
	return err
}

// welcome tells a person what runs where and, before there is a tenant, what to type next.
func (a *app) welcome(ctx context.Context, p *Program) {
	var b strings.Builder
	say := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n") }
	if p.Parts.Web {
		say("", "  Posthorn serves on "+p.URL())
	} else {
		say("", "  Posthorn delivers")
	}
	if p.store.cluster != nil {
		say("  Its data lives in " + p.store.cluster.DataDir())
	} else {
		say("  Its data lives in the database of POSTHORN_DATABASE_URL")
	}
	if p.MetricsURL() != "" {
		say("  Metrics are on " + p.MetricsURL())
	}
	if p.Parts.Web && !p.hasTenants(ctx) {
		command := a.program + " tenant create --name Acme"
		if p.Config.DataDir != "" && p.Config.embedded() {
			command = "POSTHORN_DATA_DIR=" + p.Config.DataDir + " " + command
		}
		say("", "  There is no tenant yet. Type this in another terminal to create one and its API key:", "", "    "+command)
	}
	say("")
	a.printf("%s", b.String())
}

// hasTenants is true also where nobody knows, since it decides about advice alone.
func (p *Program) hasTenants(ctx context.Context) bool {
	found := true
	_ = p.pools[0].Console(ctx, func(q *db.Queries) (err error) {
		tenants, err := q.ListTenantsUp(ctx, db.ListTenantsUpParams{Most: 1})
		found = err != nil || len(tenants) > 0
		return err
	})
	return found
}
