package pages

import (
	"posthorn/domain/signature"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// SignatureView is the signature debugger.
type SignatureView struct {
	Shell    layout.Shell
	Root     string
	Wrong    map[string]string
	Fields   []components.FieldProps // secret, prefix, tolerance
	Format   components.FieldProps
	Formats  []components.Option
	Headers  components.FieldProps
	Body     components.FieldProps
	Findings []signature.Finding // empty before anything was entered
	Good     bool
}

var checkTitles = map[signature.Check]string{
	signature.CheckSecret:    "Secret",
	signature.CheckHeaders:   "Headers",
	signature.CheckID:        "Message id",
	signature.CheckTimestamp: "Timestamp",
	signature.CheckScheme:    "Signature format",
	signature.CheckSignature: "Signature",
}

func findingStep(f signature.Finding) components.StepProps {
	p := components.StepProps{Title: checkTitles[f.Check], Text: f.Detail}
	switch f.State {
	case signature.Passed:
		p.State = components.StepDone
	case signature.Broken:
		p.State = components.StepFailed
	default:
		p.State, p.Text = components.StepWaiting, "Not checked: fix the step above first."
	}
	return p
}
