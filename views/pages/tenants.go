package pages

// TenantsView is the tenants that a person belongs to.
type TenantsView struct {
	Shell   Frame
	Tenants []TenantLink
}

// TenantLink is one of them.
type TenantLink struct{ ID, Name, Role string }

// HomeView is the first page of a tenant.
type HomeView struct {
	Shell Frame
}
