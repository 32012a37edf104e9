package pages

import (
	"slices"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/views/components"
	"posthorn/views/icons"
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
	Ending  *EndingView
	Keys    []show.SigningKey // of the tenant, newest first; none unless the endpoint signs with them
	KeySet  string            // where receivers read them
	MayKeys bool              // the viewer can rotate them
}

// EndingView is a secret that somebody wants to end, and the one that the receiver needs then.
type EndingView struct {
	Old, Next   show.Secret
	Uncheckable string // why there is no check; empty: there is one
}

func (v EndingView) pending() bool {
	return v.Next.Check != nil && v.Next.Check.State == endpoint.CheckPending
}

func (v EndingView) tone() components.Tone {
	switch {
	case v.pending():
		return components.Info
	case v.Next.Accepted():
		return components.Good
	case v.Next.Check != nil:
		return components.Bad
	}
	return components.Warning
}

func (v EndingView) title() string {
	switch {
	case v.pending():
		return "Checking whether your receiver accepts …" + v.Next.Hint + " alone"
	case v.Next.Accepted():
		return "Your receiver accepts …" + v.Next.Hint + " alone"
	case v.Next.Check != nil:
		return "Your receiver rejected a request signed with …" + v.Next.Hint + " alone"
	}
	return "Your receiver hasn't been checked"
}

func (v EndingView) text() string {
	switch {
	case v.pending():
		return "A test event that only this secret signs was sent. …" + v.Old.Hint + " signs until it is accepted."
	case v.Next.Accepted():
		return "You can stop signing with …" + v.Old.Hint + " now."
	case v.Next.Check != nil:
		return v.Next.Check.Detail + " Install …" + v.Next.Hint + " in your receiver, then check again. …" + v.Old.Hint + " still signs."
	case v.Uncheckable != "":
		return v.Uncheckable
	}
	return "…" + v.Old.Hint + " still signs. Check first whether your receiver accepts …" + v.Next.Hint + " alone."
}

// label is the text of the button that ends the secret.
func (v EndingView) label() string { return "Stop signing with …" + v.Old.Hint }

// checking reports whether a check is under way.
func (v SecretsView) checking() bool {
	return slices.ContainsFunc(v.Rows, func(s show.Secret) bool { return s.Check != nil && s.Check.State == endpoint.CheckPending })
}

// poll is the address of the secrets alone.
func (v SecretsView) poll() string {
	if v.Ending != nil {
		return v.Href + "/secrets?end=" + id.Secret.Format(v.Ending.Old.ID)
	}
	return v.Href + "/secrets"
}

// secret is the address of a secret's actions.
func (v SecretsView) secret(s show.Secret) string {
	return v.Href + "/secrets/" + id.Secret.Format(s.ID)
}

// secretMenu are a secret's further actions.
func (v SecretsView) secretMenu(s show.Secret) (items []components.MenuItem) {
	if endpoint.CheckSecretKind(v.Endpoint.Settings.Kind) == nil {
		items = append(items, components.MenuItem{Label: "Check with the receiver", Icon: icons.Send, Action: v.secret(s) + "/check"})
	}
	if s.ExpiresAt != nil {
		items = append(items, components.MenuItem{Label: "Extend…", Icon: icons.Clock, Opens: "extend-" + id.Secret.Format(s.ID)})
	} else if len(v.Rows) > 1 {
		items = append(items, components.MenuItem{Label: "Stop signing now", Icon: icons.Cancel, Action: v.secret(s) + "/end", Danger: true})
	}
	return items
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
