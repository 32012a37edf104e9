// Package console is what operators see, each page beside its view model.
package console

import (
	"strconv"
	"time"

	"posthorn/domain/books"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// OverviewView is the operators' first page: what runs, what waits, who waits the longest.
type OverviewView struct {
	Shell         layout.Shell
	Tenants       int64
	Suspended     int64
	Endpoints     int64
	DisabledToday int64
	BreakersOpen  int64
	Workers       int64
	Waiting       int64
	WaitingMost   bool // at least so many
	DeadLetters   int64
	MailsFailed   int64
	Oldest        []OldestLine
}

// OldestLine is a tenant with deliveries that are ready.
type OldestLine struct {
	Tenant, Path string
	ReadyFor     time.Duration
	Lanes        int64
}

// Late is how long a delivery may be ready before operators should look (DESIGN section 13: outbox_lag_seconds over 300).
const Late = 5 * time.Minute

func (l OldestLine) tone() components.Tone {
	if l.ReadyFor > Late {
		return components.Bad
	}
	return components.Neutral
}

func (v OverviewView) waiting() string {
	if v.WaitingMost {
		return components.Count(v.Waiting) + "+"
	}
	return components.Count(v.Waiting)
}

// tone is bad where the number is not what it should be.
func tone(bad bool, how components.Tone) components.Tone {
	if bad {
		return how
	}
	return components.Neutral
}

// TenantsView lists tenants for operators.
type TenantsView struct {
	Shell        layout.Shell
	Part, State  string // as narrowed down
	Tenants      []TenantLine
	Next         string
	Name         components.FieldProps
	Wrong        string
	NewKey       string // of the tenant that was just made, shown once
	NewTenant    string
	NewTenantURL string
}

// TenantLine is one tenant.
type TenantLine struct {
	Name, Path          string
	Suspended           bool
	Endpoints, Disabled int64
	Waiting             string
	Created             time.Time
}

func (v TenantsView) narrowed() bool { return v.Part != "" || v.State != "" }

// TenantView is one tenant, for operators.
type TenantView struct {
	Shell     layout.Shell
	ID, Name  string
	Path      string
	Suspended bool
	Created   time.Time
	Strict    bool
	Endpoints []EndpointLine
	Books     []BookLine
	Reason    components.FieldProps
	View      ViewForm
	End       EndForms
	Usage     components.UsageProps
	Limits    LimitsForm
}

// EndForms take a tenant's data along and delete it.
type EndForms struct {
	Export       components.FieldProps // why it is taken along
	Exported     time.Time             // when it was last sent whole; zero: not within a day
	Name, Reason components.FieldProps // of the deletion
}

// ViewForm asks for a look at a tenant's dashboard.
type ViewForm struct {
	Reason components.FieldProps
	Lives  []components.Option
	Wrong  string // about the time
}

// EndpointLine is one endpoint as operators see it, its URL without the values of its query.
type EndpointLine struct {
	ID, URL, Status string
	Since           time.Time
	Reason          string
}

// HostsView is endpoint health by host.
type HostsView struct {
	Shell layout.Shell
	Part  string
	Hosts []HostLine
	Most  bool // there are more
}

// HostLine is one host that endpoints point to.
type HostLine struct {
	Host                                                        string
	Endpoints, Tenants, Active, Disabled, BreakersOpen, Failing int64
	LastFailure                                                 time.Time // zero: none
}

func (l HostLine) tone() components.Tone {
	switch {
	case l.BreakersOpen > 0 || l.Disabled > 0:
		return components.Bad
	case l.Failing > 0:
		return components.Warning
	}
	return components.Good
}

func (l HostLine) word() string {
	return map[components.Tone]string{components.Bad: "down", components.Warning: "failing", components.Good: "well"}[l.tone()]
}

// QueueView is what waits and who works on it.
type QueueView struct {
	Shell   layout.Shell
	Workers []WorkerLine
	Shares  []ShareLine
	Lanes   []LaneLine
}

// ShareLine is what a tenant had of the workers in the last ten minutes.
type ShareLine struct {
	Tenant, TenantPath           string
	Endpoints                    int64
	Attempts, OfAttempts         int64
	Microseconds, OfMicroseconds int64 // that its requests took, and those of all
}

func (l ShareLine) share() string { return percent(l.Microseconds, l.OfMicroseconds) }

func (l ShareLine) attempts() string {
	return number(l.Attempts) + " (" + percent(l.Attempts, l.OfAttempts) + ")"
}

// slots is how many of its requests were under way on average: their time over ten minutes.
func (l ShareLine) slots() string {
	return strconv.FormatFloat(float64(l.Microseconds)/600e6, 'f', 1, 64)
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// WorkerLine is one worker.
type WorkerLine struct {
	ID, Name string
	Dead     bool
	Started  time.Time
	Lanes    int64
}

// LaneLine is one lane with a backlog.
type LaneLine struct {
	Tenant, TenantPath string
	Endpoint, URL      string
	State              string
	Tone               components.Tone
	Waiting, Ready     int64
	Oldest             time.Time
	Owner              string
}

// JobsView is what was asked to be done in bulk, and the periodic jobs.
type JobsView struct {
	Shell  layout.Shell
	Jobs   []JobLine
	Next   string
	Chores []ChoreLine
}

// JobLine is one bulk job.
type JobLine struct {
	ID, Kind, State, Tenant, TenantPath string
	Tone                                components.Tone
	Done, Expected                      int64
	Reason, Failure                     string
	Created                             time.Time
}

// ChoreLine is one periodic job.
type ChoreLine struct {
	Name string
	Done time.Time
}

// MailsView is the log of mails.
type MailsView struct {
	Shell layout.Shell
	State string
	Mails []MailLine
	Next  string
	Root  string
}

// MailLine is one mail. Of its recipient's address the console shows enough to recognise it.
type MailLine struct {
	ID, Recipient, Kind, State, Tenant, Error string
	Tone                                      components.Tone
	Tries                                     int
	Created                                   time.Time
	Again                                     bool // may be sent again
}

// BooksView is the books beside what waits.
type BooksView struct {
	Shell       layout.Shell
	Days        int
	Lines       []BookLine
	Differences int
	Most        bool // there are more
	Found       []BookFinding
	Checks      []BookCheckLine
}

// BookFinding is a page of the books that was found to differ from the tables.
type BookFinding struct {
	Tenant, TenantPath string
	Day                time.Time
	Amount             int64
	Found              time.Time
	Ended              *time.Time // since when it agrees again; nil: it differs
	books.Finding
}

// BookCheckLine is how far a check has come.
type BookCheckLine struct {
	Name  string
	Day   time.Time
	Pages int64
	Since time.Time // when its round began
}

func (l BookCheckLine) words() string {
	if l.Name == "recent" {
		return "yesterday and today"
	}
	return "the days before"
}

func pageWords(p books.Page) string {
	return number(p.Accepted) + " accepted, " + number(p.Delivered) + " delivered, " + number(p.Failed) + " failed, " + number(p.Canceled) + " canceled, " +
		number(p.Waiting) + " waiting, " + number(p.Queued) + " in the queue"
}

// BookLine is a tenant's books of the deliveries created in one UTC day. Difference must be 0.
type BookLine struct {
	Tenant, TenantPath                                             string
	Day                                                            time.Time
	Accepted, Delivered, Failed, Canceled, Waiting, Held, Expunged int64
	Difference                                                     int64
}

// AuditView is the audit log of the whole platform.
type AuditView struct {
	Shell         layout.Shell
	Action, Actor string
	Lines         []AuditLine
	Next          string
}

// AuditLine is one entry of an audit log.
type AuditLine struct {
	At                                                 time.Time
	Actor, ActorID, Action, Object, Tenant, TenantPath string
	Address, Reason                                    string
}

func number(n int64) string { return components.Count(n) }

func times(n int) string { return strconv.Itoa(n) }

func bookColumns(tenants bool) []components.Column {
	columns := []components.Column{{Label: "Day"}}
	if tenants {
		columns = append(columns, components.Column{Label: "Tenant"})
	}
	for _, label := range []string{"Accepted", "Delivered", "Failed", "Canceled", "Waiting", "Difference"} {
		columns = append(columns, components.Column{Label: label, Number: true})
	}
	return columns
}

// cleared is where a list is shown whole again; empty where it is.
func cleared(narrowed bool, path string) string {
	if !narrowed {
		return ""
	}
	return path
}

func endpointTone(status string) components.Tone {
	switch status {
	case "active":
		return components.Good
	case "disabled":
		return components.Bad
	case "unverified":
		return components.Warning
	}
	return components.Neutral
}
