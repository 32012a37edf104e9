// Package incidents says what on the platform operators should look at, the worst first: so that one glance at their
// first page tells whose deliveries are late, which host is down and who crowds out the others.
package incidents

import (
	"slices"
	"strconv"
	"time"

	"posthorn/domain/health"
	"posthorn/domain/home"
)

// The bounds from which on something is worth a word.
const (
	// Late is how long a delivery can be due (condition.Lane.Due). The alert rule PosthornDeliveriesLate has the same
	// bound.
	Late = 5 * time.Minute
	// Silent is how long after its last beat a worker is held to be dead, by the others and by what operators see.
	Silent = 30 * time.Second
	// crowd is the share of the workers' slots, or of all ready deliveries, from which on a tenant can harm the others.
	crowd = 0.5
	// backlog is how many deliveries are ready where such a share means anything.
	backlog = 1000
	// widely is for how many tenants a host must be down to concern the operator.
	widely = 2
)

// Kind is what is wrong. Its text is the end of the type of the event that an alert channel gets.
type Kind string

// The kinds, the worst first.
const (
	NoWorker    Kind = "no_worker"
	Discrepancy Kind = "books_differ"
	ProxyFails  Kind = "egress_proxy_failing"
	LateTenant  Kind = "deliveries_overdue"
	MoveStopped Kind = "move_stopped"
	WorkerLost  Kind = "worker_lost"
	DownHost    Kind = "host_down"
	Disabled    Kind = "endpoint_disabled" // told by mail and to channels; the overview lists endpoints elsewhere
	Noisy       Kind = "tenant_noisy"
	Rejected    Kind = "events_rejected"
	Mails       Kind = "mails_failed"
)

// Facts are what the platform knows of itself.
type Facts struct {
	Workers       int64    // that beat
	WorkersLost   int64    // that stopped beating within the last hour and did not end
	Discrepancies int64    // deliveries
	Proxies       []string // the addresses of egress proxies that fail
	Late          []Waiting
	Moves         []home.Move // overdue ones
	Hosts         []Host
	Loads         []Load
	Rejected      int64 // events that were emitted in SQL and could not be stored
	Mails         int64 // that were given up
}

// Waiting is a tenant whose oldest delivery nothing but the platform has kept for some time.
type Waiting struct {
	Tenant string
	For    time.Duration
}

// Load is what a tenant has of the workers and of what is ready, as shares of the whole from 0 to 1.
type Load struct {
	Tenant string
	ID     string  // of the tenant
	Slots  float64 // of what the live workers could have had in flight in the last ten minutes
	Queue  float64 // of what is ready to be sent
	Ready  int64   // deliveries; held, paused and retrying ones harm no other tenant
	Alone  bool    // no other tenant sends, or has anything ready
}

// Noisy reports whether a tenant has so much of the workers or of the queue that others can suffer.
func (l Load) Noisy() bool {
	return !l.Alone && l.Ready >= backlog && max(l.Slots, l.Queue) > crowd
}

// Host is the endpoints at one host, of all tenants.
type Host struct {
	Name               string
	Endpoints, Tenants int64
	Active             int64     // nobody keeps them from being sent to; those whose breaker is open are among them
	Disabled, Paused   int64     // by Posthorn, by operators
	BreakersOpen       int64     // endpoints whose condition is failing
	Failing            int64     // active ones whose last attempt failed
	LastFailure        time.Time // zero: none
	Unverified         int64
	Response           string // what the failing ones respond most often: "503", "no connection"; empty: nothing fails
}

// HostState is how a host does.
type HostState string

// The states of a host.
const (
	HostDown    HostState = "down"        // no active endpoint there is sent to but for probes
	HostPartly  HostState = "partly down" // some are
	HostFailing HostState = "failing"     // some failed last
	HostPaused  HostState = "paused"      // none is active, and operators paused some
	HostOff     HostState = "disabled"    // none is active, and Posthorn switched some off
	HostNew     HostState = "unverified"  // none is active, and some were never verified
	HostIdle    HostState = "inactive"    // none is active, and their owners keep them so
	HostWell    HostState = "healthy"
)

// State judges a host by its endpoints.
func (h Host) State() HostState {
	switch {
	case h.BreakersOpen > 0 && h.BreakersOpen >= h.Active:
		return HostDown
	case h.BreakersOpen > 0:
		return HostPartly
	case h.Failing > 0 && h.Active > 0:
		return HostFailing
	case h.Active == 0 && h.Paused > 0:
		return HostPaused
	case h.Active == 0 && h.Disabled > 0:
		return HostOff
	case h.Active == 0 && h.Unverified > 0:
		return HostNew
	case h.Active == 0:
		return HostIdle
	}
	return HostWell
}

// Words are the host's state for people: "down", or of hosts that fail in part "25 of 25 failing, 503".
func (h Host) Words() string {
	s := h.State()
	if s != HostPartly && s != HostFailing {
		return string(s)
	}
	text := strconv.FormatInt(max(h.Failing, h.BreakersOpen), 10) + " of " + strconv.FormatInt(h.Active, 10) + " failing"
	if h.Response != "" {
		text += ", " + h.Response
	}
	return text
}

// Finding is one thing to look at.
type Finding struct {
	Kind     Kind
	Severity health.Severity
	At       int    // which of the facts of its kind it is about
	Title    string // what is so
	Action   string // what to do
}

// Find judges the facts. Nothing is found where all is well. many writes a number with its noun as people read it.
func Find(f Facts, many func(n int64, one, many string) string) []Finding {
	var out []Finding
	add := func(k Kind, s health.Severity, at int, title, action string) {
		out = append(out, Finding{k, s, at, title, action})
	}
	if f.Workers == 0 {
		add(NoWorker, health.Critical, 0, "No worker is running, so nothing is delivered.", "Events are accepted and wait. Start posthorn worker or posthorn serve.")
	}
	if f.Discrepancies > 0 {
		add(Discrepancy, health.Critical, 0, "The books differ from the deliveries by "+many(f.Discrepancies, "delivery", "deliveries")+".", "The Books page lists the rows.")
	}
	for i, address := range f.Proxies {
		add(ProxyFails, health.Critical, i, "The egress proxy "+address+" fails.", "Deliveries through it wait, and nothing counts against their endpoints. The Egress proxies page says what is wrong.")
	}
	if i := slices.IndexFunc(f.Late, func(w Waiting) bool { return w.For > Late }); i >= 0 {
		more := int64(0)
		for _, w := range f.Late[i+1:] {
			if w.For > Late {
				more++
			}
		}
		title := "Deliveries of " + f.Late[i].Tenant
		if more > 0 {
			title += " and of " + many(more, "other tenant", "other tenants")
		}
		title += " are overdue: the oldest has been due for " + many(minutes(f.Late[i].For))
		add(LateTenant, health.Critical, i, title+".", "Neither its endpoint nor a person keeps it. Check the worker that owns its lane (below), and which tenants fill the workers.")
	}
	for i, m := range f.Moves {
		add(MoveStopped, health.Critical, i, m.Title(), m.Action())
	}
	if f.WorkersLost > 0 {
		title := many(f.WorkersLost, "worker", "workers") + " stopped without signing off."
		action := "Other workers take over its lanes within half a minute. Check its log and the machine's log."
		if f.Workers == 0 {
			action = "No other worker can take over its lanes."
		}
		add(WorkerLost, health.Warned, 0, title, action)
	}
	for i, h := range f.Hosts {
		if s := h.State(); (s == HostDown || s == HostPartly) && h.Tenants >= widely {
			add(
				DownHost,
				health.Warned,
				i,
				h.Name+": "+h.Words()+" for "+many(h.Tenants, "tenant", "tenants")+".",
				"Their deliveries to it are on hold and retried with probes. Nothing is lost. Pause the host during maintenance.",
			)
		}
	}
	for i, l := range f.Loads {
		if l.Noisy() {
			add(
				Noisy,
				health.Warned,
				i,
				l.Tenant+" has "+l.words(many)+".",
				"It uses capacity that other tenants leave free. If others are waiting too, lower its limits or pause it; its deliveries wait, and nothing is lost.",
			)
		}
	}
	if f.Rejected > 0 {
		add(Rejected, health.Warned, 0, many(f.Rejected, "event that was emitted in SQL was", "events that were emitted in SQL were")+" rejected.", "Rejected events are kept. Fix the cause, then retry or discard them.")
	}
	if f.Mails > 0 {
		add(Mails, health.Warned, 0, many(f.Mails, "email", "emails")+" failed permanently.", "The Mail page shows the provider's error, and you can send each one again.")
	}
	return out
}

func (l Load) words(many func(int64, string, string) string) string {
	ready := many(l.Ready, "delivery", "deliveries") + " ready to send, " + Percent(l.Queue) + " of all"
	if l.Slots > crowd {
		return Percent(l.Slots) + " of the workers' slots, and " + ready
	}
	return ready
}

// Percent is a share from 0 to 1 for people.
func Percent(fraction float64) string { return strconv.FormatFloat(100*fraction, 'f', 0, 64) + "%" }

// minutes is a time of minutes or more, as a number of whole ones and its noun.
func minutes(d time.Duration) (n int64, one, many string) {
	if d >= 2*time.Hour {
		return int64(d / time.Hour), "hour", "hours"
	}
	return int64(d / time.Minute), "minute", "minutes"
}
