package pages

import (
	"github.com/a-h/templ"

	"posthorn/domain/show"
	"posthorn/views/components"
)

// ConnectionView is a test of a connection.
type ConnectionView struct {
	Steps []show.ConnectionStep
	Form  EndpointForm // with the errors of a form that can't be tried
}

// stepTone is the color of a step's state.
func stepTone(s show.StepState) components.Tone {
	switch s {
	case show.StepOK:
		return components.Good
	case show.StepFailed:
		return components.Bad
	}
	return components.Neutral
}

// connectionTest are the attributes of the button that tests the connection of its form.
func connectionTest(href string) templ.Attributes {
	return templ.Attributes{
		"hx-post":         href,
		"hx-target":       "#connection",
		"hx-swap":         "innerHTML",
		"hx-push-url":     "false",
		"hx-disabled-elt": "this",
	}
}

func connectionTitle(v ConnectionView) string {
	if show.StepsOK(v.Steps) {
		return "The connection works"
	}
	return "The connection failed"
}
