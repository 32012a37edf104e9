package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/move"
	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/web/cli"
)

// The variables of the home to which a tenant moves, in addition to those of its present home.
const (
	toDatabaseVariable  = "POSTHORN_TO_DATABASE_URL"
	toMasterKeyVariable = "POSTHORN_TO_MASTER_KEY"
)

type tenantMoveCommand struct {
	Tenant   string `arg:"" help:"The tenant's id."`
	To       string `required:"" placeholder:"HOME" help:"The home that it moves to. POSTHORN_TO_DATABASE_URL and POSTHORN_TO_MASTER_KEY are that home's."`
	Keep     bool   `help:"Keep what the tenant leaves behind, for a comparison; it is not erased by itself then."`
	RollBack bool   `name:"rollback" help:"End a move that has not come to its end: the tenant stays, and what was copied is deleted."`
	Lost     bool   `help:"With --rollback: the database of the other home is lost. Ends the move here, without it."`
	JSON     bool   `name:"json" help:"Print JSON: rows, and closed_ms."`
}

// Run moves a tenant, or ends its move.
func (c tenantMoveCommand) Run(ctx context.Context, a *app) error {
	tenant, err := id.Tenant.Parse(c.Tenant)
	if err != nil {
		return fault.New(fault.Invalid, "tenant_malformed", "The tenant is "+id.Tenant.Rule()+". `posthorn tenant list` prints the ids.")
	}
	if !home.ValidName(c.To) {
		return fault.New(fault.Invalid, "home_malformed", "--to is the name of a home: "+home.Rule+".")
	}
	if c.Lost && !c.RollBack {
		return fault.New(fault.Invalid, "move_lost", "--lost goes with --rollback: only a move that has not come to its end can be ended without the other home.")
	}
	m, err := c.read(ctx, a)
	if err != nil {
		return err
	}
	m.Tenant = tenant
	if c.RollBack {
		if err := move.RollBack(ctx, m); err != nil {
			return err
		}
		a.printf("The move is rolled back. The tenant is where it was.\n")
		return nil
	}
	moved, err := move.Run(ctx, m)
	if moved.Started {
		cli.Fprintf(a.stderr, "The move is not finished. Run the command again to finish it, or with --rollback to end it. Until then PostgreSQL keeps its log for the move.\n")
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			Rows     int64 `json:"rows"`
			ClosedMS int64 `json:"closed_ms"`
		}{moved.Rows, moved.Closed.Milliseconds()})
	}
	a.printf("The tenant is in %s now: %d rows were copied. It accepted no changes for %s.\n", c.To, moved.Rows, moved.Closed.Round(time.Millisecond))
	return nil
}

// read reads where from and where to.
func (c tenantMoveCommand) read(ctx context.Context, a *app) (m move.Move, err error) {
	cfg, err := a.config()
	if err != nil {
		return m, err
	}
	values := map[string]string{}
	for _, pair := range a.environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = strings.TrimSpace(value)
	}
	to := Secret(values[toDatabaseVariable])
	if why := databaseFault(to); !c.Lost && (to == "" || why != "") {
		return m, fault.New(fault.Invalid, "move_database", fmt.Sprintf("%s is the database URL of the home %s. Set it.", toDatabaseVariable, c.To))
	}
	if cfg.embedded() {
		return m, fault.New(fault.Invalid, "move_embedded", "A private PostgreSQL can't be reached from another home. Set POSTHORN_DATABASE_URL.")
	}
	if m.ToKeys, err = seal.NewRing(values[toMasterKeyVariable]); err != nil && !c.Lost {
		return m, fault.New(fault.Invalid, "move_key", fmt.Sprintf("%s is the POSTHORN_MASTER_KEY of the home %s. Set it.", toMasterKeyVariable, c.To))
	}
	s := &store{url: cfg.DatabaseURL.Reveal(), listenURL: cfg.DatabaseListenURL.Reveal()}
	if s.listenURL == "" {
		s.listenURL = s.url
	}
	urls := []string{s.listenURL, to.Reveal()}
	if c.Lost {
		to, urls = "", urls[:1]
	}
	for _, url := range urls {
		if err := tryDatabase(ctx, url, false); err != nil {
			return m, explainDatabase(err)
		}
	}
	log := a.quietLogger(&cfg)
	if a.terminal && !c.JSON {
		log = a.logger(&cfg)
	}
	d, err := db.Open(ctx, s.listenURL, db.Options{Name: "move", MaxConns: 1})
	if err != nil {
		return m, explainDatabase(err)
	}
	defer d.Close()
	if m.FromKeys, err = openRing(ctx, &cfg, s, d); err != nil {
		return m, err
	}
	m.From, m.To, m.Home, m.Keep, m.Say = s.listenURL, to.Reveal(), c.To, c.Keep, func(step string, args ...any) { log.Info(step, args...) }
	return m, nil
}
