package account

// TenantState is whether a tenant can be changed and its deliveries are sent. It is stored: the words never change.
type TenantState string

// The states of tenants.
const (
	TenantActive    TenantState = "active"
	TenantSuspended TenantState = "suspended" // by an operator: read-only, and nothing is sent
	TenantDeleted   TenantState = "deleted"   // unknown to everybody; its data is erased
	TenantMoving    TenantState = "moving"    // in the last step of its move to another home; not stored
)
