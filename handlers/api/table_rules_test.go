package api_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// tableRule says what happens to a table's rows when their tenant is deleted: the file of the export that holds them,
// or why none does; and why they stay, if they are not erased.
type tableRule struct{ file, why, stays string }

const (
	derived = "follows from the deliveries and attempts, which are taken along"
	passing = "is of a moment: what waits, who holds it, what is counted until it is forgotten"
)

var tableRules = map[string]tableRule{
	"tenants":            {file: "tenant.json", stays: "the audit log and the books name it; its settings are emptied"},
	"memberships":        {file: "members.ndjson"},
	"invitations":        {file: "invitations.ndjson"},
	"api_keys":           {file: "keys.ndjson"},
	"portal_links":       {file: "portal_links.ndjson"},
	"delivery_shares":    {why: "links that expire within a week; the audit log tells of each"},
	"event_types":        {file: "event_types.ndjson"},
	"endpoints":          {file: "endpoints.ndjson"},
	"events":             {file: "events.ndjson"},
	"outbox_rejected":    {file: "rejected.ndjson"},
	"deliveries":         {file: "deliveries.ndjson"},
	"attempts":           {file: "deliveries.ndjson"},
	"history_days":       {file: "history.ndjson"},
	"history_parts":      {why: "names of objects in the operators' storage"},
	"history_expunges":   {why: "events in history.ndjson's days whose data was deleted, until the files are rewritten"},
	"large_payloads":     {why: "names of objects in the operators' storage"},
	"bulk_jobs":          {file: "bulk_jobs.ndjson"},
	"notices":            {file: "notices.ndjson"},
	"audit_log":          {file: "audit_log.ndjson", stays: "it is append-only: who did what to whom, the deletion included"},
	"books":              {why: derived, stays: "numbers alone, for the platform's invoices and its proof that nothing was lost"},
	"endpoint_stats":     {why: derived},
	"endpoint_health":    {why: derived},
	"endpoint_warnings":  {why: derived},
	"dead_letters":       {why: derived},
	"cancellations":      {why: derived},
	"replays":            {why: derived},
	"late_days":          {why: derived},
	"endpoint_failures":  {why: derived},
	"inbox_requests":     {why: "copies of what attempts sent to a test inbox, for a day"},
	"inboxes":            {why: "the receiver's side of an endpoint: the digest of its token, and what it answers"},
	"endpoint_revisions": {why: "routes as they were, for events under way; the audit log tells of each change"},
	"endpoint_secrets":   {why: "secrets are shown once"},
	"signing_keys":       {why: "private keys, which are never shown; the public ones are at a public address"},
	"verifications":      {why: "challenges, which are secrets; their outcome is with the endpoint"},
	"idempotency_keys":   {why: "digests that expire within a day"},
	"notice_preferences": {why: "what each member wants to be mailed: the person's, not the tenant's"},
	"mails":              {why: "notices on their way, links of single use among them"},
	"digests":            {why: "that a mail was sent, so that none is sent twice"},
	"operator_views":     {why: "a look that lasts an hour; the audit log tells of it"},
	"dispatch_pauses":    {why: "the operators' own; the audit log tells of them"},
	"book_differences":   {why: "what operators found of their own server"},
	"egress_proxies":     {why: "the operators' own; the audit log tells of changes"},
	"sso_connections":    {why: "how the tenant's own provider is reached, with a secret that is shown once"},
	"sso_domains":        {why: "follows from records that the tenant has in its DNS"},
	"sso_identities":     {why: "who a member is at the tenant's provider, which knows it"},
	"feed_consumers":     {why: "how far each reader is, and the digest of its token"},
	"feed_logs":          {why: "the end of the tenant's log, of this server's transactions"},
	"event_log":          {why: "the order of events that are taken along, by this server's transactions"},
	"endpoint_starts":    {why: passing},
	"subscriptions":      {why: "they end by themselves unless their clients refresh them; their endpoints are taken along"},
	"transformations":    {why: "the versions of an endpoint's transformation: the newest is a setting of the endpoint"},
	"mcp_access":         {why: "which authorization server of the tenant's own is trusted"},
	"sources":            {why: "how the tenant's own queues are reached, with secrets that are shown once; the audit log tells of changes"},
	"source_positions":   {why: "how far each topic was read"},
	"source_messages":    {why: "digests that expire within weeks"},
	"outbox":             {why: passing + ". It is an event within seconds"},
	"queue":              {why: passing},
	"lanes":              {why: passing},
	"listeners":          {why: passing},
	"handed_out":         {why: passing},
	"quota_buckets":      {why: passing},
	"tenant_moves":       {why: passing},
	"tenant_move_marks":  {why: passing},
	"moved_tenants":      {why: "tenants that are in another home"},
}

// A new table fails this test until somebody has decided both.
func TestEachTableOfTenantsIsExportedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	database, s := newScene(t)
	w := startWorld(t, t.Cleanup, database, database)
	files := unpacked(t, w.do("POST", "/api/v1/tenants/"+s.TenantB+"/export", s.Platform, nil).want(200).Body)
	held := w.belongings(s.TenantB)
	var tables []string
	w.Connection(func(c *pgx.Conn) error {
		tables = guarded(t, c)
		return nil
	})
	taken := []string{"manifest.json"}
	for _, table := range tables {
		f, ok := tableRules[table]
		if !ok || (f.file == "") == (f.why == "") {
			t.Errorf("of %s nobody has said whether a tenant takes it along, and in which file, or why not: %+v", table, f)
			continue
		}
		if f.file == "" {
			continue
		}
		taken = append(taken, f.file)
		if lines, there := files[f.file]; !there || held[table] != "" && len(lines) == 0 {
			t.Errorf("%s holds something of the tenant, and %s of its export does not", table, f.file)
		}
	}
	for table := range tableRules {
		if !slices.Contains(tables, table) {
			t.Errorf("there is no table %s", table)
		}
	}
	for file, lines := range files {
		if !slices.Contains(taken, file) {
			t.Errorf("of %s nobody has said which table is in it", file)
		}
		if len(lines) == 0 {
			t.Errorf("the prepared tenant has nothing for %s: it proves less than it should", file)
		}
	}
	if jobs := files["bulk_jobs.ndjson"]; len(jobs) > 0 && (jobs[0]["kind"] != "replay" || jobs[0]["reason"] == "") {
		t.Errorf("%v", jobs[0])
	}
	for _, l := range files["portal_links.ndjson"] {
		if l["brand_name"] != s.TenantB || l["url"] != nil {
			t.Errorf("%v", l)
		}
	}
	for _, r := range files["rejected.ndjson"] {
		if r["code"] != "a" || r["data"] != 1.0 {
			t.Errorf("%v", r)
		}
	}
}
