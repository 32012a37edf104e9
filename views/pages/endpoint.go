package pages

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/views/charts"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// EndpointHead is the head of all pages of one endpoint.
type EndpointHead struct {
	Shell       layout.Shell
	Root        string // of the tenant's pages
	Href        string // of the endpoint
	ID          string
	URL         string // masked
	Description string
	Status      endpoint.Status // decides whether it can be paused or resumed
	Condition   condition.Condition
	Tab         string
	MayChange   bool
	MaySecrets  bool  // can rotate secrets and see new ones
	Inbox       bool  // a test inbox
	Waiting     bool  // a verification is in progress
	InQueue     int64 // its waiting deliveries
	InQueueMore bool  // InQueue is a lower bound
}

// deleteText says what deleting the endpoint does to its waiting deliveries.
func (h EndpointHead) deleteText() string {
	said := "It has no waiting deliveries."
	if h.InQueue > 0 {
		said = components.Many(h.InQueue, "waiting delivery fails permanently.", "waiting deliveries fail permanently.")
	}
	if h.InQueue > 0 && h.InQueueMore {
		said = "More than " + said
	}
	return said + " Its secrets are deleted. Past deliveries stay in the lists. This can't be undone."
}

// title is the endpoint's description, else its URL.
func (h EndpointHead) title() string {
	if h.Description != "" {
		return h.Description
	}
	return strings.TrimPrefix(h.URL, "https://")
}

// subtitle is the URL if the title is the description.
func (h EndpointHead) subtitle() string {
	if h.Description == "" {
		return ""
	}
	return h.URL
}

func (h EndpointHead) tabs() []components.Tab {
	tab := func(key, label, href string) components.Tab {
		return components.Tab{Label: label, Href: href, Active: h.Tab == key}
	}
	all := []components.Tab{
		tab("overview", "Overview", h.Href), tab("deliveries", "Deliveries", h.Root+"/deliveries?endpoint="+h.ID),
		tab("settings", "Settings", h.Href+"/settings"), tab("filter", "Filter", h.Href+"/filter"), tab("secrets", "Secrets", h.Href+"/secrets"),
	}
	if h.Inbox {
		all = slices.Insert(all, 1, tab("inbox", "Inbox", h.Href+"/inbox"))
	}
	if h.MayChange {
		all = append(all, tab("test", "Test", h.Href+"/test"))
	}
	return all
}

// menu are the actions that are not in the first row.
func (h EndpointHead) menu() []components.MenuItem {
	items := []components.MenuItem{{Label: "Verify again", Icon: icons.Shield, Action: h.Href + "/verify"}}
	if h.Status != endpoint.Unverified {
		items = append(items, components.MenuItem{Label: condition.Recover.Label(), Icon: icons.Refresh, Opens: "recover"},
			components.MenuItem{Label: "Replay missing ...", Icon: icons.Layers, Opens: "missing"})
	}
	return append(items, components.MenuItem{Label: "Delete endpoint", Icon: icons.Trash, Opens: "delete", Danger: true})
}

func (h EndpointHead) mayPause() bool { return h.MayChange && h.Status == endpoint.Active }
func (h EndpointHead) mayResume() bool {
	return h.MayChange && (h.Status == endpoint.Paused || h.Status == endpoint.Disabled)
}

// resumeText says what resuming does, by the endpoint's state.
func (h EndpointHead) resumeText() string {
	if h.Status == endpoint.Disabled {
		return "The endpoint is verified first, then receives events. " + h.heldText()
	}
	return "The endpoint receives events again immediately. " + h.heldText()
}

// heldText says how many deliveries the endpoint holds.
func (h EndpointHead) heldText() string {
	switch held := h.Condition.Held; {
	case h.Condition.HeldAtLeast:
		return "More than " + components.Many(held, "delivery is waiting.", "deliveries are waiting.")
	case held == 0:
		return "No deliveries are waiting."
	default:
		return components.Many(held, "delivery is waiting.", "deliveries are waiting.")
	}
}

// EndpointView is an endpoint's first page.
type EndpointView struct {
	EndpointHead
	DisableWhy   string // why Posthorn disabled it, or will
	Day          health.Rate
	P50, P95     time.Duration
	LastSuccess  time.Time
	LastFailure  time.Time
	LastError    string
	Failures     int
	Range        RangeView
	Volume       charts.Props
	Success      charts.Props
	Latency      charts.Props
	Facts        EndpointFacts
	Verification VerificationView
	Feed         FeedView
}

// EndpointFacts are the most important settings of an endpoint.
type EndpointFacts struct {
	EventTypes []string
	Format     string
	Retries    string
	Limits     string
	Ordering   string
	Created    time.Time
}

// VerificationView is the progress of a verification; it refreshes itself until the end.
type VerificationView struct {
	Poll   string
	Verify string // the address that sends a verification; empty if that is not offered
	State  string // pending, succeeded, failed, superseded; empty for none
	Tries  int
	Status int
	Detail string
	At     time.Time
	NextAt time.Time // of the next try; zero: none
	Mode   string
	Kind   string
	URL    string
	First  bool // part of adding the endpoint
}

func (v VerificationView) running() bool { return v.State == "pending" }

// steps are the steps of a verification, with their states.
func (v VerificationView) steps() []components.StepProps {
	sent := components.StepProps{State: components.StepRunning, Title: "Send the challenge", Text: "A signed request to " + v.URL + "."}
	proof := components.StepProps{State: components.StepWaiting, Title: "Check the response", Text: "It must contain the challenge."}
	switch {
	case v.Kind == string(endpoint.Kafka):
		sent.Title, sent.Text = "Write a record", "A signed record to "+v.URL+"."
		proof.Title, proof.Text = "Wait for the brokers", "All in-sync replicas must acknowledge the record."
	case v.Mode == "simple":
		sent.Title, proof.Text = "Send a request", "Any 2xx response is enough."
	}
	ready := components.StepProps{State: components.StepWaiting, Title: "Deliver", Text: "Held deliveries are then sent."}
	if v.Tries > 0 {
		sent.State, proof.State = components.StepDone, components.StepRunning
		sent.Text = components.Many(int64(v.Tries), "try", "tries") + " so far."
	}
	switch v.State {
	case "":
		sent.State = components.StepWaiting
	case "succeeded":
		sent.State, proof.State, ready.State = components.StepDone, components.StepDone, components.StepDone
		proof.Text, ready.Text = "The response is correct.", "The endpoint is ready."
	case "failed":
		sent.State, proof.State = components.StepDone, components.StepFailed
		proof.Text = v.failure()
	default:
		if v.Detail != "" {
			proof.Text = v.failure()
		}
	}
	return []components.StepProps{sent, proof, ready}
}

// failure says why the last try failed, and the probable cause.
func (v VerificationView) failure() string {
	if v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden {
		return v.Detail + " The receiver probably rejected the signature: check that it has this endpoint's signing secret."
	}
	return v.Detail
}

// label is the text of the button that sends a verification.
func (v VerificationView) label() string {
	switch {
	case v.running():
		return "Try now"
	case v.State == "" && v.Kind != string(endpoint.Kafka):
		return "I've installed it: verify now"
	}
	return "Verify again"
}

// offers reports whether the button is shown: before the first try, between two, and after the last.
func (v VerificationView) offers() bool {
	return v.Verify != "" && v.State != "succeeded" && (!v.running() || v.Detail != "")
}

// CreatedView is the page after the creation of an endpoint: the secret, shown once, and the verification.
type CreatedView struct {
	EndpointHead
	Secret       string // empty: it was shown before, or the reader has no permission
	Public       string
	Verification VerificationView
	Sent         *TrialView // the first test event, if one was sent
}

// FirstEvent is the last step of adding an endpoint: a test event.
type FirstEvent struct {
	Test  string // the address that sends it; empty if the reader can't
	Ready bool   // the endpoint is verified
	Sent  *TrialView
	Swap  bool // the part is sent along with another one
}

func (v CreatedView) firstEvent() FirstEvent {
	f := FirstEvent{Ready: v.Verification.State == "succeeded" || v.Status == endpoint.Active, Sent: v.Sent}
	if v.MayChange {
		f.Test = v.Href + "/test"
	}
	return f
}

// noSecret says why there is no secret to copy, and what to do.
func (v CreatedView) noSecret() string {
	switch {
	case v.MaySecrets:
		return "The secret was shown once, when the endpoint was added, and can't be shown again. If nobody has copied it, rotate the secret to get a new one."
	case v.Shell.View != nil:
		return "Operators can't see secrets. A member of the tenant can rotate the secret to get one."
	}
	return "Your role can't see this secret. An owner, admin, or developer of the tenant can rotate it and give you the new one."
}

// verifyText says what happens next on the page of a new endpoint.
func (v CreatedView) verifyText() string {
	if v.Verification.Kind == string(endpoint.Kafka) {
		return "Delivery starts once the endpoint is verified."
	}
	return "We send a signed challenge, and the receiver sends it back. Delivery starts after that."
}

// whereText says what a change of the destination causes.
func whereText(f EndpointForm) string {
	if f.Kind == string(endpoint.Kafka) {
		return "New servers or a new topic must be verified again; deliveries are held until then."
	}
	return "A new URL must be verified again; deliveries are held until then."
}

// EndpointSettingsView is the form of an endpoint's settings.
type EndpointSettingsView struct {
	EndpointHead
	Form EndpointForm
}

func failuresTone(v EndpointView) components.Tone {
	switch {
	case v.Condition.State == condition.Failing, v.Condition.State == condition.Disabled:
		return components.Bad
	case v.Failures > 0:
		return components.Warning
	}
	return components.Neutral
}

// stateText explains the condition, with what this page knows in addition.
func (v EndpointView) stateText() string {
	text := v.Condition.Detail()
	if v.Condition.State == condition.Disabled && v.DisableWhy != "" {
		text = v.DisableWhy + " Nothing is sent until the endpoint is resumed and verified."
	}
	return text + " " + v.heldText()
}

func lastStat(ctx context.Context, at time.Time) components.StatProps {
	if at.IsZero() {
		return components.StatProps{Label: "Last success", Value: "–", Note: "no deliveries yet"}
	}
	return components.StatProps{Label: "Last success", Value: components.Since(ctx, at), Note: components.Stamp(at)}
}
