// Package trouble says what on the platform operators should look at, the worst first: so that one glance at their first page tells
// whose deliveries are late, which host is down and who crowds out the others.
package trouble

import (
	"slices"
	"strconv"
	"time"

	"posthorn/domain/health"
)

// The bounds from which on something is worth a word.
const (
	// Late is how long a delivery may be ready to be sent (the alert rule PosthornDeliveriesLate has the same bound).
	Late = 5 * time.Minute
	// Silent is how long after its last beat a worker is held to be dead, by the others and by what operators see.
	Silent = 30 * time.Second
	// crowd is the share of the workers' time, or of all that is ready, from which on a tenant may harm the others.
	crowd = 0.5
	// backlog is how many deliveries are ready where such a share means anything.
	backlog = 1000
	// widely is of how many tenants a host must be down to be more than a matter of theirs.
	widely = 2
)

// Kind is what is wrong.
type Kind string

// The kinds, the worst first.
const (
	NoWorker   Kind = "no_worker"
	Books      Kind = "books"
	LateTenant Kind = "late"
	WorkerLost Kind = "worker_lost"
	DownHost   Kind = "host"
	Noisy      Kind = "noisy"
	Rejected   Kind = "rejected"
	Mails      Kind = "mails"
)

// Facts are what the platform knows of itself.
type Facts struct {
	Workers     int64 // that beat
	WorkersLost int64 // that stopped beating within the last hour and did not end
	BooksDiffer int64 // deliveries
	Late        []Waiting
	Hosts       []Host
	Loads       []Load
	Rejected    int64 // events that were emitted in SQL and could not be stored
	Mails       int64 // that were given up
}

// Waiting is a tenant whose oldest delivery could have been sent for some time.
type Waiting struct {
	Tenant string
	For    time.Duration
}

// Load is what a tenant has of the workers and of what is ready, as shares of the whole from 0 to 1.
type Load struct {
	Tenant string
	Slots  float64 // of the time that requests took in the last ten minutes
	Queue  float64 // of what is ready to be sent
	Ready  int64   // deliveries; what is held, paused or waits for a retry harms nobody
	Alone  bool    // no other tenant sends, or has anything ready
}

// Noisy reports whether a tenant has so much of the workers or of the queue that others may suffer from it.
func (l Load) Noisy() bool {
	return !l.Alone && l.Ready >= backlog && max(l.Slots, l.Queue) > crowd
}

// Host is the endpoints at one host, whoever's they are.
type Host struct {
	Name                                                        string
	Endpoints, Tenants, Active, Disabled, BreakersOpen, Failing int64
}

// HostState is how a host does.
type HostState string

// The states of a host.
const (
	HostDown    HostState = "down"         // no active endpoint there is sent to but for probes
	HostPartly  HostState = "partly down"  // some are
	HostFailing HostState = "failing"      // some failed last
	HostOff     HostState = "switched off" // none is active, and Posthorn switched some off
	HostWell    HostState = "well"
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
	case h.Active == 0 && h.Disabled > 0:
		return HostOff
	}
	return HostWell
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
		add(NoWorker, health.Critical, 0, "No worker runs: nothing is delivered.", "Events are accepted and wait. Start posthorn worker or posthorn serve.")
	}
	if f.BooksDiffer > 0 {
		add(Books, health.Critical, 0, "The books differ from the tables by "+many(f.BooksDiffer, "delivery", "deliveries")+".", "The page of the books names the rows.")
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
		title += " are late: the oldest has been ready for " + many(minutes(f.Late[i].For))
		add(LateTenant, health.Critical, i, title+".", "Its lane below says who holds it. Look whether that worker lives, whether its endpoint is slow or limited, and who else fills the workers.")
	}
	if f.WorkersLost > 0 {
		title := many(f.WorkersLost, "worker", "workers") + " stopped without saying so."
		action := "Its lanes go to the others within half a minute. Its log and the machine's say why."
		if f.Workers == 0 {
			action = "Nobody is left to take its lanes."
		}
		add(WorkerLost, health.Warned, 0, title, action)
	}
	for i, h := range f.Hosts {
		if s := h.State(); (s == HostDown || s == HostPartly) && h.Tenants >= widely {
			add(DownHost, health.Warned, i, h.Name+" is "+string(s)+" for "+many(h.Tenants, "tenant", "tenants")+".",
				"What they have for it waits and is tried now and then. Nothing is lost; pause the host if it asks for quiet.")
		}
	}
	for i, l := range f.Loads {
		if l.Noisy() {
			add(Noisy, health.Warned, i, l.Tenant+" has "+l.words(many)+".",
				"What others leave of the workers is lent to it. Where others wait too, lower its limits or pause it: what it has waits and nothing is lost.")
		}
	}
	if f.Rejected > 0 {
		add(Rejected, health.Warned, 0, many(f.Rejected, "event that was emitted in SQL was", "events that were emitted in SQL were")+" rejected.", "They are kept. Mend the cause, then have them tried again or discarded.")
	}
	if f.Mails > 0 {
		add(Mails, health.Warned, 0, many(f.Mails, "mail was", "mails were")+" given up.", "The provider's words are on the page of the mails, where each can be sent again.")
	}
	return out
}

func (l Load) words(many func(int64, string, string) string) string {
	ready := many(l.Ready, "delivery", "deliveries") + " ready to be sent, " + Percent(l.Queue) + " of all"
	if l.Slots > crowd {
		return Percent(l.Slots) + " of the workers' time, and " + ready
	}
	return ready
}

// Percent is a share from 0 to 1 for people.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }

// minutes is a time of minutes or more, as a number of whole ones and its noun.
func minutes(d time.Duration) (n int64, one, many string) {
	if d >= 2*time.Hour {
		return int64(d / time.Hour), "hour", "hours"
	}
	return int64(d / time.Minute), "minute", "minutes"
}
