package incidents

import (
	"slices"
	"time"

	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// An alert is an incident that the platform keeps from its start to its end, so that mail and channels tell of it once.
// Alerts of all kinds but NoWorker are kept: without a worker nothing could tell of it.

// alertRule says how alerts of a kind are told.
type alertRule struct {
	kind     Kind
	severity health.Severity
	label    string
	page     string        // of the console
	mailed   bool          // operators get a mail, once a UTC day for as long as it lasts
	calm     time.Duration // an alert ends when its cause has been absent for longer
}

const (
	// calmFor keeps what comes and goes within minutes one alert.
	calmFor = 5 * time.Minute
	// calmSweep is longer than two sweeps over the tenants are apart.
	calmSweep = 11 * time.Minute
)

// alertRules are in the order in which the console lists them.
var alertRules = []alertRule{
	{Discrepancy, health.Critical, "The books differ from the deliveries", "/console/books", true, calmFor},
	{LateTenant, health.Critical, "Deliveries of a tenant are overdue", "/console/queue", true, calmSweep},
	{ProxyFails, health.Critical, "An egress proxy fails", "/console/egress", true, calmFor},
	{MoveStopped, health.Critical, "A move of a tenant has stopped", "/console/homes", true, calmFor},
	{WorkerLost, health.Warned, "A worker stopped without signing off", "/console/queue", false, calmFor},
	{DownHost, health.Warned, "A host is down for several tenants", "/console/health", false, calmFor},
	{Disabled, health.Warned, "An endpoint was disabled", "/console/deliveries", true, 0},
	{Noisy, health.Warned, "A tenant uses most of the workers", "/console/queue", false, calmFor},
	{Rejected, health.Warned, "Events that were emitted in SQL were rejected", "/console/outbox", false, calmFor},
	{Mails, health.Warned, "Emails failed permanently", "/console/mail?state=failed", false, calmFor},
}

func (k Kind) rule() alertRule {
	if i := slices.IndexFunc(alertRules, func(r alertRule) bool { return r.kind == k }); i >= 0 {
		return alertRules[i]
	}
	return alertRule{}
}

// AlertKinds lists the kinds of alerts.
func AlertKinds() []Kind {
	all := make([]Kind, len(alertRules))
	for i, r := range alertRules {
		all[i] = r.kind
	}
	return all
}

// Alerts reports whether alerts of the kind are kept.
func (k Kind) Alerts() bool { return k.rule().kind != "" }

// Label is what alerts of the kind are called.
func (k Kind) Label() string { return k.rule().label }

// Mailed reports whether operators get alerts of the kind by mail.
func (k Kind) Mailed() bool { return k.rule().mailed }

// AlertPrefix begins the types of the events that alert channels of operators get.
const AlertPrefix = notice.AlertPrefix + "platform."

// EventType is the type of the events that alerts of the kind become.
func (k Kind) EventType() string { return AlertPrefix + string(k) }

// Setting is the name of the switch that mutes alerts of the kind.
func (k Kind) Setting() string { return "alerts." + string(k) }

// Severity is how urgent alerts of the kind are, as channels are told.
func (k Kind) Severity() notice.Severity {
	if k.rule().severity == health.Critical {
		return notice.Critical
	}
	return notice.Warning
}

// Alert is one cause that operators are told of.
type Alert struct {
	Kind     Kind
	Key      string // tells causes of one kind apart; empty: there is only one
	Title    string // what is so
	Message  string // the facts, and what to do
	Page     string // of the console, with the cause; empty: the kind's
	Tenant   string // the id that it concerns; empty: none
	Endpoint string
}

// AlertsOf are the alerts of what Find found. Deliveries that are overdue are told for each tenant, from the time that
// the platform's settings say, and not here.
func AlertsOf(f Facts, found []Finding) []Alert {
	var all []Alert
	for _, x := range found {
		if x.Kind == LateTenant || !x.Kind.Alerts() {
			continue
		}
		a := Alert{Kind: x.Kind, Title: x.Title, Message: x.Action}
		switch x.Kind {
		case ProxyFails:
			a.Key = f.Proxies[x.At]
		case MoveStopped:
			a.Key, a.Tenant = f.Moves[x.At].Tenant, f.Moves[x.At].Tenant
		case DownHost:
			a.Key = f.Hosts[x.At].Name
		case Noisy:
			a.Key, a.Tenant = f.Loads[x.At].ID, f.Loads[x.At].ID
		}
		all = append(all, a)
	}
	return all
}

// Kept is an alert as it is stored.
type Kept struct {
	ID       id.UUID
	Alert    Alert
	OpenedAt time.Time
	SeenAt   time.Time // when its cause was last there
	EndedAt  time.Time // zero: it is open
	Sent     bool      // channels were told that it opened
}

// Over reports whether an open alert ends: its cause has been absent for long enough.
func (k Kept) Over(at time.Time) bool { return at.Sub(k.SeenAt) > k.Alert.Kind.rule().calm }

// Link is the console's page with the cause. console is the beginning of the console's addresses.
func (a Alert) Link(console string) string {
	if a.Page != "" {
		return console + a.Page
	}
	return console + a.Kind.rule().page
}

// Status is what channels are told of it.
func (k Kept) Status() notice.Status {
	if k.EndedAt.IsZero() {
		return notice.Triggered
	}
	return notice.Resolved
}

// DedupKey is the same for the start and the end of an alert, and for no other alert.
func (k Kept) DedupKey() string {
	return "platform:" + string(k.Alert.Kind) + ":" + id.Alert.Format(k.ID)
}

// Data is what channels get: the fields that a notice to a tenant has, too.
func (k Kept) Data(console string) notice.Alert {
	a := notice.Alert{
		Title:    k.Alert.Title,
		Message:  k.Alert.Message,
		Severity: k.Alert.Kind.Severity(),
		Status:   k.Status(),
		DedupKey: k.DedupKey(),
		Source:   "posthorn",
		URL:      k.Alert.Link(console),
		Notice:   AlertPrefix[len(notice.AlertPrefix):] + string(k.Alert.Kind),
		NoticeID: id.Alert.Format(k.ID),
		Tenant:   k.Alert.Tenant,
		Endpoint: k.Alert.Endpoint,
		At:       k.OpenedAt.UTC(),
		Details:  []byte("{}"),
	}
	if !k.EndedAt.IsZero() {
		a.Title, a.Message, a.At = "Resolved: "+a.Title, k.Alert.Kind.Label()+": resolved.", k.EndedAt.UTC()
	}
	if k.Alert.Endpoint != "" {
		a.Source = k.Alert.Endpoint
	} else if k.Alert.Tenant != "" {
		a.Source = k.Alert.Tenant
	}
	return a
}
