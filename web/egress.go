package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/web/cli"
)

type (
	egressProxyListCommand struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	egressProxySetCommand struct {
		Address      string   `arg:"" optional:"" help:"Host and port, such as proxy.example.com:3128; none for --type direct."`
		Tenant       string   `placeholder:"ID" help:"For one tenant that differs; default: for all tenants."`
		Type         string   `enum:"http,socks5,direct" default:"http" help:"http (CONNECT), socks5, or direct: no proxy for this tenant."`
		Username     string   `help:"The username, if the proxy asks for one."`
		PasswordFile string   `placeholder:"FILE" help:"A file with the password. Without it the stored one stays, for the same address and username."`
		ResolveNames bool     `help:"Approve that the proxy resolves host names itself, so that Posthorn doesn't check their addresses."`
		Published    []string `placeholder:"ADDRESS" help:"An address or network from which it sends, for egress.json. Repeat it for several."`
		JSON         bool     `name:"json" help:"Print the proxy as JSON."`
	}
	egressProxyRemoveCommand struct {
		Tenant string `placeholder:"ID" help:"Of one tenant; default: the one for all tenants."`
	}
)

// egressProxy is a proxy as the command prints it.
type egressProxy struct {
	Owner        string     `json:"owner"`
	Type         string     `json:"type"`
	Address      string     `json:"address"`
	Username     string     `json:"username"`
	HasPassword  bool       `json:"has_password"`
	ResolveNames bool       `json:"resolve_names"`
	Published    []string   `json:"published_addresses"`
	FailedAt     *time.Time `json:"failed_at"`
	Failure      string     `json:"failure"`
}

func newEgressProxy(p egress.ProxyStatus) egressProxy {
	v := egressProxy{
		Owner:        egress.PlatformOwner,
		Type:         string(p.Type),
		Address:      p.Address,
		Username:     p.Username,
		HasPassword:  p.HasPassword,
		ResolveNames: p.ResolveNames,
		Published:    p.Published,
		Failure:      p.Failure,
	}
	if !p.Owner.IsZero() {
		v.Owner = id.Tenant.Format(p.Owner)
	}
	if !p.FailedAt.IsZero() {
		v.FailedAt = &p.FailedAt
	}
	return v
}

// proxyOwner reads the tenant of a command; empty: the platform.
func proxyOwner(tenant string) (id.UUID, error) {
	if tenant == "" {
		tenant = egress.PlatformOwner
	}
	return egress.ParseProxyOwner("--tenant", tenant)
}

// Run lists the proxies.
func (c egressProxyListCommand) Run(ctx context.Context, a *app) error {
	var all []egress.ProxyStatus
	err := a.readDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Tx) (err error) {
			all, err = endpoints.Proxies(ctx, q)
			return err
		})
	})
	if err != nil {
		return err
	}
	list := []egressProxy{}
	for _, p := range all {
		list = append(list, newEgressProxy(p))
	}
	if c.JSON {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		a.printf("No egress proxies. Requests go directly to their endpoints.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	cli.Fprintf(table, "OWNER\tTYPE\tADDRESS\tUSERNAME\tLAST FAILURE\n")
	for _, p := range list {
		failure := "none"
		if p.FailedAt != nil {
			failure = p.FailedAt.Local().Format("2006-01-02 15:04:05 MST") + ": " + p.Failure
		}
		cli.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Owner, p.Type, p.Address, p.Username, failure)
	}
	return table.Flush()
}

// Run sets a proxy.
func (c egressProxySetCommand) Run(ctx context.Context, a *app) error {
	owner, err := proxyOwner(c.Tenant)
	if err != nil {
		return err
	}
	p := egress.Proxy{
		Owner:        owner,
		Type:         egress.ProxyType(c.Type),
		Address:      c.Address,
		Username:     c.Username,
		ResolveNames: c.ResolveNames,
		Published:    c.Published,
	}
	if c.PasswordFile != "" {
		text, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return fmt.Errorf("--password-file can't be read: %w", err)
		}
		p.Password = strings.TrimRight(string(text), "\r\n")
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var is egress.ProxyStatus
	err = a.withStoreAndDatabase(ctx, func(s *store, d *db.DB) error {
		ring, err := openRing(ctx, &cfg, s, d)
		if err != nil {
			return err
		}
		return d.Console(ctx, func(q *db.Tx) (err error) {
			is, err = endpoints.Editor{Keys: ring, By: commandAuthor()}.SetProxy(ctx, q, cfg.Egress, p)
			return err
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(newEgressProxy(is))
	}
	a.printf("The egress proxy is saved. Workers use it within seconds.\n")
	return nil
}

// Run removes a proxy.
func (c egressProxyRemoveCommand) Run(ctx context.Context, a *app) error {
	owner, err := proxyOwner(c.Tenant)
	if err != nil {
		return err
	}
	err = a.withDatabase(ctx, func(d *db.DB) error {
		return d.Console(ctx, func(q *db.Tx) error {
			return endpoints.Editor{By: commandAuthor()}.RemoveProxy(ctx, q, owner)
		})
	})
	if err == nil {
		a.printf("The egress proxy is removed. Workers follow within seconds.\n")
	}
	return err
}
