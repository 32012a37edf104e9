package pages

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"posthorn/domain/compare"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// DeliveryView is the page of one delivery.
type DeliveryView struct {
	Shell   layout.Shell
	Root    string
	Stale   string // why the action was rejected; the page shows the present state
	Refused Refused
	show.DeliveryDetail
	Chosen   *AttemptDetail
	Compared *Comparison // of the selected attempt's response with another's
	Acts     bool
	Shares   bool // can create read-only links
	Links    []show.DeliveryShare
	NewLink  string // the URL of a link that was just created
}

// AttemptDetail is the selected attempt with its request and response.
type AttemptDetail struct {
	show.Attempt
	Request  show.Request
	Hidden   bool // the actor can't read payloads
	Record   bool // it was sent as a record in a topic
	Body     Excerpt
	Curl     string
	Response Excerpt
}

// Excerpt is the start of a body, as text.
type Excerpt struct {
	Text string
	Nice string // the same JSON, indented; empty if it is not JSON, or not complete
	Note string // the size of the whole body; empty: this is all of it
	JSON bool   // it is JSON as far as it was read
	Gone string // why there is no body
	Size int    // of the whole body, in bytes
}

// sent names what was sent: a request or a record.
func (d AttemptDetail) sent() string {
	if d.Record {
		return "Record"
	}
	return "Request"
}

// Comparison is what differs between the responses to two attempts.
type Comparison struct {
	From, To int // the attempts' numbers
	Lines    []compare.Line
}

// same reports whether nothing differs.
func (c Comparison) same() bool {
	return !slices.ContainsFunc(c.Lines, func(l compare.Line) bool { return l.Kind != compare.Same })
}

// attempt is the address of one attempt; empty for numbers below one.
func (v DeliveryView) attempt(n int) string {
	if n > 0 && slices.ContainsFunc(v.Attempts, func(t show.Attempt) bool { return t.Number == n }) {
		return v.path() + "?attempt=" + strconv.Itoa(n) + "#attempt"
	}
	return ""
}

// compare is the address of the comparison of the selected attempt's response with the one before; empty if there is
// none.
func (v DeliveryView) compare() string {
	if v.Chosen == nil || v.Chosen.Hidden || v.attempt(v.Chosen.Number-1) == "" {
		return ""
	}
	return v.compareWith(v.Chosen.Number - 1)
}

func (v DeliveryView) compareWith(n int) string {
	return v.path() + "?attempt=" + strconv.Itoa(v.Chosen.Number) + "&with=" + strconv.Itoa(n) + "#compared"
}

// delivery is the address of a delivery.
func (v DeliveryView) delivery(of id.UUID) string {
	return v.Root + "/deliveries/" + id.Delivery.Format(of)
}

func (v DeliveryView) path() string { return v.delivery(v.ID) }

func (v DeliveryView) live() bool { return !v.Status.Terminal() }

func (v DeliveryView) liveURL() string {
	if v.Chosen != nil {
		at := v.path() + "/live?attempt=" + strconv.Itoa(v.Chosen.Number)
		if v.Compared != nil {
			at += "&with=" + strconv.Itoa(v.Compared.From)
		}
		return at
	}
	return v.path() + "/live"
}

// DeliveryAction is a button on a delivery's page.
type DeliveryAction struct {
	Name    string // as in the path
	Label   string
	Icon    icons.Name
	Kind    components.Kind
	Confirm bool // asks first, in the dialog with its name
}

// deliveryActions are the permitted actions on a delivery in its state.
func deliveryActions(s delivery.Status, archived, sendable, replayed bool) []DeliveryAction {
	var out []DeliveryAction
	if delivery.CanRetryNow(s) {
		out = append(out, DeliveryAction{Name: "retry-now", Label: "Retry now", Icon: icons.Refresh, Kind: components.Primary})
	}
	if delivery.CanCancel(s) {
		out = append(out, DeliveryAction{Name: "cancel", Label: "Cancel", Icon: icons.Cancel, Confirm: true})
	}
	if delivery.CanReplay(s) && sendable {
		a := DeliveryAction{Name: "replay", Label: "Replay", Icon: icons.Send, Kind: components.Secondary, Confirm: true}
		if replayed {
			a.Label = "Replay again"
		} else if s == delivery.Failed {
			a.Kind = components.Primary
		}
		out = append(out, a)
	}
	if delivery.CanArchive(s) {
		if archived {
			out = append(out, DeliveryAction{Name: "unarchive", Label: "Unarchive", Icon: icons.Archive})
		} else {
			out = append(out, DeliveryAction{Name: "archive", Label: "Archive", Icon: icons.Archive})
		}
	}
	return out
}

func (v DeliveryView) actions() []DeliveryAction {
	if !v.Acts {
		return nil
	}
	return deliveryActions(v.Status, v.Archived(), v.Sendable, !v.ReplayedBy.IsZero())
}

func (v DeliveryView) confirm(a DeliveryAction) components.ConfirmProps {
	p := components.ConfirmProps{
		ID:          "confirm-" + a.Name,
		Action:      v.path() + "/" + a.Name,
		Label:       a.Label,
		Reason:      true,
		ReasonInput: v.Refused.said("confirm-" + a.Name),
	}
	switch a.Name {
	case "cancel":
		p.Title, p.Danger, p.Reason = "Cancel this delivery?", true, false
		p.Text = "The delivery isn't retried. A request in flight isn't stopped. You can replay it later."
		p.Label = "Cancel delivery"
	case "replay":
		p.Title = "Replay this delivery?"
		p.Text = "A new delivery sends the same event, with the same id and body, to " + v.Endpoint.Name() + ". This delivery's attempts don't change."
		if !v.ReplayedBy.IsZero() {
			p.Title, p.Fields = "Replay this delivery again?", map[string]string{"again": "true"}
			p.Text = "It was already replayed as " + components.ShortID(id.Delivery.Format(v.ReplayedBy)) + ". " + p.Text
		}
	}
	return p
}

func attemptTone(t show.Attempt) components.Tone {
	if t.Result.Failure == delivery.FailNone && t.Result.Status >= 200 && t.Result.Status < 300 {
		return components.Good
	}
	return components.Bad
}

func attemptIcon(t show.Attempt) icons.Name {
	if attemptTone(t) == components.Good {
		return icons.Check
	}
	return icons.Close
}

func attemptName(t show.Attempt) string {
	if t.Late {
		return fmt.Sprintf("Attempt %d, late", t.Number)
	}
	return fmt.Sprintf("Attempt %d", t.Number)
}

// longest is the scale of the attempts' phases.
func longest(attempts []show.Attempt) (scale time.Duration) {
	for _, t := range attempts {
		scale = max(scale, t.Phases.Total)
	}
	return scale
}

// headerText writes headers as in a request.
func headerText(headers []signature.Header) string {
	var b []byte
	for _, h := range headers {
		b = append(append(append(append(b, h.Name...), ": "...), h.Value...), '\n')
	}
	return string(b)
}
