package move

// How a table of tenants moves to another home.
type movedAs int

const (
	// byChanges is copied while the tenant works. Rows that change after the copy are copied again.
	byChanges movedAs = iota
	// byDays is byChanges for a table partitioned by day.
	byDays
	// atOnce is copied whole in the last step. It is small and does not change within that step.
	atOnce
	// whenDrained is copied in the last step too. Workers change it, and have released the tenant by then.
	whenDrained
	// stays belongs to this home alone and is not copied.
	stays
)

// movedTable is one table with a tenant in each row.
type movedTable struct {
	name string
	as   movedAs
	// changed finds the rows (t) of some changes (c) again: for byChanges and byDays.
	changed string
	// unfenced tables are changed by workers for many tenants in one statement, which must not fail for one of them.
	unfenced bool
}

// movedTables are all tables with a tenant in each row, in an order that satisfies references.
// TestEveryTableOfTenantsMoves compares the list with the catalog.
var movedTables = []movedTable{
	{name: "events", as: byDays, changed: "t.created_at = c.at AND t.id = c.k1"},
	{name: "deliveries", as: byDays, changed: "t.created_at = c.at AND t.id = c.k1"},
	{name: "attempts", as: byDays, changed: "t.created_at = c.at AND t.delivery_id = c.k1"},
	{name: "dead_letters", changed: "t.delivery_id = c.k1"},
	{name: "cancellations", changed: "t.delivery_id = c.k1"},
	{name: "replays", changed: "t.replay_of = c.k1"},
	{name: "idempotency_keys", changed: "t.key = c.k2"},
	{name: "endpoint_stats", changed: "t.endpoint_id = c.k1 AND t.bucket = c.at", unfenced: true},
	{name: "endpoint_failures", changed: "t.endpoint_id = c.k1 AND t.bucket = c.at", unfenced: true},
	{name: "audit_log", changed: "t.id = c.k1", unfenced: true}, // append-only, and written by sign-ins too
	{name: "memberships", as: atOnce},
	{name: "sso_connections", as: atOnce},
	{name: "sso_domains", as: atOnce},
	{name: "sso_identities", as: atOnce},
	{name: "endpoints", as: atOnce},
	{name: "api_keys", as: atOnce},
	{name: "book_differences", as: atOnce},
	{name: "bulk_jobs", as: atOnce},
	{name: "digests", as: atOnce},
	{name: "dispatch_pauses", as: atOnce},
	{name: "endpoint_revisions", as: atOnce},
	{name: "event_log", changed: "t.position = c.k2::bigint"},
	{name: "feed_logs", as: atOnce},
	{name: "feed_consumers", as: atOnce},
	{name: "endpoint_starts", as: atOnce},
	{name: "subscriptions", as: atOnce},
	{name: "mcp_access", as: atOnce},
	{name: "transformations", as: atOnce},
	{name: "endpoint_secrets", as: atOnce},
	{name: "endpoint_warnings", as: atOnce},
	{name: "signing_keys", as: atOnce},
	{name: "event_types", as: atOnce},
	{name: "inboxes", as: atOnce},
	{name: "inbox_requests", as: atOnce},
	{name: "invitations", as: atOnce},
	{name: "listeners", as: atOnce},
	{name: "handed_out", as: atOnce},
	{name: "mails", as: atOnce},
	{name: "notice_preferences", as: atOnce},
	{name: "notices", as: atOnce},
	{name: "outbox", as: atOnce},
	{name: "outbox_rejected", as: atOnce},
	{name: "sources", as: atOnce},
	{name: "source_positions", as: atOnce},
	{name: "source_messages", as: atOnce},
	{name: "portal_links", as: atOnce},
	{name: "delivery_shares", as: atOnce},
	{name: "quota_buckets", as: atOnce},
	{name: "verifications", as: atOnce},
	{name: "books", as: whenDrained},
	{name: "endpoint_health", as: whenDrained},
	{name: "lanes", as: whenDrained},
	{name: "late_days", as: whenDrained},
	{name: "queue", as: whenDrained},
	{name: "history_days", as: stays}, // a tenant with any doesn't move: mayMove
	{name: "history_parts", as: stays},
	{name: "large_payloads", as: stays}, // likewise
	{name: "egress_proxies", as: stays}, // a way out of this home's network
	{name: "operator_views", as: stays}, // of an operator's sign-in here
	{name: "tenant_moves", as: stays},
	{name: "tenant_move_parts", as: stays},
	{name: "tenant_move_changes", as: stays},
}

// resealed are the columns of a tenant that the other home's master key must open. row is the column that finds the
// value within the tenant, object the id under which the value is sealed.
var resealed = []struct{ table, column, row, object string }{
	{"endpoint_secrets", "sealed", "id", "endpoint_id"},
	{"endpoints", "custom_headers", "id", "id"},
	{"endpoints", "connection", "id", "id"},
	{"sources", "connection", "id", "id"},
	{"endpoints", "also_secret", "id", "id"},
	{"endpoints", "credentials", "id", "id"},
	{"transformations", "variables", "id", "endpoint_id"},
	{"mails", "sealed", "id", "id"},
	{"signing_keys", "sealed", "id", "id"},
	{"sso_connections", "client_secret", "tenant_id", "tenant_id"},
}

// mode is what a table's trigger does during a move; empty: it has none.
func (t movedTable) mode() string {
	switch {
	case t.as == atOnce:
		return "fence"
	case t.as != byChanges && t.as != byDays:
		return ""
	case t.unfenced:
		return "track"
	}
	return "both"
}

// tracked reports whether changes of a table are recorded while its tenant moves.
func (t movedTable) tracked() bool { return t.as == byChanges || t.as == byDays }
