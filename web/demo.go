package main

import (
	"context"
	"errors"
	"net"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/web/demo"
)

// demoTenant is what the demo tenant is called, and found by.
const demoTenant = "Demo shop"

var errNoDemo = fault.New(fault.Forbidden, "not_local", "The demo runs on a server that only this machine reaches and that sends no mail. Start it without POSTHORN_BASE_URL and POSTHORN_MAIL, on a loopback address.")

// serveDemo serves with a demo tenant, with its receivers and product in the same process: everything that it shows was
// really emitted and delivered.
func (a *app) serveDemo(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !cfg.showsMails() {
		return errNoDemo
	}
	if cfg.Egress, err = egress.ParseAllow(cfg.EgressAllow + "," + cfg.DemoAddr); err != nil {
		return err
	}
	receivers, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.DemoAddr)
	if err != nil {
		return fault.New(fault.Unavailable, "address_unavailable", cfg.DemoAddr+" is in use by another program, and the demo's receivers listen there. Stop that program, or set POSTHORN_DEMO_ADDR to another address, such as 127.0.0.1:9101.")
	}
	ctx, stop := context.WithCancel(ctx)
	p := &Program{Config: cfg, Parts: Parts{Web: true, Worker: true}, Log: a.logger(&cfg)}
	ended := make(chan struct{})
	err = a.keep(ctx, p, func() error {
		key, err := demoKey(ctx, p.pools[0])
		if err != nil {
			return err
		}
		go func() {
			defer close(ended)
			if err := demo.Run(ctx, demo.Config{
				Server:    p.URL(),
				Key:       key,
				Receivers: receivers,
				Log:       p.Log,
			}); err != nil && !errors.Is(err, context.Canceled) {
				p.Log.Error("the demo has stopped", "error", err)
			}
		}()
		return nil
	})
	stop()
	_ = receivers.Close()
	return err
}

// demoKey creates a key of the demo tenant that expires after a day.
func demoKey(ctx context.Context, d *db.DB) (text string, err error) {
	by := db.Author{Kind: "command"}
	err = d.Console(ctx, func(q *db.Tx) error {
		var tenant *id.UUID
		tenants, err := accounts.AllTenants(ctx, q)
		if err != nil {
			return err
		}
		for _, t := range tenants {
			if t.Name == demoTenant {
				tenant = &t.ID
			}
		}
		if tenant == nil {
			return nil
		}
		end := time.Now().Add(24 * time.Hour).UTC()
		_, text, err = makeKey(ctx, q, accounts.NewKey{
			Tenant:    tenant,
			Name:      "Demo",
			Scopes:    access.TenantScopes(),
			ExpiresAt: &end,
		})
		return err
	})
	if err != nil || text != "" {
		return text, err
	}
	_, text, err = accounts.CreateTenant(ctx, d, accounts.NewTenant{Name: demoTenant}, by)
	return text, err
}
