package dashboard_test

import (
	"testing"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/id"
)

func TestTheAuditLogNamesObjectsAndAuthors(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	w.add()
	w.things(w.tn)
	key := id.UUID(one[[16]byte](w.world, "SELECT id FROM api_keys WHERE tenant_id = $1 AND name = 'k'", w.tn.id.String()))
	err := w.db.Tenant(t.Context(), w.tn.id, func(q *db.Tx) error {
		by := db.Author{Kind: "key", ID: id.Key.Format(key), Address: "192.0.2.9"}
		removed := db.Audited{
			Tenant:  &w.tn.id,
			Action:  "member.removed",
			Kind:    "member",
			Object:  id.Member.Format(db.NewID()),
			Details: map[string]string{"email": "former@example.com"},
		}
		if err := db.Audit(t.Context(), q, by, removed); err != nil {
			return err
		}
		event := id.UUID(one[[16]byte](w.world, "SELECT id FROM events WHERE tenant_id = $1 LIMIT 1", w.tn.id.String()))
		return db.Audit(t.Context(), q, by, db.Audited{
			Tenant: &w.tn.id,
			Action: "event.replay",
			Kind:   "event",
			Object: id.Event.Format(event),
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.as(access.Viewer).get(w.root+"/audit-log").want(200, "A owner (owner-", "API key “k”", "192.0.2.9", ">Orders, production</a>", ">Replay deliveries</a>", ">former@example.com</span>", ">order.paid</a>", ">Endpoint created</").keep("audit-names")
	w.portalSession(w.tn, access.Viewer).get(w.root+"/audit-log").want(200, "endpoint.create").lacks("A owner", "owner-", "192.0.2.9", "API key")
}
