package main

import (
	"context"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/show"
)

type (
	serveCommand struct {
		Demo bool `help:"Add a demo tenant with receivers and constant traffic. Only on your own machine."`
	}
	webCommand    struct{}
	workerCommand struct{}
)

// Run serves everything until it is stopped.
func (c serveCommand) Run(ctx context.Context, a *app) error {
	if c.Demo {
		return a.serveDemo(ctx)
	}
	return a.serve(ctx, Parts{Web: true, Worker: true})
}

// Run serves the API and the dashboard until it is stopped.
func (webCommand) Run(ctx context.Context, a *app) error { return a.serve(ctx, Parts{Web: true}) }

// Run delivers until it is stopped.
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
	return a.keep(ctx, &Program{Config: cfg, Parts: parts, Log: a.logger(&cfg)}, nil)
}

// keep runs a Program until the end. It calls begin, if not nil, once the Program serves.
func (a *app) keep(ctx context.Context, p *Program, begin func() error) error {
	go keepMemory(ctx)
	err := p.Run(ctx)
	if err != nil {
		return err
	}
	if begin != nil {
		if err := begin(); err != nil {
			_ = p.Close()
			return err
		}
	}
	if a.terminal || p.Config.LogFormat == "text" {
		a.welcome(ctx, p)
	}
	select {
	case <-ctx.Done():
		p.Log.Info("stopping; a second signal stops immediately")
	case err = <-p.Failed():
		p.Log.Error("stopping, since a part failed", "error", err)
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	p.Log.Info("posthorn has stopped")
	return err
}

// welcome tells a person which addresses serve what and, before there is a tenant, what to type next.
func (a *app) welcome(ctx context.Context, p *Program) {
	var b strings.Builder
	say := func(lines ...string) { b.WriteString(strings.Join(lines, "\n") + "\n") }
	if p.Parts.Web {
		say("", "  Posthorn is running on "+p.URL())
	} else {
		say("", "  Posthorn is delivering")
	}
	if p.store.cluster != nil {
		say("  Data directory: " + p.store.cluster.DataDir())
	} else {
		say("  Database: POSTHORN_DATABASE_URL")
	}
	if p.MetricsURL() != "" {
		say("  Metrics: " + p.MetricsURL())
	}
	link := p.localLink(ctx)
	if link == "" && p.Parts.Web && !p.hasTenants(ctx) {
		command := a.program + " tenant create --name Acme"
		if p.Config.DataDir != "" && p.Config.embedded() {
			command = "POSTHORN_DATA_DIR=" + p.Config.DataDir + " " + command
		}
		say("", "  No tenants yet. Create one and its API key in another terminal:", "", "    "+command)
	}
	if link != "" {
		say("", "  Open the dashboard, signed in:", "", "    "+link, "", "  The link works once. `"+a.program+" open` prints another.")
	}
	say("")
	a.printf("%s", b.String())
}

// localLink opens the dashboard without a password if only this machine can reach it; empty otherwise.
func (p *Program) localLink(ctx context.Context) string {
	if !p.Parts.Web || !p.Config.showsMails() {
		return ""
	}
	token, err := accounts.MakeLocalLink(ctx, p.pools[0])
	if err != nil {
		p.Log.Warn("no link into the dashboard could be made", "error", err)
		return ""
	}
	return p.URL() + localPath + url.QueryEscape(token)
}

// localPath is where links of accounts.MakeLocalLink lead; their token follows.
const localPath = "/sign-in/link?token="

// hasTenants is also true if the answer is unknown, since it only selects advice.
func (p *Program) hasTenants(ctx context.Context) bool {
	found := true
	_ = p.pools[0].Console(ctx, func(q *db.Tx) (err error) {
		tenants, _, err := accounts.ListTenants(ctx, q, show.Range{Limit: 1})
		found = err != nil || len(tenants.Rows) > 0
		return err
	})
	return found
}
