package pages

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/charts"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// EndpointHead is the head of all pages of one endpoint.
type EndpointHead struct {
	Shell      layout.Shell
	Root       string        // of the tenant's pages
	Href       string        // of the endpoint
	Endpoint   show.Endpoint // masked
	Now        time.Time
	Tab        string
	MayChange  bool
	MaySecrets bool // can rotate secrets and see new ones
}

// id is the endpoint's id as text.
func (h EndpointHead) id() string { return id.Endpoint.Format(h.Endpoint.ID) }

// deleteText says what deleting the endpoint does to its waiting deliveries.
func (h EndpointHead) deleteText() string {
	if h.pulls() {
		return "The tokens of its consumers end, and their places in the feed are forgotten. This can't be undone."
	}
	said := "It has no waiting deliveries."
	if n := h.Endpoint.Waiting; n > 0 {
		said = components.Many(n, "waiting delivery fails permanently.", "waiting deliveries fail permanently.")
	}
	if h.Endpoint.WaitingAtLeast {
		said = "More than " + said
	}
	return said + " Its secrets are deleted. Past deliveries stay in the lists. This can't be undone."
}

// pulls reports whether the endpoint is a feed.
func (h EndpointHead) pulls() bool { return h.Endpoint.Settings.Kind.Pulls() }

// title is the endpoint's description, else its URL.
func (h EndpointHead) title() string {
	return strings.TrimPrefix(h.Endpoint.Name(), "https://")
}

// subtitle is the URL if the title is the description.
func (h EndpointHead) subtitle() string {
	if h.Endpoint.Settings.Description == "" {
		return ""
	}
	return h.Endpoint.Settings.URL
}

func (h EndpointHead) tabs() []components.Tab {
	tab := func(key, label, href string) components.Tab {
		return components.Tab{Label: label, Href: href, Active: h.Tab == key}
	}
	if h.pulls() {
		return []components.Tab{
			tab("overview", "Consumers", h.Href), tab("settings", "Settings", h.Href+"/settings"),
			tab("filter", "Filter", h.Href+"/filter"), tab("secrets", "Secrets", h.Href+"/secrets"),
		}
	}
	all := []components.Tab{
		tab("overview", "Overview", h.Href), tab("deliveries", "Deliveries", h.Root+"/deliveries?endpoint="+h.id()),
		tab("settings", "Settings", h.Href+"/settings"), tab("filter", "Filter", h.Href+"/filter"),
		tab("transformation", "Transformation", h.Href+"/transformation"), tab("secrets", "Secrets", h.Href+"/secrets"),
	}
	if h.Endpoint.Settings.Kind == endpoint.Inbox {
		all = slices.Insert(all, 1, tab("inbox", "Inbox", h.Href+"/inbox"))
	}
	if h.MayChange {
		all = append(all, tab("test", "Test", h.Href+"/test"))
	}
	return all
}

// menu are the actions that are not in the first row.
func (h EndpointHead) menu() []components.MenuItem {
	var items []components.MenuItem
	if !h.pulls() {
		items = append(items, components.MenuItem{Label: "Verify again", Icon: icons.Shield, Action: h.Href + "/verify"})
	}
	if h.MaySecrets {
		items = append(items, components.MenuItem{Label: "Rotate secret", Icon: icons.Key, Href: h.Href + "/secrets#rotate"})
	}
	if h.Endpoint.Status != endpoint.Unverified && !h.pulls() {
		items = append(
			items,
			components.MenuItem{Label: condition.Replay.Label(), Icon: icons.Refresh, Href: h.Root + "/deliveries?status=dead_letter&endpoint=" + h.id()},
			components.MenuItem{Label: condition.Recover.Label(), Icon: icons.Refresh, Opens: "recover"},
			components.MenuItem{Label: "Replay missing…", Icon: icons.Layers, Opens: "missing"},
			components.MenuItem{Label: "Rewind…", Icon: icons.Refresh, Opens: "rewind"},
		)
	}
	return append(items, components.MenuItem{Label: "Delete endpoint", Icon: icons.Trash, Opens: "delete", Danger: true})
}

// rewinds are the places from which everything is sent again.
func (h EndpointHead) rewinds() []components.Option {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	return []components.Option{
		{Value: at(h.Now.Add(-time.Hour)), Label: "The last hour"},
		{Value: at(h.Now.Add(-24 * time.Hour)), Label: "The last 24 hours"},
		{Value: components.OtherTime, Label: "Another time"},
		{Value: feed.Oldest, Label: "Everything within retention"},
	}
}

// beforeFailure is how much older than its first failed attempt a delivery can be: the longest timeout.
const beforeFailure = 30 * time.Second

// starts are the times since which deliveries are recovered. Those of an endpoint that fails, or receives nothing,
// begin with when that began.
func (h EndpointHead) starts() []components.Option {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	options := []components.Option{
		{Value: at(h.Now.Add(-time.Hour)), Label: "The last hour"},
		{Value: at(h.Now.Add(-24 * time.Hour)), Label: "The last 24 hours"},
		{Value: components.OtherTime, Label: "Another time"},
	}
	c := h.Endpoint.Condition
	switch failed := h.Endpoint.Counters.FirstFailureAt; {
	case !failed.IsZero():
		began := components.Option{Value: at(failed.Add(-beforeFailure)), Label: "When it began failing, " + components.Stamp(failed)}
		options = slices.Insert(options, 0, began)
	case c.Shown() != condition.Active && !c.Since.IsZero():
		began := components.Option{Value: at(c.Since), Label: components.Capital(c.Shown().Word()) + " since " + components.Stamp(c.Since)}
		options = slices.Insert(options, 0, began)
	}
	return options
}

func (h EndpointHead) mayPause() bool { return h.MayChange && h.Endpoint.Status == endpoint.Active }
func (h EndpointHead) mayResume() bool {
	return h.MayChange && h.Endpoint.Condition.Can(condition.Resume)
}

// pauseText says what pausing does.
func (h EndpointHead) pauseText() string {
	if h.pulls() {
		return "Its consumers can't read until it is resumed. Events stay in the log, and consumers keep their places."
	}
	return condition.PauseText(h.Endpoint.Settings.WhenHeld == endpoint.Drop)
}

// resumeText says what resuming does, by the endpoint's state.
func (h EndpointHead) resumeText() string {
	if h.pulls() {
		return "Its consumers continue where they stopped."
	}
	if h.Endpoint.Status == endpoint.Disabled {
		return "The endpoint is verified first, then receives events. " + h.heldText()
	}
	return "The endpoint receives events again immediately. " + h.heldText()
}

// heldText says how many deliveries the endpoint holds.
func (h EndpointHead) heldText() string {
	switch held := h.Endpoint.Condition.Held; {
	case h.Endpoint.Condition.HeldAtLeast:
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
	P50, P95     time.Duration
	LastError    string
	Range        RangeView
	Volume       charts.Props
	Success      charts.Props
	Latency      charts.Props
	Verification VerificationView
	Feed         FeedView
	Failures     FailuresView
}

// VerificationView is the progress of a verification; it refreshes itself until the end.
type VerificationView struct {
	show.Verification               // without a state: none was requested
	Endpoint          show.Endpoint // masked
	Poll              string
	Verify            string // the address that sends a verification; empty if that is not offered
	First             bool   // part of adding the endpoint
}

func (v VerificationView) running() bool { return v.State == "pending" }

// steps are the steps of a verification, with their states.
func (v VerificationView) steps() []components.StepProps {
	sent := components.StepProps{State: components.StepRunning, Title: "Send the challenge", Text: "A signed request to " + v.Endpoint.Settings.URL + "."}
	proof := components.StepProps{State: components.StepWaiting, Title: "Check the response", Text: "It must contain the challenge."}
	switch {
	case v.Endpoint.Settings.Kind == endpoint.Kafka:
		sent.Title, sent.Text = "Write a record", "A signed record to "+v.Endpoint.Settings.URL+"."
		proof.Title, proof.Text = "Wait for the brokers", "All in-sync replicas must acknowledge the record."
	case v.Endpoint.Settings.Kind == endpoint.S3:
		sent.Title, sent.Text = "Write an object", "A signed object below "+v.Endpoint.Settings.URL+"."
		proof.Title, proof.Text = "Wait for the bucket", "It must accept the object."
	case v.Endpoint.Settings.Kind.Broker():
		sent.Title, sent.Text = "Send a message", "A signed message to "+v.Endpoint.Settings.URL+"."
		proof.Title, proof.Text = "Wait for the broker", "It must confirm the message."
	case v.Endpoint.Settings.Verification == "options":
		sent.Title, proof.Text = "Send an OPTIONS request", "Its headers must permit requests from this platform."
	case v.Endpoint.Settings.Verification == "simple":
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
		if v.LastDetail != "" {
			proof.Text = v.failure()
		}
	}
	return []components.StepProps{sent, proof, ready}
}

// failure says why the last try failed, and the probable cause.
func (v VerificationView) failure() string {
	if v.LastStatus == http.StatusUnauthorized || v.LastStatus == http.StatusForbidden {
		return v.LastDetail + " The receiver probably rejected the signature: check that it has this endpoint's signing secret."
	}
	return v.LastDetail
}

// label is the text of the button that sends a verification.
func (v VerificationView) label() string {
	switch {
	case v.running():
		return "Try now"
	case v.State == "" && !v.Endpoint.Settings.Kind.Broker():
		return "I've installed it: verify now"
	}
	return "Verify again"
}

// offers reports whether the button is shown: before the first try, between two, and after the last.
func (v VerificationView) offers() bool {
	return v.Verify != "" && v.State != "succeeded" && (!v.running() || v.LastDetail != "")
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
	f := FirstEvent{Ready: v.Verification.State == "succeeded" || v.Endpoint.Status == endpoint.Active, Sent: v.Sent}
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
	if v.Endpoint.Settings.Kind.Broker() {
		return "Delivery starts once the endpoint is verified."
	}
	return "We send a signed challenge, and the receiver sends it back. Delivery starts after that."
}

// whereText says what a change of the destination causes.
func whereText(f EndpointForm) string {
	if f.Kind == string(endpoint.Kafka) {
		return "New servers or a new topic must be verified again; deliveries are held until then."
	}
	if endpoint.Kind(f.Kind).Broker() {
		return "A new destination must be verified again; deliveries are held until then."
	}
	return "A new URL must be verified again; deliveries are held until then."
}

// EndpointSettingsView is the form of an endpoint's settings.
type EndpointSettingsView struct {
	EndpointHead
	Form EndpointForm
}

// nextTry is when a verification that is under way is tried again; zero: at once, or not.
func (v VerificationView) nextTry() time.Time {
	if !v.running() || v.Tries == 0 {
		return time.Time{}
	}
	return v.DueAt
}

func failuresTone(v EndpointView) components.Tone {
	switch {
	case v.Endpoint.Condition.State == condition.Failing, v.Endpoint.Condition.State == condition.Disabled:
		return components.Bad
	case v.Endpoint.FailuresInARow() > 0:
		return components.Warning
	}
	return components.Neutral
}

// stateText explains the condition, with what this page knows in addition.
func (v EndpointView) stateText() string {
	is := v.Endpoint.Condition
	text := is.Detail()
	if is.State == condition.Disabled && v.DisableWhy != "" {
		_, rest, _ := strings.Cut(text, ". ")
		text = v.DisableWhy + " " + rest
	}
	return text + " " + v.heldText()
}

func sinceSuccess(v EndpointView) string {
	if v.Endpoint.Record.Succeeded.IsZero() {
		return "no success yet"
	}
	return "since the last success"
}

func lastStat(ctx context.Context, v EndpointView) components.StatProps {
	stat := components.StatProps{Label: "Last success", Value: "None", Note: "no attempt has succeeded yet"}
	if at := v.Endpoint.Record.Succeeded; !at.IsZero() {
		stat.Value, stat.Note = components.Since(ctx, at), components.Stamp(at)
	} else if v.Endpoint.FailuresInARow() > 0 {
		stat.Tone = components.Warning
	}
	return stat
}

// limits are the endpoint's limits in a line.
func limits(s endpoint.Settings) string {
	rate := "No rate limit"
	if s.RateLimit != nil {
		rate = components.Count(int64(*s.RateLimit)) + " requests/s"
	}
	return fmt.Sprintf("%s, %d concurrent, %d s timeout", rate, s.MaxInFlight, s.TimeoutSeconds)
}
