package admin_test

import (
	"regexp"
	"strings"
	"testing"

	"posthorn/db"
	"posthorn/domain/id"
	"posthorn/views/components"
)

// TestTheConsolesAuditLogNamesWhatWasRenamedOrDeleted: an entry shows its object's name now, or the last that the log
// knows, with the id beside it.
func TestTheConsolesAuditLogNamesWhatWasRenamedOrDeleted(t *testing.T) {
	t.Parallel()
	w := newConsole(t)
	tenant := w.tenant("Acme")
	renamed, deleted := w.endpoint(tenant, "https://a.example/in", "active", 0), w.endpoint(tenant, "https://b.example/in?key=hidden", "active", 0)
	member := id.Member.Format(db.NewID())
	by := db.Author{Kind: "operator", ID: id.Operator.Format(w.op)}
	if err := w.db.Console(t.Context(), func(q *db.Tx) error {
		for _, entry := range []db.Audited{
			{Tenant: &tenant, Action: "endpoint.paused", Kind: "endpoint", Object: id.Endpoint.Format(renamed)},
			{Tenant: &tenant, Action: "endpoint.deleted", Kind: "endpoint", Object: id.Endpoint.Format(deleted)},
			{Tenant: &tenant, Action: "member.removed", Kind: "member", Object: member, Details: map[string]string{"email": "former@example.com"}},
		} {
			if err := db.Audit(t.Context(), q, by, entry); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.exec("UPDATE endpoints SET description = 'Orders, renamed' WHERE id = $1", renamed)
	w.exec("UPDATE endpoints SET deleted_at = now() WHERE id = $1", deleted)
	page := w.page("/console/audit?tenant=" + id.Tenant.Format(tenant))
	rows := regexp.MustCompile(`(?s)<tr>.*?</tr>`).FindAllString(page, -1)
	for object, name := range map[string]string{
		id.Endpoint.Format(renamed): "Orders, renamed",
		id.Endpoint.Format(deleted): "https://b.example/in?key=***",
		member:                      "former@example.com",
	} {
		found := false
		for _, row := range rows {
			beside := `title="` + object + `">` + components.ShortID(object) + "<"
			found = found || strings.Contains(row, ">"+name+"<") && strings.Contains(row, beside) &&
				strings.Contains(row, "Operator Olga")
		}
		if !found {
			t.Errorf("no row names %s with %s beside it: %s", name, object, page)
		}
	}
	if strings.Contains(page, "key=hidden") {
		t.Error("the page shows the secret of a URL")
	}
}
