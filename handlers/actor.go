package handlers

import (
	"posthorn/domain/access"
	"posthorn/domain/id"
)

// Actor is who calls, and from where.
type Actor struct {
	Key       id.UUID // the API key
	Tenant    id.UUID // the tenant acted in; zero on routes that act in none
	Scopes    access.Scopes
	Platform  bool   // a platform key, which may act for any tenant
	Address   string // where the connection comes from, without the port
	RequestID string
}
