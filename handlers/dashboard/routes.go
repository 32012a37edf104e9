// Package dashboard is the pages of one tenant: a file per noun.
package dashboard

import (
	"log/slog"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/pages"
)

// Deps is what the handlers work with.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring
	BaseURL string // the public URL, without a slash at its end
	Log     *slog.Logger
	Now     func() time.Time
}

// dashboard holds the handlers.
type dashboard struct {
	Deps
}

// Root is where a tenant's pages are.
const Root = "/t/:" + handlers.TenantParam

// Routes is the route table of a tenant's pages.
func Routes(d Deps) []handlers.Route {
	a := &dashboard{d}
	return []handlers.Route{
		page("GET", "", access.Read, a.addSlash),
		page("GET", "/", access.Read, a.home),
	}
}

// page is a route for the members who may do an action.
func page(method, path string, action access.Action, h handlers.Handler) handlers.Route {
	return handlers.Route{Method: method, Path: Root + path, Access: handlers.Access{Session: true, Action: action}, Handler: h}
}

func (a *dashboard) addSlash(c *handlers.Call) error {
	return c.Redirect("/t/" + id.Tenant.Format(c.Actor.Tenant) + "/")
}

func (a *dashboard) home(c *handlers.Call) error {
	return c.Render(http.StatusOK, pages.Home(pages.HomeView{Shell: c.Shell(c.Actor.TenantName, "overview")}))
}
