package components

import (
	"cmp"
	"time"

	"github.com/a-h/templ"

	"posthorn/views/icons"
)

// Kind is the emphasis of a button. The zero value is an outlined button, for most actions.
type Kind string

// The kinds of buttons. A page has at most one Primary.
const (
	Secondary Kind = ""
	Primary   Kind = "primary"
	Danger    Kind = "danger"
	Quiet     Kind = "quiet" // without an outline
)

// ButtonProps describe a button. A button in a form submits it, unless it opens or closes a dialog or Type is "button".
type ButtonProps struct {
	Label       string
	Icon        icons.Name
	Kind        Kind
	Small       bool
	IconOnly    bool   // shows only the icon; the label is its accessible name
	Type        string // default "submit"
	Name, Value string
	FormAction  string // the URL for this button instead of the form's
	Form        string // the id of the form, if the button is outside of it
	Opens       string // the id of a dialog
	Closes      string // the id of the dialog around the button
	Disabled    bool
	Why         string // the reason why it is disabled
	Attrs       templ.Attributes
}

func (p ButtonProps) class() string { return buttonClass(p.Kind, p.Small, p.IconOnly) }

// title is the button's tooltip. (templ has no else for attributes.)
func (p ButtonProps) title() string {
	if p.Why == "" && p.IconOnly {
		return p.Label
	}
	return p.Why
}

func (p ButtonProps) kind() string {
	switch {
	case p.Opens != "" || p.Closes != "":
		return "button"
	case p.Type != "":
		return p.Type
	}
	return "submit"
}

// dialog are the attributes with which a button opens or closes a dialog: a command in new browsers, a popover in
// browsers without commands. Both work without a script.
func (p ButtonProps) dialog() templ.Attributes {
	switch {
	case p.Opens != "":
		return templ.Attributes{"commandfor": p.Opens, "command": "show-modal", "popovertarget": p.Opens, "aria-haspopup": "dialog"}
	case p.Closes != "":
		return templ.Attributes{"commandfor": p.Closes, "command": "close", "popovertarget": p.Closes, "popovertargetaction": "hide", "data-close": true}
	}
	return nil
}

// LinkProps describe a link that looks like a button.
type LinkProps struct {
	Label    string
	Href     string
	Icon     icons.Name
	Kind     Kind
	Small    bool
	IconOnly bool
	Attrs    templ.Attributes
}

func buttonClass(kind Kind, small, iconOnly bool) string {
	class := "btn"
	if kind != Secondary {
		class += " btn-" + string(kind)
	}
	if small {
		class += " btn-small"
	}
	if iconOnly {
		class += " btn-icon"
	}
	return class
}

// FieldProps describe a labeled field. Name is required; the default of ID is derived from it.
type FieldProps struct {
	ID          string
	Name        string
	Label       string
	HideLabel   bool // for assistive technology only
	Value       string
	Hint        string
	Error       string // a sentence; marks the field as invalid
	Type        string // of an Input; default "text"
	Placeholder string
	Complete    string // autocomplete
	Unit        string // shown after an Input: "seconds"
	Required    bool
	Optional    bool // shows "optional" beside the label
	ReadOnly    bool
	Disabled    bool
	Mono        bool // code, URLs, ids
	Focus       bool // autofocus
	Min, Max    string
	Step        string
	MaxLength   int
	Rows        int    // of a Textarea; default 4
	Width       string // "short" for numbers, "medium"; default full
	Attrs       templ.Attributes
}

// InputID is the id of the control, for links to it.
func (p FieldProps) InputID() string {
	if p.ID != "" {
		return p.ID
	}
	return "f-" + p.Name
}

func (p FieldProps) class() string {
	class := "field"
	if p.Error != "" {
		class += " is-wrong"
	}
	if p.Width != "" {
		class += " field-" + p.Width
	}
	return class
}

func (p FieldProps) inputClass() string {
	if p.Mono {
		return "input mono"
	}
	return "input"
}

func (p FieldProps) kind() string {
	if p.Type == "" {
		return "text"
	}
	return p.Type
}

func (p FieldProps) rows() int {
	if p.Rows == 0 {
		return 4
	}
	return p.Rows
}

// aria connects hint and error to the control.
func (p FieldProps) aria() templ.Attributes {
	return describe(p.InputID(), p.Hint, p.Error)
}

func describe(id, hint, wrong string) templ.Attributes {
	a := templ.Attributes{}
	by := ""
	if hint != "" {
		by = id + "-hint"
	}
	if wrong != "" {
		if by != "" {
			by += " "
		}
		by += id + "-error"
		a["aria-invalid"] = "true"
	}
	if by != "" {
		a["aria-describedby"] = by
	}
	return a
}

// Option is one choice of a Select, a Radios or a Checks.
type Option struct {
	Value    string
	Label    string
	Hint     string // of Radios and Checks
	Selected bool
	Disabled bool
}

// ChoiceProps describe one checkbox.
type ChoiceProps struct {
	ID       string
	Name     string
	Value    string // default "true"
	Label    string
	Hint     string
	Error    string
	Checked  bool
	Disabled bool
	Attrs    templ.Attributes
}

func (p ChoiceProps) id() string {
	if p.ID != "" {
		return p.ID
	}
	return "f-" + p.Name
}

func (p ChoiceProps) value() string {
	if p.Value == "" {
		return "true"
	}
	return p.Value
}

// Column describes a column of a table. Its label is the column's head, and names the value on a narrow screen, which
// shows rows as cards.
type Column struct {
	Label     string
	HideLabel bool // for assistive technology only: checkboxes, menus
	Number    bool // aligned to the right
	Shrink    bool // as narrow as its content
}

func (c Column) class() string {
	switch {
	case c.Number:
		return "num"
	case c.Shrink:
		return "shrink"
	}
	return ""
}

// Tab is one of several views of an object, each a page of its own.
type Tab struct {
	Label  string
	Href   string
	Count  string
	Active bool
}

// Crumb is a page above the present one.
type Crumb struct{ Label, Href string }

// HeaderProps describe a page's head.
type HeaderProps struct {
	Title  string
	Text   string
	Crumbs []Crumb
	Badge  templ.Component // beside the title
}

// CardProps describe a framed part of a page. The heading of the zero Level is an h2.
type CardProps struct {
	ID      string
	Title   string
	Text    string
	Flush   bool            // its content extends to the frame, as tables do
	Actions templ.Component // beside the title
	Danger  bool
	Attrs   templ.Attributes
}

// DialogProps describe a dialog; a Button with Opens opens it.
type DialogProps struct {
	ID    string
	Title string
	Text  string
	Wide  bool
	Open  bool // open when the page loads: its form was rejected
}

// closer is the attributes of its close button. A dialog that was open when the page loaded is closed by a form with
// that method: nothing else closes it without a script.
func (p DialogProps) closer() ButtonProps {
	b := ButtonProps{Label: "Close", Icon: icons.Close, Kind: Quiet, Small: true, IconOnly: true, Closes: p.ID}
	if p.Open {
		b.Closes, b.Attrs = "", templ.Attributes{"data-close": true}
	}
	return b
}

// ConfirmProps describe a dialog that asks before an action that can't be undone.
type ConfirmProps struct {
	ID          string
	Title       string
	Text        string // what will happen, and to how many
	Action      string // the URL of its form
	Label       string // the text of its button: a verb
	Danger      bool
	Fields      map[string]string // hidden fields
	Reason      bool              // asks for a reason, in a field named "reason"
	Must        bool              // the reason is required
	ReasonInput ReasonInput       // of a rejected form
	Hint        string            // of the reason; default: where it is recorded
	Open        bool              // the page opens with it
	Attrs       templ.Attributes  // of the form
}

func (p ConfirmProps) opened() bool { return p.Open || p.ReasonInput.Wrong != "" }

// ReasonInput is the reason in a dialog's rejected form, and its error. The dialog opens again.
type ReasonInput struct{ Reason, Wrong string }

// keeper is the Cancel button.
func (p ConfirmProps) keeper() ButtonProps {
	b := ButtonProps{Label: "Cancel", Closes: p.ID}
	if p.opened() {
		b.Closes, b.Attrs = "", templ.Attributes{"data-close": true, "formmethod": "dialog", "formnovalidate": true}
	} else if !p.Must {
		b.Attrs = templ.Attributes{"autofocus": true} // within the dialog, once it is open
	}
	return b
}

// reason is the field for the reason. Its maximum length is the API's.
func (p ConfirmProps) reason() FieldProps {
	return FieldProps{
		ID:        p.ID + "-reason",
		Name:      "reason",
		Label:     "Reason",
		Value:     p.ReasonInput.Reason,
		Error:     p.ReasonInput.Wrong,
		Optional:  !p.Must,
		Required:  p.Must,
		Hint:      cmp.Or(p.Hint, "Recorded in the audit log."),
		MaxLength: 500,
		Focus:     p.Must || p.ReasonInput.Wrong != "",
	}
}

// CodeProps describe a block of code, shown unchanged.
type CodeProps struct {
	ID    string // required for the copy button
	Label string // its heading
	Text  string
	JSON  bool // JSON, shown with colors
	Wrap  bool
	Note  string // "first 16 KiB of 2 MiB"
}

// StatProps describe an important number.
type StatProps struct {
	Label string
	Value string
	Unit  string
	Note  string
	Tone  Tone
	Href  string
}

// StepState is the state of a step.
type StepState string

// The states of a step.
const (
	StepWaiting StepState = "waiting"
	StepRunning StepState = "running"
	StepDone    StepState = "done"
	StepFailed  StepState = "failed"
)

// StepProps describe one step.
type StepProps struct {
	State StepState
	Title string
	Text  string
}

func (s StepState) word() string {
	return map[StepState]string{StepWaiting: "to do", StepRunning: "running", StepDone: "done", StepFailed: "failed"}[s]
}

// TimelineProps describe one entry of a timeline.
type TimelineProps struct {
	Tone  Tone
	Icon  icons.Name
	Title string
	Time  time.Time
	Text  string
}

// ProgressProps describe the progress of a job. With an unknown total (0) it only shows activity.
type ProgressProps struct {
	ID          string
	Label       string
	Done, Total int64
	Text        string
}

// MenuProps describe a button that opens a list of actions.
type MenuProps struct {
	Label    string
	Icon     icons.Name
	IconOnly bool
	Small    bool
	Kind     Kind
	Up       bool // opens upwards
}

// MenuItem is a link or, with Action, a form's button in a menu.
type MenuItem struct {
	Label  string
	Icon   icons.Name
	Href   string
	Action string
	Fields map[string]string
	Opens  string // the id of a dialog
	Danger bool
	Active bool
}

// BulkProps describe a list with selectable rows.
type BulkProps struct {
	ID      string
	Action  string
	Noun    string          // the rows' noun, in the plural
	Actions templ.Component // its buttons, which differ by name and value
	Attrs   templ.Attributes
}

// Preset is a filter of a list that is one click away.
type Preset struct {
	Label, Href string
	Active      bool
}

// OtherTime is the value of the option of a Moment for any other time.
const OtherTime = "other"

// InPlace are the attributes of forms and links that show another state of the same page: its content is replaced, the
// address changes with it, and focus and scroll stay. Without a script they load the page. top scrolls to its top.
func InPlace(top bool) templ.Attributes {
	show := "none"
	if top {
		show = "window:top"
	}
	return templ.Attributes{
		"hx-boost":     "true",
		"hx-target":    "#main",
		"hx-select":    "#main",
		"hx-swap":      "morph:outerHTML show:" + show,
		"hx-sync":      "#main:replace",
		"hx-indicator": "#progress",
	}
}

// sentInPlace are the attributes of a dialog's form: what is rejected comes back into the page, with the dialog open.
// The form is sent once.
func sentInPlace() templ.Attributes {
	a := InPlace(false)
	a["hx-sync"] = "this:drop"
	return a
}
