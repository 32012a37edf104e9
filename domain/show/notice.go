package show

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// Notice is a message to a tenant.
type Notice struct {
	ID        id.UUID
	Kind      notice.Kind
	Endpoint  *id.UUID // nil: concerns none
	Details   json.RawMessage
	CreatedAt time.Time
	Unread    bool // by the member who asked
}

// About says in words what the notice concerns, and why it was sent: each can be empty. delivery is the id of the
// delivery that it concerns, if any.
func (n Notice) About() (subject, detail, delivery string) {
	var d struct{ URL, Description, Reason, Delivery, Name, Action, Day string }
	_ = json.Unmarshal(n.Details, &d) // fields that a kind lacks stay empty
	if d.Reason != "" {
		d.Reason = "Reason: " + strings.ReplaceAll(d.Reason, "_", " ")
	}
	return cmp.Or(d.Description, d.URL, d.Name, d.Day), cmp.Or(d.Action, d.Reason), d.Delivery
}
