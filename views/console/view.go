// Package console is what operators see, each page beside its view model.
package console

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/incidents"
	"posthorn/domain/reconcile"
	"posthorn/views/components"
	"posthorn/views/layout"
	"posthorn/views/pages"
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
	Rejected      int64
	Findings      []FindingLine
	Oldest        []OldestLine
	Hosts         []HostLine // that fail
	Loads         []LoadLine
}

// FindingLine is something to look at, with where to.
type FindingLine struct {
	incidents.Finding
	Links []components.LinkProps
}

// OldestLine is a tenant with deliveries that are ready, and the lane of the oldest.
type OldestLine struct {
	Tenant, Path         string
	ReadyFor             time.Duration
	Lanes                int64
	URL, Endpoint, Owner string
}

// LoadLine is what a tenant has of the workers and of what waits.
type LoadLine struct {
	incidents.Load
	Path, ID string
	Waiting  int64
}

// Compare puts who has more first.
func (l LoadLine) Compare(o LoadLine) int {
	return cmp.Or(cmp.Compare(max(o.Slots, o.Queue), max(l.Slots, l.Queue)), cmp.Compare(o.Waiting, l.Waiting),
		cmp.Compare(l.Tenant, o.Tenant))
}

func (l OldestLine) tone() components.Tone {
	if l.ReadyFor > incidents.Late {
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
	Sort         string // name, waiting; else the newest first
	Tenants      []TenantLine
	Most         bool // there are more, on no further page
	Next         string
	Name         components.FieldProps
	NewKey       string // of the tenant that was just made, shown once
	NewTenant    string
	NewTenantURL string
	Elsewhere    []FoundLine // tenants of other homes that the search has found
	Silent       []string    // other homes that did not respond to the search
}

// TenantLine is one tenant.
type TenantLine struct {
	Name, Path          string
	Suspended           bool
	Endpoints, Disabled int64
	Waiting             string
	Created             time.Time
}

func (v TenantsView) narrowed() bool { return v.Part != "" || v.State != "" || v.Sort != "" }

// TenantView is one tenant, for operators.
type TenantView struct {
	Shell     layout.Shell
	ID, Name  string
	Path      string
	Pause     string // the form that pauses it
	Suspended bool
	Suspension
	Created   time.Time
	Strict    bool
	Endpoints []EndpointLine
	Ledger    []LedgerLine
	Reason    components.FieldProps
	View      ViewForm
	End       EndForms
	Usage     components.UsageProps
	Limits    LimitsForm
}

// Suspension is who suspended a tenant, why and when; zero where that is not known.
type Suspension struct {
	By, Reason string
	At         time.Time
}

// wrong is what was refused in one of the forms of the page.
func (v TenantView) wrong() []components.Wrong {
	minutes := components.FieldProps{Name: "minutes", Error: v.View.Wrong}
	fields := []components.FieldProps{
		v.Reason, v.View.Reason, minutes, v.End.Export, v.End.Name, v.End.Reason,
		v.Limits.Retention,
	}
	return append(wrongIn(fields...), wrongSettings(v.Limits.Groups)...)
}

// ActView asks why something is to be changed in a tenant that is looked at.
type ActView struct {
	Shell      layout.Shell
	Tenant, ID string
	Reason     components.FieldProps
}

// EndForms take a tenant's data along and delete it.
type EndForms struct {
	Export       components.FieldProps // why it is taken along
	Exported     *time.Time            // when the export was sent that stands for what it has; nil: none does
	Name, Reason components.FieldProps // of the deletion
}

// ViewForm asks for a look at a tenant's dashboard.
type ViewForm struct {
	Reason components.FieldProps
	Lives  []components.Option
	Wrong  string // about the time
}

// HostsView is endpoint health by host.
type HostsView struct {
	Shell layout.Shell
	Part  string
	State string // failing, or all
	Hosts []HostLine
	Most  bool // there are more
}

// HostLine is one host that endpoints point to.
type HostLine struct {
	incidents.Host
	Href, Pause string    // its endpoints, and the form that pauses it
	LastFailure time.Time // zero: none
}

func (l HostLine) tone() components.Tone {
	switch l.State() {
	case incidents.HostDown:
		return components.Bad
	case incidents.HostPartly, incidents.HostFailing:
		return components.Warning
	case incidents.HostPaused, incidents.HostOff:
		return components.Neutral
	}
	return components.Good
}

// SickView is the endpoints of all tenants that fail, or all at one host.
type SickView struct {
	Shell     layout.Shell
	Host      string
	Endpoints []EndpointLine
	Most      bool // there are more
}

// EndpointLine is one endpoint as operators see it, its URL without the values of its query.
type EndpointLine struct {
	ID, URL, Tenant, TenantPath, Pause string
	Condition                          condition.Condition
	Failures                           int32 // in a row
	LastStatus                         int
	LastFailure                        delivery.Failure
	FailedAt                           time.Time // zero: never
}

// ownerActions are what members of an endpoint's tenant can do about its condition, as their buttons say it.
func ownerActions(c condition.Condition) string {
	var labels []string
	for _, a := range c.Actions() {
		label := strings.TrimSuffix(a.Label(), " ...")
		labels = append(labels, strings.ToLower(label[:1])+label[1:])
	}
	return strings.Join(labels, ", or ")
}

// QueueView is what waits and who works on it.
type QueueView struct {
	Shell   layout.Shell
	Ages    [4]AgeLine // up to five minutes, an hour, a day, and older
	Workers []WorkerLine
	Shares  []ShareLine
	Lanes   []LaneLine
}

// AgeLine is what waits of some age, and what of it could be sent now.
type AgeLine struct{ Waiting, Ready int64 }

var ageLabels = [4]string{"Up to 5 minutes", "Up to an hour", "Up to a day", "Older than a day"}

func (l AgeLine) note() string { return number(l.Ready) + " ready to send" }

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
		return "0%"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + "%"
}

// WorkerLine is one worker.
type WorkerLine struct {
	ID, Name string
	Dead     bool // and declared so
	Silent   bool // for longer than its beat may take
	Started  time.Time
	Beat     time.Time // the last; zero: not known
	Lanes    int64
}

func (l WorkerLine) state() (components.Tone, string) {
	switch {
	case l.Dead:
		return components.Bad, "dead: its lanes are released"
	case l.Silent:
		return components.Bad, "silent"
	}
	return components.Good, "alive"
}

// LaneLine is one lane with a backlog.
type LaneLine struct {
	Tenant, TenantPath string
	Endpoint, URL      string
	Condition          condition.Condition
	Waiting, Ready     int64
	Oldest             time.Time
	Owner              string
	Leased             time.Time // since when it holds it; zero: not known
	Pause              string    // the form that pauses the endpoint
}

// JobsView is what was asked to be done in bulk, and the periodic jobs.
type JobsView struct {
	Shell         layout.Shell
	State         string
	Tenant, Wrong string // as narrowed down, and what of it can't be read
	Jobs          []JobLine
	Next          string
	Periodic      []PeriodicLine
}

// JobLine is one bulk job.
type JobLine struct {
	ID, Kind, State, Tenant, TenantPath string
	Tone                                components.Tone
	Done, Expected                      int64
	Reason, Failure                     string
	Created                             time.Time
}

// PeriodicLine is one periodic job.
type PeriodicLine struct {
	Name string
	Done time.Time
}

// periodicWords say what periodic jobs are for.
var periodicWords = map[string]string{
	"assess health":           "Warns about failing endpoints, and disables those that fail for too long.",
	"check the books: recent": "Compares the ledger of yesterday and today with the deliveries.",
	"digests":                 "Sends daily digests to those who subscribed.",
	"expire held deliveries":  "Fails deliveries that were held for too long.",
	"fold":                    "Aggregates results for the ledger and the charts.",
	"fold hours":              "Aggregates minutes into hours for the charts.",
	"forget expired sessions": "Deletes expired sessions and links.",
	"outbox":                  "Creates events from what was emitted in SQL.",
	"overdue deliveries":      "Emails the operators when a tenant's deliveries are overdue.",
}

func (l PeriodicLine) words() string {
	if strings.HasPrefix(l.Name, "check the books") {
		return cmp.Or(periodicWords[l.Name], "Compares the ledger of earlier days with the deliveries.")
	}
	return periodicWords[l.Name]
}

// MailsView is the log of mails.
type MailsView struct {
	Shell         layout.Shell
	State         string
	Tenant, Wrong string // as narrowed down, and what of it can't be read
	Mails         []MailLine
	Next          string
	Root          string
}

// MailLine is one mail. Of its recipient's address the console shows enough to recognise it.
type MailLine struct {
	ID, Recipient, Kind, State, Tenant, TenantPath, Error string
	Tone                                                  components.Tone
	Tries                                                 int
	Created                                               time.Time
	Again                                                 bool // may be sent again
}

// LedgerView is the books beside what waits.
type LedgerView struct {
	Shell       layout.Shell
	Days        int
	Lines       []LedgerLine
	Differences int
	Most        bool // there are more
	Found       []Discrepancy
	Checks      []ReconcileLine
}

// Discrepancy is a page of the books that was found to differ from the tables.
type Discrepancy struct {
	Tenant, TenantPath string
	Day                time.Time
	Amount             int64
	Found              time.Time
	Ended              *time.Time // since when it agrees again; nil: it differs
	Open               bool       // nobody has accepted it
	Accepted           time.Time  // when somebody did; zero: nobody
	By, Reason         string     // who, and why
	ID, Gap, Accept    string     // of the form that accepts it: names the page, what differs, where it goes
	ReasonInput        components.ReasonInput
	reconcile.Finding
}

// open is on how many pages the tables differ and nobody has accepted it.
func (v LedgerView) open() (n int64) {
	for _, f := range v.Found {
		if f.Open {
			n++
		}
	}
	return n
}

// excepted says on how many pages somebody has accepted that the tables differ.
func (v LedgerView) excepted() string {
	n := int64(0)
	for _, f := range v.Found {
		if f.Ended == nil && !f.Open {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return ", except for discrepancies on " + components.Many(n, "page", "pages") + " that were accepted"
}

// ReconcileLine is how far a check has come.
type ReconcileLine struct {
	Name  string
	Day   time.Time
	Pages int64
	Since time.Time // when its round began
}

func (l ReconcileLine) words() string {
	if l.Name == "recent" {
		return "yesterday and today"
	}
	return "earlier days"
}

func pageWords(p reconcile.Page) string {
	words := number(p.Accepted) + " accepted, " + number(p.Delivered) + " delivered, " + number(p.Failed) + " failed, " + number(p.Canceled) + " canceled, " +
		number(p.Waiting) + " waiting, " + number(p.Queued) + " in the queue"
	if p.Events > 0 {
		words += ", of " + components.Many(p.Events, "event", "events")
	}
	return words
}

// LedgerLine is a tenant's books of the deliveries created in one UTC day. Difference must be 0.
type LedgerLine struct {
	Tenant, TenantPath                                             string
	Day                                                            time.Time
	Accepted, Delivered, Failed, Canceled, Waiting, Held, Expunged int64
	// what was accepted, less what has ended and what waits
	Difference int64
	// deliveries by which the tables differ, as the job found
	FromTables int64
}

// AuditView is the audit log of the whole platform.
type AuditView struct {
	Shell         layout.Shell
	Action, Actor string
	Tenant, Wrong string // as narrowed down, and what of it can't be read
	Lines         []AuditLine
	Next          string
}

// AuditLine is one entry of an audit log.
type AuditLine struct {
	At                                                                        time.Time
	Actor, ActorID, ActorName, Action, Object, ObjectName, Tenant, TenantPath string
	Address, Reason                                                           string
}

func number(n int64) string { return components.Count(n) }

func times(n int) string { return strconv.Itoa(n) }

func ledgerColumns(tenants bool) []components.Column {
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

func endpointColumns(tenants bool) []components.Column {
	columns := []components.Column{{Label: "Endpoint"}}
	if tenants {
		columns = append(columns, components.Column{Label: "Tenant"})
	}
	return append(columns, components.Column{Label: "State"}, components.Column{Label: "Failures in a row", Number: true},
		components.Column{Label: "Last failure"}, components.Column{Label: "Next probe"}, components.Column{
			Label: "Pause", HideLabel: true, Shrink: true,
		})
}

// who is the author's name; operators are marked, who act for any tenant.
func (l AuditLine) who() string {
	if l.Actor == "operator" {
		return "Operator " + l.ActorName
	}
	return pages.ActorName(l.Actor, l.ActorName)
}
