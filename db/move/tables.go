package move

// How a table of tenants moves to another home.
type movedAs int

const (
	// live is replicated while the tenant works: its primary key has the tenant, which the filter of a publication
	// needs for changes and deletions.
	live movedAs = iota
	// inserts is replicated too, insertions alone.
	inserts
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
	days bool // partitioned by day; its rows are compared after the move
	// unfenced tables are changed by workers for many tenants in one statement, which must not fail for one of them.
	unfenced bool
}

// movedTables are all tables with a tenant in each row, in an order that satisfies references.
// TestEveryTableOfTenantsMoves compares the list with the catalog.
var movedTables = []movedTable{
	{name: "events", days: true},
	{name: "deliveries", days: true},
	{name: "attempts", as: inserts, days: true}, // an expunge, which changes them, waits until the move is over
	{name: "dead_letters"},
	{name: "cancellations"},
	{name: "replays"},
	{name: "idempotency_keys"},
	{name: "endpoint_stats", unfenced: true},
	{name: "endpoint_failures", unfenced: true},
	{name: "audit_log", as: inserts, unfenced: true}, // append-only, and written by sign-ins too
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
	{name: "event_log"},
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
	{name: "history_expunges", as: stays},
	{name: "large_payloads", as: stays}, // likewise
	{name: "egress_proxies", as: stays}, // a way out of this home's network
	{name: "operator_views", as: stays}, // of an operator's sign-in here
	{name: "tenant_moves", as: stays},
	{name: "tenant_move_marks"}, // says how far the replication is
	{name: "moved_tenants", as: stays},
}

// resealed are the columns that the other home's master key must open. row is the column that finds the value within
// the table, object the id under which the value is sealed: for the tenant, or, if owner is true, for nobody.
var resealed = []struct {
	table, column, row, object string
	owner                      bool
}{
	{"endpoint_secrets", "sealed", "id", "endpoint_id", false},
	{"endpoints", "custom_headers", "id", "id", false},
	{"endpoints", "connection", "id", "id", false},
	{"sources", "connection", "id", "id", false},
	{"endpoints", "also_secret", "id", "id", false},
	{"endpoints", "credentials", "id", "id", false},
	{"transformations", "variables", "id", "endpoint_id", false},
	{"mails", "sealed", "id", "id", false},
	{"signing_keys", "sealed", "id", "id", false},
	{"sso_connections", "client_secret", "tenant_id", "tenant_id", false},
	{"people", "totp", "id", "id", true},
}

// replicated reports whether a table is replicated while its tenant moves.
func (t movedTable) replicated() bool { return t.as == live || t.as == inserts }

// fenced reports whether a table rejects changes of the tenant in the last step.
func (t movedTable) fenced() bool {
	return t.name != "tenant_move_marks" && !t.unfenced && (t.replicated() || t.as == atOnce)
}
