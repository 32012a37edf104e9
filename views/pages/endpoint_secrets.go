package pages

import (
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/views/components"
)

// SecretsView is an endpoint's live secrets.
type SecretsView struct {
	EndpointHead
	Rows    []show.Secret // newest first
	New     string        // a new secret, shown once
	Public  string
	Overlap string // as selected
	Type    string // of the new secret, as selected
	Wrong   map[string]string
}

// waits reports whether the newest secret does not sign yet.
func (v SecretsView) waits() bool { return len(v.Rows) > 0 && !v.Rows[0].Signing }

// pairs reports whether the format supports key pairs.
func (v SecretsView) pairs() bool { return v.Endpoint.Settings.Format == signature.Standard }

// secretTypes are the types of secrets for people.
var secretTypes = map[endpoint.SecretType]string{endpoint.HMAC: "HMAC", endpoint.Ed25519: "ed25519"}

// liveText says which of the secrets sign.
func (v SecretsView) liveText() string {
	if v.Endpoint.Settings.SignsOne() {
		return "One secret signs at a time. A secret is shown only once, when created."
	}
	return "Each secret signs until its overlap ends. A secret is shown only once, when created."
}

// rotateText says what a rotation does.
func (v SecretsView) rotateText() string {
	if v.Endpoint.Settings.SignsOne() {
		return "Creates a new secret. The current secret keeps signing until you switch, or until the overlap ends."
	}
	return "Creates a new secret. Current secrets keep signing during the overlap, so no delivery is rejected."
}

// text explains a filter, and to readers with permission how to try it.
func (v FilterView) text() string {
	if v.MayChange && v.Tries {
		return "Limits which events of the selected types this endpoint receives. Try it on past events before you save."
	}
	return "Limits which events of the selected types this endpoint receives."
}

// nextTypes are the possible types of the next secret.
func (v SecretsView) nextTypes() []components.Option {
	return append([]components.Option{{Label: "Same as current", Value: ""}}, secretTypeOptions()...)
}

func overlapOptions() []components.Option {
	return []components.Option{
		{Label: "None: older secrets stop now", Value: "0"},
		{Label: "1 hour", Value: "3600"},
		{Label: "24 hours", Value: "86400"},
		{Label: "3 days", Value: "259200"},
		{Label: "7 days", Value: "604800"},
	}
}

// FilterView is the editor of an endpoint's filter, with the past events that it matches.
type FilterView struct {
	EndpointHead
	Tries bool // the actor can read payloads
	Form  EndpointForm
	Tried *DryRunView
}

// DryRunView shows which past events a subscription matches.
type DryRunView struct {
	Matched  int
	Complete bool
	Rows     []DryRunRow
}

// DryRunRow is one event.
type DryRunRow struct {
	Href    string
	Type    string
	Matched bool
	Detail  string
	Data    string // the start of the event's data
	At      time.Time
}

// TestView is the form of a test event.
type TestView struct {
	EndpointHead
	Types      []string // of the catalog
	Type, Data string
	Wrong      map[string]string
	Why        string // why no test event can be sent now
	Sent       *TrialView
}

// What a button of a form with the data of an event fills in.
const (
	FillFormat  = "format"  // the data as it is, indented
	FillExample = "example" // the catalog's example
	FillLast    = "last"    // the data of the newest event of the type
)

// Where a button that sends a test event stands, if not beside the form.
const (
	FromCreated = "created"
	FromInbox   = "inbox"
)

// TrialView is the result of a test event; it refreshes itself until the delivery is settled.
type TrialView struct {
	Poll    string
	Href    string // of the delivery
	Hidden  bool   // the reader can't see responses
	Attempt show.Attempt
	show.Delivery
}

// settled reports whether the result will not change soon.
func (v TrialView) settled() bool { return v.Attempts > 0 || v.Status.Terminal() }

func triedTitle(v DryRunView) string {
	title := "It would have matched " + components.Count(int64(v.Matched)) + " of " + components.Many(int64(len(v.Rows)), "past event", "past events")
	if !v.Complete {
		title += " (of those checked)"
	}
	return title
}
