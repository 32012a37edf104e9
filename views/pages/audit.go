package pages

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"posthorn/domain/bulk"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// AuditView is a page of the audit log.
type AuditView struct {
	Shell                layout.Shell
	Root                 string
	Action, Since, Until string
	Actions              []string
	Wrong                map[string]string
	Rows                 []AuditRow
	Newer, Older         string
	Short                bool
}

// AuditRow is one entry.
type AuditRow struct {
	ID                 string
	At                 time.Time
	Action             string
	Who, WhoID         string
	ObjectKind, Object string
	Name               string // of the object; empty if unknown
	Link               string // the address of the object; empty: none
	Address, Reason    string
	Details            []Fact
}

func (v AuditView) empty() bool { return v.Action == "" && v.Since == "" && v.Until == "" }

// title is the object's name; without a name, its kind.
func (r AuditRow) title() string { return cmp.Or(r.Name, components.Sentence(r.ObjectKind)) }

// ActorName is an author's name on pages; empty where it is unknown.
func ActorName(kind, name string) string {
	if kind == "key" && name != "" {
		return "API key “" + name + "”"
	}
	return name
}

// selfNamed are the kinds of objects whose id in the audit log is their name.
var selfNamed = []string{"event_type", "page", "domain", "books"}

// ObjectName is the object's present name, or the name in the entry if the object was deleted since. It is empty if
// neither is known.
func ObjectName(kind, object string, names map[string]string, details json.RawMessage) string {
	name := names[object]
	switch {
	case slices.Contains(selfNamed, kind):
		return object
	case name == "":
		var said struct{ Name, Email string }
		_ = json.Unmarshal(details, &said)
		return cmp.Or(said.Name, said.Email)
	case kind == "bulk_job":
		return JobName(bulk.Kind(name))
	}
	return name
}
