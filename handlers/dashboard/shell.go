package dashboard

import (
	"posthorn/domain/id"
	"posthorn/handlers"
)

// mostEndpoints bounds the endpoints that a page reads. It is above the default limit of a tenant.
const mostEndpoints = 250

// root is the path of the tenant's pages, without a slash at its end.
func root(c *handlers.Call) string { return "/t/" + id.Tenant.Format(c.Actor.Tenant) }

func endpointPath(c *handlers.Call, endpointID id.UUID) string {
	return root(c) + "/endpoints/" + id.Endpoint.Format(endpointID)
}
