package main

import (
	"cmp"
	"context"
	"path/filepath"
	"text/tabwriter"

	"posthorn/db"
	"posthorn/db/embedded"
	"posthorn/domain/fault"
	"posthorn/web/cli"
)

type (
	migrateUpCommand     struct{}
	migrateDownCommand   struct{}
	migrateRolesCommand  struct{}
	migrateStatusCommand struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
)

// withStore opens the database for one command and closes it after.
func (a *app) withStore(ctx context.Context, do func(*store) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	s, err := openStore(ctx, &cfg, a.quietLogger(&cfg), false)
	if err != nil {
		return err
	}
	err = do(s)
	if closed := s.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	return err
}

// withInstalled is withStore for a command that reads: it installs no private PostgreSQL.
func (a *app) withInstalled(ctx context.Context, do func(*store) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if cfg.embedded() {
		home, installed, err := embedded.Installed(cfg.DataDir)
		if err != nil {
			return err
		}
		if !installed {
			return notInstalled(home)
		}
	}
	return a.withStore(ctx, do)
}

func notInstalled(home string) error {
	return fault.New(fault.NotFound, "not_installed", "There is no Posthorn installation in "+home+
		". Set POSTHORN_DATA_DIR to the directory of one or POSTHORN_DATABASE_URL to its database, or create one with `posthorn serve`.")
}

// readDatabase is withDatabase for a command that reads: it makes neither a database nor a schema.
func (a *app) readDatabase(ctx context.Context, do func(*db.DB) error) error {
	return a.withInstalled(ctx, func(s *store) error {
		installed, err := db.Installed(ctx, s.listenURL)
		if err != nil {
			return explainDatabase(err)
		}
		if !installed && s.cluster != nil {
			return notInstalled(s.cluster.DataDir())
		}
		if !installed {
			return notInstalled("the database of POSTHORN_DATABASE_URL")
		}
		return s.use(ctx, do)
	})
}

// use opens the database with its schema up to date.
func (s *store) use(ctx context.Context, do func(*db.DB) error) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	d, err := s.open(ctx, "command", 2)
	if err != nil {
		return err
	}
	defer d.Close()
	return do(d)
}

// withDatabase opens the database for one command, with its schema up to date.
func (a *app) withDatabase(ctx context.Context, do func(*db.DB) error) error {
	return a.withStoreAndDatabase(ctx, func(_ *store, d *db.DB) error { return do(d) })
}

// withStoreAndDatabase is withDatabase for a command that looks for the master key too.
func (a *app) withStoreAndDatabase(ctx context.Context, do func(*store, *db.DB) error) error {
	return a.withStore(ctx, func(s *store) error {
		return s.use(ctx, func(d *db.DB) error { return do(s, d) })
	})
}

// Run brings the schema up to date.
func (migrateUpCommand) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(s *store) error {
		if err := s.migrate(ctx); err != nil {
			return err
		}
		a.printf("The database is up to date.\n")
		return nil
	})
}

// Run prepares the server of the database: roles, grants, and the database itself.
func (migrateRolesCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	told := func(what string) { a.printf("%s\n", what) }
	prepare := func(admin, url string) error {
		if err := db.PrepareServer(ctx, admin, url, told); err != nil {
			return explainDatabase(err)
		}
		a.printf("The roles are complete.\n")
		return nil
	}
	if cfg.embedded() {
		return a.withStore(ctx, func(s *store) error { return prepare(s.cluster.AdminURL(embedded.Database), s.url) })
	}
	url := cmp.Or(cfg.DatabaseListenURL, cfg.DatabaseURL).Reveal()
	return prepare(cmp.Or(cfg.AdminDatabaseURL.Reveal(), url), url)
}

// Run undoes one migration.
func (migrateDownCommand) Run(ctx context.Context, a *app) error {
	return a.withStore(ctx, func(s *store) error {
		if err := db.MigrateDown(ctx, s.listenURL); err != nil {
			return explainDatabase(err)
		}
		a.printf("The newest migration is undone. `posthorn migrate up`, or any start of this version, applies it again.\n")
		return nil
	})
}

// Run lists the migrations, and fails if the roles that a process takes are missing.
func (c migrateStatusCommand) Run(ctx context.Context, a *app) error {
	return a.withInstalled(ctx, func(s *store) error {
		states, err := db.MigrateStatus(ctx, s.listenURL)
		if err != nil {
			return explainDatabase(err)
		}
		var missing []string
		if len(states) > 0 && states[0].Applied { // else the first migration creates and grants them
			if missing, err = db.MissingRoles(ctx, s.listenURL); err != nil {
				return explainDatabase(err)
			}
		}
		if c.JSON {
			type migration struct {
				Version int64  `json:"version"`
				Name    string `json:"name"`
				Applied bool   `json:"applied"`
			}
			list := make([]migration, len(states))
			for i, m := range states {
				list[i] = migration{m.Version, filepath.Base(m.Name), m.Applied}
			}
			if err := a.printJSON(list); err != nil {
				return err
			}
			return db.RolesFault(missing)
		}
		table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		for _, m := range states {
			state := "missing"
			if m.Applied {
				state = "applied"
			}
			cli.Fprintf(table, "%d\t%s\t%s\n", m.Version, state, filepath.Base(m.Name))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		return db.RolesFault(missing)
	})
}
