// Package svix serves Svix's API at /svix/api/v1, so that a product that calls Svix through one of its libraries only
// changes the address and the token. Each operation is translated into calls of Posthorn's own API with the caller's
// own key: there is no second data model, and nothing can be done here that the key could not do there. docs/svix.md
// lists every operation and difference.
package svix

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/domain/access"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	API  http.Handler // Posthorn's own, at /api/v1
	DB   *db.DB
	Keys *seal.Ring
}

const (
	prefix = "/svix"
	root   = prefix + "/api/v1"
)

type svix struct{ Deps }

// Routes is the route table. The token must be a valid key before anything of a body is read. The call of Posthorn's
// own API checks what the key can do; an operation that makes none names its access, or needs no token.
func Routes(d Deps) []handlers.Route {
	s := &svix{Deps: d}
	var routes []handlers.Route
	for _, o := range s.operations() {
		r := handlers.Route{
			Method:  o.Method,
			Path:    root + o.Path,
			Access:  handlers.Access{Key: true},
			Handler: o.handler(),
			MaxBody: maxBody,
			Refuse:  refuse,
		}
		switch {
		case o.Handler == nil:
			r.Access = handlers.Access{Public: true}
		case withoutToken[o.Path]:
			r.Access = handlers.Access{Public: true}
		case o.Path == endpointPath+"/secret" && o.Method == http.MethodGet:
			r.Access = handlers.Access{Scope: access.WebhooksWrite, Tenant: true, Platform: true}
		}
		routes = append(routes, r)
	}
	return routes
}

// withoutToken are the operations that check nothing and read no body.
var withoutToken = map[string]bool{"/health": true, "/health/ping": true, "/auth/logout": true}

// maxBody bounds a request: the largest payload plus the fields around it.
const maxBody = 1<<20 + 64<<10

const (
	appPath      = "/app/:" + handlers.TenantParam
	endpointPath = appPath + "/endpoint/:" + handlers.EndpointParam
	messagePath  = appPath + "/msg/:msg_id"
	pollerPath   = appPath + "/poller/:" + handlers.EndpointParam
	offsetsPath  = appPath + "/polling-endpoint/:" + handlers.EndpointParam + "/consumer/:consumer"
)
