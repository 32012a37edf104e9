package dashboard_test

import (
	"testing"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestTheAuditLogNamesMembersAndKeys(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	w.add()
	w.things(w.tn)
	key := id.UUID(one[[16]byte](w.world, "SELECT id FROM api_keys WHERE tenant_id = $1 AND name = 'k'", w.tn.id.String()))
	err := w.db.Tenant(t.Context(), w.tn.id, func(q *sql.Queries) error {
		return db.Audit(t.Context(), q, db.Author{Kind: "key", ID: id.Key.Format(key), Address: "192.0.2.9"}, db.Audited{Tenant: &w.tn.id, Action: "endpoint.pause", Kind: "endpoint"})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.as(access.Viewer).get(w.root+"/audit-log").want(200, "A owner (owner-", "API key k", "192.0.2.9").keep("audit-names")
	w.portalSession(w.tn, access.Viewer).get(w.root+"/audit-log").want(200, "endpoint.create").lacks("A owner", "owner-", "192.0.2.9")
}
