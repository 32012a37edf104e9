package pages

import (
	"time"

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

// AuditRow is one thing that was done.
type AuditRow struct {
	ID                 string
	At                 time.Time
	Action             string
	Who, WhoID         string
	ObjectKind, Object string
	Link               string // where the object is; empty: nowhere
	Address, Reason    string
	Details            []Fact
}

func (v AuditView) empty() bool { return v.Action == "" && v.Since == "" && v.Until == "" }
