// Package console holds the operators' pages, each beside its view model.
package console

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/bulk"
	"posthorn/domain/condition"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/reconcile"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

// OverviewView is the operators' first page: the processes, the waiting deliveries, and the tenants that wait longest.
type OverviewView struct {
	Shell         layout.Shell
	Tenants       int64
	Suspended     int64
	Endpoints     int64
	DisabledToday int64
	BreakersOpen  int64
	Workers       int64
	Waiting       int64
	WaitingMost   bool // Waiting is a lower bound
	DeadLetters   int64
	MailsFailed   int64
	Rejected      int64
	Findings      []FindingLine
	Oldest        []OldestLine
	Hosts         []HostLine // failing ones
	Loads         []LoadLine
}

// FindingLine is an incident, with a link to its object.
type FindingLine struct {
	incidents.Finding
	Links []components.LinkProps
}

// OldestLine is a tenant with ready deliveries, and the lane of the oldest.
type OldestLine struct {
	Tenant, Path               string
	ReadyFor                   time.Duration
	Lanes                      int64
	Name, URL, Endpoint, Owner string
}

// LoadLine is a tenant's share of the workers and of the waiting deliveries.
type LoadLine struct {
	show.TenantLoad
	Path string
}

// slots is how much of the workers' capacity the tenant used.
func (l LoadLine) slots() string { return average(l.InFlight) + " of " + number(l.Capacity) }

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

// tone is Bad if the number is not what it should be.
func tone(bad bool, how components.Tone) components.Tone {
	if bad {
		return how
	}
	return components.Neutral
}

// TenantsView lists tenants for operators.
type TenantsView struct {
	Shell        layout.Shell
	Part, State  string // as in the filter
	Sort         string // newest, name, waiting; default most failing first
	Tenants      []show.TenantLine
	Wrong        map[string]string // of the filter
	Most         bool              // there are more, but no further page
	Next         string
	Name         components.FieldProps
	NewKey       string // of a new tenant, shown once
	NewTenant    string
	NewTenantURL string
}

// waiting is how many deliveries of a tenant wait.
func waiting(n int64) string {
	if n > show.MaxWaiting {
		return number(show.MaxWaiting) + "+"
	}
	return number(n)
}

func (v TenantsView) narrowed() bool { return v.Part != "" || v.State != "" || v.Sort != "" }

// TenantView is one tenant, for operators.
type TenantView struct {
	Shell layout.Shell
	show.Tenant
	Path  string
	Pause string // the form that pauses the tenant
	Proxy string // the form of its egress proxy
	Suspension
	show.Activity
	Open      string // the dialog that is open: view-as
	Endpoints []EndpointLine
	Ledger    []show.Books
	Reason    components.FieldProps
	View      ViewForm
	End       EndForms
	Usage     components.UsageProps
	Limits    LimitsForm
}

// Suspension is who suspended a tenant, why and when; zero if that is not known.
type Suspension struct {
	By, Reason string
	At         time.Time
}

// menu are the actions that are not in the first row.
func (v TenantView) menu() []components.MenuItem {
	tenant := "?tenant=" + id.Tenant.Format(v.ID)
	state := components.MenuItem{Label: "Suspend", Icon: icons.Warning, Opens: "state", Danger: true}
	if v.Suspended() {
		state = components.MenuItem{Label: "Resume", Icon: icons.Play, Opens: "state"}
	}
	return []components.MenuItem{
		{Label: "Audit log", Icon: icons.Audit, Href: "/console/audit" + tenant},
		{Label: "Pause deliveries", Icon: icons.Pause, Href: v.Pause},
		{Label: "Export", Icon: icons.Archive, Opens: "export"},
		state,
	}
}

// reasonInput is the reason of a rejected form.
func reasonInput(p components.FieldProps) components.ReasonInput {
	return components.ReasonInput{Reason: p.Value, Wrong: p.Error}
}

// wrong are the errors of the page's forms.
func (v TenantView) wrong() []components.Wrong {
	minutes := components.FieldProps{Name: "minutes", Error: v.View.Wrong}
	fields := []components.FieldProps{
		v.Reason, v.View.Reason, minutes, v.End.Export, v.End.Name, v.End.Reason,
		v.Limits.Retention,
	}
	return append(wrongIn(fields...), wrongSettings(v.Limits.Groups)...)
}

// ActView asks for the reason before an operator changes something in a tenant's dashboard.
type ActView struct {
	Shell      layout.Shell
	Tenant, ID string
	Reason     components.FieldProps
}

// EndForms are the forms that export and delete a tenant.
type EndForms struct {
	Export       components.FieldProps // the reason for the export
	Exported     *time.Time            // when the export was sent that permits the deletion; nil: none
	Name, Reason components.FieldProps // of the deletion form
}

// ViewForm requests a view of a tenant's dashboard.
type ViewForm struct {
	Reason components.FieldProps
	Lives  []components.Option
	Wrong  string // the error of the duration
}

// HostsView is endpoint health by host.
type HostsView struct {
	Shell layout.Shell
	Part  string
	State string // failing, or all
	Hosts []HostLine
	Most  bool // there are more
}

// HostLine is one host of endpoints.
type HostLine struct {
	incidents.Host
	Href, Pause string // its endpoints, and the form that pauses it
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

// SickView lists the failing endpoints of all tenants, or all endpoints at one host.
type SickView struct {
	Shell     layout.Shell
	Host      string
	Endpoints []EndpointLine
	Most      bool // there are more
}

// EndpointLine is one endpoint as operators see it.
type EndpointLine struct {
	show.PlatformEndpoint
	Pause string // the form that pauses it
}

// tenantCan says what the members of the endpoint's tenant can do about its condition.
func (e EndpointLine) tenantCan() string {
	if len(e.Condition.Actions()) == 0 {
		return e.Condition.Detail()
	}
	return strings.TrimSpace(e.Condition.Detail() + " The tenant can " + ownerActions(e.Condition) + ".")
}

// ownerActions are the actions on the endpoint's condition that members of its tenant have, as their buttons name them.
func ownerActions(c condition.Condition) string {
	text := ""
	for i, a := range c.Actions() {
		switch last := i == len(c.Actions())-1; {
		case i == 0:
		case !last:
			text += ", "
		case i == 1:
			text += " or "
		default:
			text += ", or "
		}
		text += a.Phrase()
	}
	return text
}

// QueueView shows the waiting deliveries and the workers.
type QueueView struct {
	Shell   layout.Shell
	Ages    [4]show.Age // up to five minutes, an hour, a day, and older
	Workers []show.Worker
	Shares  []show.Share
	Lanes   []LaneLine
	All     string // the list that is shown in full: lanes or shares; empty: a few rows of each
	Slots   int64  // requests that the live workers can have in flight
}

// glance is how many rows of a list the queue's page shows, unless all are asked for.
const glance = 10

// first are the rows of a list that the page shows, and the link to all of them.
func first[T any](v QueueView, list string, rows []T) ([]T, templ.Component) {
	switch {
	case v.All == list:
		return rows, allOf("/console/queue", "Show fewer")
	case len(rows) > glance:
		return rows[:glance], allOf("/console/queue?all="+list, "All")
	}
	return rows, nil
}

var ageLabels = [4]string{"Up to 5 minutes", "Up to an hour", "Up to a day", "Older than a day"}

func shareAttempts(s show.Share) string {
	return number(s.Attempts) + " (" + percent(s.Attempts, s.AllAttempts) + ")"
}

// average is an average of requests in flight.
func average(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

func percent(part, whole int64) string {
	if whole == 0 {
		return "0%"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + "%"
}

func workerState(w show.Worker) (components.Tone, string) {
	switch {
	case w.Dead:
		return components.Bad, "dead: its lanes are released"
	case w.Silent:
		return components.Bad, "silent"
	}
	return components.Good, "alive"
}

// LaneLine is one lane with a backlog.
type LaneLine struct {
	show.Lane
	Pause string // the form that pauses the endpoint
}

// JobsView lists the bulk jobs and the periodic jobs.
type JobsView struct {
	Shell         layout.Shell
	State, Tenant string
	Wrong         map[string]string // of the filter
	Jobs          []show.PlatformJob
	Next          string
	Periodic      []show.PeriodicJob
}

var jobTones = map[bulk.State]components.Tone{
	bulk.Done:    components.Good,
	bulk.Failed:  components.Bad,
	bulk.Running: components.Info,
}

// periodicWords are the titles of the periodic jobs, and what they do, by the names that the database has.
var periodicWords = map[string][2]string{
	"assess health":           {"Assess endpoint health", "Warns about failing endpoints, and disables those that fail for too long."},
	"check the books: recent": {"Reconcile recent days", "Compares the ledger of yesterday and today with the deliveries."},
	"digests":                 {"Send daily digests", "To those who subscribed."},
	"expire held deliveries":  {"Fail held deliveries", "Fails deliveries that were held for too long."},
	"fold":                    {"Aggregate results", "Adds up what the ledger and the charts show."},
	"fold hours":              {"Aggregate hours", "Adds up minutes into hours for the charts."},
	"forget expired sessions": {"Delete expired sign-ins", "Deletes expired sessions and links."},
	"outbox":                  {"Read outboxes", "Creates events from what was emitted in SQL."},
	"operator alerts":         {"Alert operators", "Opens and ends alerts, and tells the operators' channels."},
	"overdue deliveries":      {"Report overdue deliveries", "Emails the operators when a tenant's deliveries are overdue."},
}

// periodicJob is a periodic job's title, and what it does.
func periodicJob(name string) (title, text string) {
	if words, ok := periodicWords[name]; ok {
		return words[0], words[1]
	}
	if strings.HasPrefix(name, "check the books") {
		return "Reconcile earlier days", "Compares the ledger of earlier days with the deliveries."
	}
	return components.Capital(name), ""
}

// MailsView is the log of mails.
type MailsView struct {
	Shell         layout.Shell
	State, Tenant string
	Wrong         map[string]string // of the filter
	Mails         []show.Mail
	Next          string
	Root          string
}

// mailTones are by the state of a mail.
var mailTones = map[string]components.Tone{
	"sent":    components.Good,
	"failed":  components.Bad,
	"waiting": components.Info,
}

// LedgerView shows the totals beside the waiting deliveries.
type LedgerView struct {
	Shell       layout.Shell
	Days        int
	Lines       []show.Books // all, or those that don't add up
	Total       int64        // lines of the days
	Balanced    int          // how many of them add up
	All         bool         // the balanced ones are shown too
	Differences int
	Most        bool // there are more
	Found       []show.Discrepancy
	Checks      []show.Reconciliation
	Operators   map[string]string // their names by id
	// which of Found has a rejected form to accept it, and that form
	Rejected    int
	ReasonInput components.ReasonInput
}

// discrepancyID names the form that accepts a discrepancy.
func discrepancyID(d show.Discrepancy) string {
	return id.Tenant.Format(d.Tenant) + "-" + d.Day.Format(time.DateOnly)
}

// reason is the input of the form that accepts a discrepancy.
func (v LedgerView) reason(i int) components.ReasonInput {
	if i != v.Rejected {
		return components.ReasonInput{}
	}
	return v.ReasonInput
}

// open is on how many pages the tables differ and nobody has accepted it.
func (v LedgerView) open() (n int64) {
	for _, d := range v.Found {
		if d.Open {
			n++
		}
	}
	return n
}

// excepted describes on how many pages somebody has accepted the difference.
func (v LedgerView) excepted() string {
	n := int64(0)
	for _, d := range v.Found {
		if d.Accepted() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return ", except for discrepancies on " + components.Many(n, "page", "pages") + " that were accepted"
}

// checking says how far a check of the books is.
func checking(r show.Reconciliation) string {
	day := r.Day.Format("2 Jan 2006")
	if r.Name == "recent" {
		return "Checking " + day + " (of yesterday and today)"
	}
	return "Checking " + day + " (of earlier days)"
}

func pageWords(p reconcile.Page) string {
	words := number(p.Accepted) + " accepted, " + number(p.Delivered) + " delivered, " + number(p.Failed) + " failed, " + number(p.Canceled) + " canceled, " +
		number(p.Waiting) + " waiting, " + number(p.Queued) + " in the queue"
	if p.Events > 0 {
		words += ", of " + components.Many(p.Events, "event", "events")
	}
	return words
}

// AuditView is the audit log of the whole platform.
type AuditView struct {
	Shell                 layout.Shell
	Action, Actor, Tenant string
	Wrong                 map[string]string // of the filter
	Entries               []show.AuditEntry
	Operators             map[string]string // their names by id
	Next                  string
}

// author is who did what an entry records; empty: only the kind is known. Operators are marked, since they can act for
// any tenant.
func (v AuditView) author(e show.AuditEntry) string {
	if name := v.Operators[e.ActorID]; name != "" {
		return "Operator " + name
	}
	return pages.ActorName(e.ActorKind, e.Actor)
}

func number(n int64) string { return components.Count(n) }

func times(n int) string { return strconv.Itoa(n) }

// purgedText says how many deliveries left storage with their tenant, and since when no file has them.
func purgedText(l show.Books) string {
	if l.PurgedAt == nil {
		return number(l.Purged) + " being purged"
	}
	return number(l.Purged) + " purged on " + l.PurgedAt.UTC().Format("2006-01-02")
}
