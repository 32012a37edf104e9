package console

import (
	"net/url"
	"strings"

	"posthorn/domain/condition"
	"posthorn/domain/incidents"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// AlertsView is the page of the platform's alerts: those that are open, and where each kind is sent.
type AlertsView struct {
	Shell            layout.Shell
	Root             string
	Tenant           string // the page of the platform's own tenant; empty: there is none
	Operators        []string
	Kinds            []AlertKindLine
	Channels         []ChannelLine
	Alerts           []incidents.Kept // the open ones first
	Description, URL components.FieldProps
	Typed            url.Values
	Wrong            map[string]string
	NewSecret        string // of a channel that was just added
	NewKey           string // of the platform's own tenant, if it was just created
}

// AlertKindLine is where alerts of a kind are sent.
type AlertKindLine struct {
	Kind     incidents.Kind
	Muted    bool
	Channels []show.AlertChannel
}

// ChannelLine is an endpoint that gets alerts.
type ChannelLine struct {
	show.AlertChannel
	Shown      string // its id
	Condition  condition.Condition
	Deliveries string
}

// shownOperators is how many addresses the page names.
const shownOperators = 3

// mailing says who gets emails, and how often.
func (v AlertsView) mailing() string {
	const often = " They repeat once per UTC day for as long as the cause lasts."
	switch n := len(v.Operators); {
	case n == 0:
		return "Nobody gets emails: there is no operator who can sign in."
	case n > shownOperators:
		return "Emails are sent to " + strings.Join(v.Operators[:shownOperators], ", ") + " and " + components.Many(int64(n-shownOperators), "more", "more") + "." + often
	}
	return "Emails are sent to " + strings.Join(v.Operators, ", ") + "." + often
}

// mailed says whether operators get a kind by email.
func mailed(k incidents.Kind) string {
	if k.Mailed() {
		return "Operators"
	}
	return "Not emailed"
}

// wrongOf is the error of the channel's transformation.
func (v AlertsView) wrongOf(field string) string {
	for name, text := range v.Wrong {
		if name == field || strings.HasPrefix(name, field+".") {
			return text
		}
	}
	return ""
}

// wrong are the errors of the form.
func (v AlertsView) wrong() []components.Wrong {
	preset := components.FieldProps{Name: "preset", ID: "f-preset", Error: v.wrongOf("transformation")}
	other := components.FieldProps{Name: "url", Error: v.wrongOf("endpoints")}
	return wrongIn(v.Description, v.URL, preset, other)
}

func alertTone(k incidents.Kind) components.Tone {
	if k.Severity() == notice.Critical {
		return components.Bad
	}
	return components.Warning
}
