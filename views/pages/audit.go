package pages

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"posthorn/domain/bulk"
	"posthorn/domain/show"
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
	Rows                 []show.AuditEntry
	Newer, Older         string
	Short                bool
}

func (v AuditView) empty() bool { return v.Action == "" && v.Since == "" && v.Until == "" }

// objectPages are the paths of objects by kind.
var objectPages = map[string]string{
	"delivery": "/deliveries/",
	"event":    "/events/",
	"endpoint": "/endpoints/",
	"bulk_job": "/bulk-jobs/",
}

// link is the address of an entry's object; empty: none.
func (v AuditView) link(e show.AuditEntry) string {
	to := objectPages[e.ObjectKind]
	if to == "" || e.ObjectID == "" || e.Action == "endpoint.deleted" {
		return ""
	}
	return v.Root + to + e.ObjectID
}

// author is who did what an entry records.
func author(e show.AuditEntry) string {
	if e.Actor == "" && e.ActorName != "" {
		return "Operator " + e.ActorName
	}
	return cmp.Or(ActorName(e.ActorKind, e.Actor), components.Sentence(e.ActorKind))
}

// ObjectName is the name of an entry's object; empty if it is unknown.
func ObjectName(e show.AuditEntry) string {
	if e.ObjectKind == "bulk_job" && e.Object != "" {
		return JobName(bulk.Kind(e.Object))
	}
	return e.Object
}

// title is the object's name; without a name, its kind.
func title(e show.AuditEntry) string { return cmp.Or(ObjectName(e), components.Sentence(e.ObjectKind)) }

// detailShown bounds how many characters of one detail a row shows.
const detailShown = 200

// details are the other fields of an entry, by name.
func details(e show.AuditEntry) (out []Fact) {
	var in map[string]any
	_ = json.Unmarshal(e.Details, &in) // an entry without details
	for name, value := range in {
		text, ok := value.(string)
		if encoded, err := json.Marshal(value); !ok && err == nil && value != nil {
			text = string(encoded)
		}
		if text == "" {
			continue
		}
		if cut := []rune(text); len(cut) > detailShown {
			text = string(cut[:detailShown]) + "…"
		}
		out = append(out, Fact{Label: strings.ReplaceAll(name, "_", " "), Value: text})
	}
	slices.SortFunc(out, func(a, b Fact) int { return strings.Compare(a.Label, b.Label) })
	return out
}

// ActorName is an author's name on pages; empty where it is unknown.
func ActorName(kind, name string) string {
	if kind == "key" && name != "" {
		return "API key “" + name + "”"
	}
	return name
}
