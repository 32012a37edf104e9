package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/emit"
	"posthorn/db/events"
	"posthorn/db/seal"
	"posthorn/domain/catalogue"
	"posthorn/handlers"
	"posthorn/handlers/admin"
	"posthorn/handlers/api"
	"posthorn/handlers/auth"
	"posthorn/handlers/dashboard"
	"posthorn/handlers/docs"
	"posthorn/handlers/homes"
	"posthorn/handlers/inbox"
	"posthorn/handlers/links"
	"posthorn/handlers/mailbox"
	"posthorn/handlers/mcp"
	"posthorn/handlers/openid"
	"posthorn/handlers/publickeys"
	"posthorn/handlers/readers"
	"posthorn/handlers/status"
	"posthorn/handlers/svix"
	"posthorn/static"
	"posthorn/worker/send"
)

// newRouter is the handler of the public address. Its routes are table's and no others.
func newRouter(p *Program, general *db.DB, ring *seal.Ring, committer *emit.Committer) http.Handler {
	keys := handlers.NewAuthenticator(accounts.Keys{DB: general}, p.Log, time.Now)
	p.keys = p.run("key watch", keys.Run)
	config := kitConfig(p, general, keys, ring)
	kit := handlers.New(config)
	engine := kit.NewEngine()
	engine.Use(newHTTPMetrics(p.registry).observe)
	providers := openid.New(send.NewClient(p.Config.Egress), time.Now)
	tester := send.NewTester(p.Config.Egress)
	large := handlers.NewLargeData(p.Config.History, p.Log)
	own := api.Deps{
		DB:      general,
		Emitter: committer,
		Egress:  p.Config.Egress,
		Keys:    ring,
		BaseURL: p.URL(),
		Log:     p.Log,
		Now:     time.Now,
		Closing: p.closing,
		OpenID:  providers,
		Tester:  tester,
		Large:   large,

		ConsoleURL: p.Config.consoleURL(p.URL()),
		Settings:   api.Settings{MaxLarge: int(p.Config.MaxLargePayload)},
	}
	keys.Tokens = &mcp.SignIns{DB: general, OpenID: providers, BaseURL: p.URL(), Now: time.Now}
	inner := kit.NewEngine()
	kit.Mount(inner, api.Routes(own, readers.Routes))
	var translated *svix.Deps
	if p.Config.SvixAPI != "off" {
		translated = &svix.Deps{API: inner, DB: general, Keys: ring}
	}
	fleet := newFleet(p, kit, engine, config)
	kit.Mount(engine, table(routed{
		ready:      p.ready,
		api:        own,
		svix:       translated,
		mcp:        mcpDeps(own, inner),
		auth:       authDeps(p, general, ring, providers),
		operators:  p.Config.operatorSSO(p.URL()),
		consoleURL: p.Config.consoleURL(p.URL()),
		dashboard: dashboard.Deps{
			DB:             general,
			Keys:           ring,
			BaseURL:        p.URL(),
			Log:            p.Log,
			Now:            time.Now,
			Emitter:        committer,
			Egress:         p.Config.Egress,
			OpenID:         providers,
			Tester:         tester,
			Large:          large,
			FrameAncestors: p.Config.frameAncestors(),
			Closing:        p.closing,
		},
		mailbox: mailbox.Deps{
			DB:          general,
			Keys:        ring,
			Development: p.Config.showsMails(),
			CronSecret:  p.Config.CronSecret.Reveal(),
		},
		status: status.Deps{DB: general, Egress: p.Config.Published, Now: time.Now},
		keys:   publickeys.Deps{DB: general, Keys: ring, BaseURL: p.URL(), Now: time.Now},
		links:  links.Deps{DB: general, Keys: ring, Now: time.Now, Large: large},
		homes:  fleet,
	}))
	if fleet == nil {
		return svix.OnHost(p.Config.SvixHost, engine)
	}
	return svix.OnHost(p.Config.SvixHost, fleet)
}

func authDeps(p *Program, general *db.DB, ring *seal.Ring, providers *openid.Client) auth.Deps {
	return auth.Deps{
		DB:          general,
		Keys:        ring,
		BaseURL:     p.URL(),
		Signup:      p.Config.Signup == "open",
		MailIsShown: p.Config.showsMails(),
		Local:       p.Config.showsMails(),
		Log:         p.Log,
		Now:         time.Now,
		OpenID:      providers,
	}
}

// mcpDeps is what tools of AI clients need: the API's, and the API itself.
func mcpDeps(own api.Deps, inner http.Handler) mcp.Deps {
	return mcp.Deps{
		API:     inner,
		DB:      own.DB,
		Keys:    own.Keys,
		Egress:  own.Egress,
		Poster:  own.Tester,
		BaseURL: own.BaseURL,
		Version: buildVersion(),
		Now:     own.Now,
		Closing: own.Closing,
	}
}

func kitConfig(p *Program, general *db.DB, keys *handlers.Authenticator, ring *seal.Ring) handlers.Config {
	return handlers.Config{
		DB:             general,
		Stored:         p.stored(general),
		Authenticator:  keys,
		Log:            p.Log,
		Now:            time.Now,
		Sessions:       handlers.NewSessions(general, p.URL()).Of(p.Config.Home),
		Keys:           ring,
		BaseURL:        p.URL(),
		FrameAncestors: p.Config.frameAncestors(),
		ConsoleHost:    p.Config.ConsoleHost,
		Proxies:        p.Config.Proxies,
		Bodies:         p.Config.bodies(),
	}
}

// newFleet leads requests for tenants that have moved to their homes, and watches these. It is nil where the
// installation has none.
func newFleet(p *Program, kit *handlers.Kit, here http.Handler, c handlers.Config) *homes.Router {
	if p.Config.Home == "" {
		return nil
	}
	fleet := homes.New(homes.Config{
		Self:    p.Config.self,
		Others:  p.Config.Others,
		DB:      c.DB,
		Ring:    c.Keys,
		Keys:    c.Authenticator,
		Proxies: c.Proxies,
		Log:     c.Log,
		Now:     c.Now,
		Ready:   func(ctx context.Context) (bool, string) { return p.ready.check(ctx).Status == "ready", buildVersion() },
		Here:    here,
		Refuse:  kit.Refuser(),
		Arrive:  kit.Arrive,
	})
	p.homes = p.run("watch of the homes", fleet.Watch)
	p.registry.MustRegister(homeMetrics(fleet.Known))
	return fleet
}

// routed is what the routes work with. A table that is only looked at needs little of it.
type routed struct {
	ready      *readiness
	api        api.Deps
	auth       auth.Deps
	dashboard  dashboard.Deps
	mailbox    mailbox.Deps
	status     status.Deps
	keys       publickeys.Deps
	links      links.Deps
	svix       *svix.Deps // nil: switched off
	mcp        mcp.Deps
	operators  *auth.SSO // nil: operators sign in only here
	consoleURL string
	homes      *homes.Router // nil: the installation has no homes
}

// table is every route of the public address: nothing else can be reached.
func table(d routed) []handlers.Route {
	ready, accounts, open := d.ready, d.auth, handlers.Access{Public: true}
	routes := []handlers.Route{
		{Method: http.MethodGet, Path: "/healthz", Access: open, Handler: plain(ready.serveHealth)},
		{Method: http.MethodGet, Path: "/readyz", Access: open, Handler: plain(ready.serveReady)},
	}
	if d.api.Exporter == nil {
		d.api.Exporter = api.NewExporter(d.api) // one, so that its bound is the process's
	}
	d.dashboard.Export = d.api.Exporter
	console := admin.Deps{
		Egress:  d.api.Egress,
		Console: auth.Console{Development: handlers.Development(accounts.BaseURL), SSO: d.operators},
		URL:     d.consoleURL,
		Export:  d.api.Exporter,
		DB:      accounts.DB,
		Keys:    accounts.Keys,
		Log:     accounts.Log,
		Now:     accounts.Now,
	}
	if d.homes != nil {
		console.Homes, d.status.Homes = d.homes.Known, d.homes.Known
	}
	inboxes := inbox.Routes(inbox.Deps{DB: accounts.DB, Keys: accounts.Keys, Now: accounts.Now})
	pages := docs.Routes(docs.Deps{BaseURL: accounts.BaseURL, Catalogue: catalogueOf(accounts.DB)})
	if d.svix != nil {
		routes = append(routes, svix.Routes(*d.svix)...)
	}
	return slices.Concat(routes, inboxes, lookRoutes(), status.Routes(d.status), publickeys.Routes(d.keys), links.Routes(d.links), admin.Routes(console), pages,
		auth.Routes(accounts), dashboard.Routes(d.dashboard), dashboard.SharedRoutes(d.dashboard, handlers.NewAddresses(accounts.Now)),
		mailbox.Routes(d.mailbox), api.Routes(d.api, readers.Routes), mcp.Routes(d.mcp))
}

// catalogueOf is the public catalogue of a database; a table that is only looked at has none.
func catalogueOf(d *db.DB) docs.Catalogue {
	if d == nil {
		return nil
	}
	return func(ctx context.Context) ([]catalogue.Entry, bool, error) {
		return events.PublicCatalogue(ctx, d)
	}
}

// newInbox serves only test inboxes, for the deliveries of a worker in this process.
func newInbox(log *slog.Logger, general *db.DB, ring *seal.Ring) http.Handler {
	kit := handlers.New(handlers.Config{Log: log, Now: time.Now})
	engine := kit.NewEngine()
	kit.Mount(engine, inbox.Routes(inbox.Deps{DB: general, Keys: ring, Now: time.Now}))
	return engine
}

// lookRoutes are what pages load, and the choice of light and dark.
func lookRoutes() []handlers.Route {
	open := handlers.Access{Public: true}
	return []handlers.Route{
		{Method: http.MethodGet, Path: static.Prefix + ":hash/:name", Access: open, Handler: plain(static.Serve)},
		{Method: http.MethodGet, Path: static.ThemePrefix + ":accent", Access: open, Handler: plain(static.ServeTheme)},
		{Method: http.MethodGet, Path: static.PortalPath, Access: open, Handler: plain(static.ServePortal)},
		{Method: http.MethodGet, Path: "/favicon.ico", Access: open, Handler: plain(static.ServeIcon)},
		{Method: http.MethodPost, Path: "/theme", Access: open, MaxBody: 1 << 10, Handler: handlers.ChooseTheme},
	}
}

// plain adapts a handler of net/http to the table.
func plain(serve http.HandlerFunc) handlers.Handler {
	return func(c *handlers.Call) error {
		serve(c.Writer, c.Request)
		return nil
	}
}
