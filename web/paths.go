package main

import (
	"text/tabwriter"
	"time"

	"posthorn/handlers"
	"posthorn/handlers/auth"
	"posthorn/handlers/mailbox"
	"posthorn/web/cli"
)

type routesCommand struct {
	JSON bool `name:"json" help:"Print JSON: method, path and access of each."`
}

// Run lists every route, as this configuration serves them.
func (c routesCommand) Run(a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	type row struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Access string `json:"access"`
	}
	var rows []row
	// The handlers are not called, so that they need nothing to work with.
	for _, r := range table(routed{
		ready:   &readiness{},
		auth:    auth.Deps{Now: time.Now, Local: cfg.showsMails()},
		mailbox: mailbox.Deps{Development: cfg.showsMails(), CronSecret: cfg.CronSecret.Reveal()},
	}) {
		rows = append(rows, row{r.Method, r.Path, whoMay(r.Access)})
	}
	if c.JSON {
		return a.printJSON(rows)
	}
	list := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cli.Fprintf(list, "%s\t%s\t%s\n", r.Method, r.Path, r.Access)
	}
	return list.Flush()
}

// whoMay is a route's access in words: who may call it, and what they need for it.
func whoMay(a handlers.Access) string {
	who := "key"
	switch {
	case a.Public:
		return "everybody"
	case a.Operator:
		who = "operator"
	case a.Session:
		who = "person"
	case a.Platform:
		who = "platform key"
	}
	for _, need := range []string{string(a.Scope), string(a.Action)} {
		if need != "" {
			who += " " + need
		}
	}
	if a.Fresh {
		who += ", just signed in"
	}
	return who
}
