package components

import (
	"time"

	"github.com/a-h/templ"

	"posthorn/views/icons"
)

// Kind is how much a button stands out. The zero value is an outlined button, for most actions.
type Kind string

// The kinds of buttons. A page has one Primary at most.
const (
	Secondary Kind = ""
	Primary   Kind = "primary"
	Danger    Kind = "danger"
	Quiet     Kind = "quiet" // without an outline
)

// ButtonProps are a button's. A button of a form submits it, unless it opens or closes a dialog or Type says "button".
type ButtonProps struct {
	Label       string
	Icon        icons.Name
	Kind        Kind
	Small       bool
	IconOnly    bool   // shows the icon alone; the label is what it is called
	Type        string // "submit" unless set
	Name, Value string
	FormAction  string // sends its form elsewhere
	Form        string // the id of a form that it stands outside of
	Opens       string // the id of a dialog
	Closes      string // the id of the dialog that it stands in
	Disabled    bool
	Why         string // says why it is disabled
	Attrs       templ.Attributes
}

func (p ButtonProps) class() string { return buttonClass(p.Kind, p.Small, p.IconOnly) }

// title is what shows when the pointer rests on it. (Attributes know no else.)
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

// dialog are the attributes by which a button opens or closes a dialog: by command in new browsers, as a popover in
// those that don't know commands, so without a script in both.
func (p ButtonProps) dialog() templ.Attributes {
	switch {
	case p.Opens != "":
		return templ.Attributes{"commandfor": p.Opens, "command": "show-modal", "popovertarget": p.Opens, "aria-haspopup": "dialog"}
	case p.Closes != "":
		return templ.Attributes{"commandfor": p.Closes, "command": "close", "popovertarget": p.Closes, "popovertargetaction": "hide", "data-close": true}
	}
	return nil
}

// LinkProps are a link's that looks like a button.
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

// FieldProps are a labelled field's. Name is required; ID is made from it unless set.
type FieldProps struct {
	ID          string
	Name        string
	Label       string
	HideLabel   bool // for assistive technology alone, where the place says it
	Value       string
	Hint        string
	Error       string // a sentence; the field is marked as wrong
	Type        string // of an Input: "text" unless set
	Placeholder string
	Complete    string // autocomplete
	Unit        string // shown behind an Input: "seconds"
	Required    bool
	Optional    bool // says "optional" beside the label
	ReadOnly    bool
	Disabled    bool
	Mono        bool // code, URLs, ids
	Focus       bool // autofocus
	Min, Max    string
	Step        string
	MaxLength   int
	Rows        int    // of a Textarea: 4 unless set
	Width       string // "short" for numbers, "medium"; full unless set
	Attrs       templ.Attributes
}

// InputID is the id of the control, for links that lead to it.
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

// aria ties hint and error to the control.
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

// ChoiceProps are those of one box to tick.
type ChoiceProps struct {
	ID       string
	Name     string
	Value    string // "true" unless set
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

// Column is one of a table. Its label heads the column, and names the value where a narrow screen shows rows as cards.
type Column struct {
	Label     string
	HideLabel bool // for assistive technology alone: boxes, menus
	Number    bool // set to the right
	Shrink    bool // as narrow as its content
}

// TableProps are a table's. Caption says what it lists, for assistive technology.
type TableProps struct {
	ID      string
	Caption string
	Columns []Column
	Brief   bool // a row takes two lines on a narrow screen: the lead and the status, then the rest without labels
	Attrs   templ.Attributes
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

// Tab is one of several views of a thing, each a page of its own.
type Tab struct {
	Label  string
	Href   string
	Count  string
	Active bool
}

// Crumb is a page above the present one.
type Crumb struct{ Label, Href string }

// HeaderProps are a page's head.
type HeaderProps struct {
	Title  string
	Text   string
	Crumbs []Crumb
	Badge  templ.Component // beside the title
}

// CardProps are those of a framed part of a page. The zero Level heads it with h2.
type CardProps struct {
	ID      string
	Title   string
	Text    string
	Flush   bool            // its content reaches the frame, as tables do
	Actions templ.Component // beside the title
	Danger  bool
	Attrs   templ.Attributes
}

// EmptyProps say what is not there, and what to do next.
type EmptyProps struct {
	Icon  icons.Name
	Title string
	Text  string
}

// PageProps are those of a list's pages: links, empty where there is none.
type PageProps struct {
	Previous, Next string
	Note           string // "50 of many"
}

// AlertProps are those of a message that stands on the page.
type AlertProps struct {
	Tone  Tone
	Title string
	Text  string
}

// DialogProps are a dialog's; a Button with Opens opens it.
type DialogProps struct {
	ID    string
	Title string
	Text  string
	Wide  bool
	Open  bool // as the page comes: its form was refused
}

// closer is its cross. What a page brought open is closed by sending a form of that method: nothing else does it
// without a script.
func (p DialogProps) closer() ButtonProps {
	b := ButtonProps{Label: "Close", Icon: icons.Close, Kind: Quiet, Small: true, IconOnly: true, Closes: p.ID}
	if p.Open {
		b.Closes, b.Attrs = "", templ.Attributes{"data-close": true}
	}
	return b
}

// ConfirmProps are those of a dialog that asks before it does something that can't be undone.
type ConfirmProps struct {
	ID          string
	Title       string
	Text        string // what will happen, and to how many
	Action      string // where its form is posted
	Label       string // what its button says: a verb
	Danger      bool
	Fields      map[string]string // hidden fields
	Reason      bool              // asks why, in a field named "reason"
	Must        bool              // the reason can't be left out
	ReasonInput ReasonInput       // where the form was refused
	Attrs       templ.Attributes  // of the form
}

// ReasonInput is the reason that was given in a dialog whose form was refused, and what is wrong with it. The dialog
// comes back open.
type ReasonInput struct{ Reason, Wrong string }

// keeper is the button that leaves everything as it is.
func (p ConfirmProps) keeper() ButtonProps {
	b := ButtonProps{Label: "Cancel", Closes: p.ID}
	if p.ReasonInput.Wrong != "" {
		b.Closes, b.Attrs = "", templ.Attributes{"data-close": true, "formmethod": "dialog", "formnovalidate": true}
	} else if !p.Must {
		b.Attrs = templ.Attributes{"autofocus": true} // within the dialog, once it is open
	}
	return b
}

// reason is the field that asks why. An answer may be as long as in the API.
func (p ConfirmProps) reason() FieldProps {
	return FieldProps{
		ID: p.ID + "-reason", Name: "reason", Label: "Reason", Value: p.ReasonInput.Reason, Error: p.ReasonInput.Wrong, Optional: !p.Must,
		Required: p.Must,
		Hint:     "Recorded in the audit log.", MaxLength: 500, Focus: p.Must || p.ReasonInput.Wrong != "",
	}
}

// CodeProps are those of a block of code, shown as text whatever it holds.
type CodeProps struct {
	ID    string // needed for the copy button
	Label string // what it is, for its head
	Text  string
	JSON  bool // it is JSON, and is colored
	Wrap  bool
	Note  string // "first 16 KiB of 2 MiB"
}

// CopyProps are those of a value that is there to be copied.
type CopyProps struct {
	ID    string
	Label string
	Value string
	Hint  string
}

// StatProps are those of a number that matters.
type StatProps struct {
	Label string
	Value string
	Unit  string
	Note  string
	Tone  Tone
	Href  string
}

// StepState is how far a step of several is.
type StepState string

// The states of a step.
const (
	StepWaiting StepState = "waiting"
	StepRunning StepState = "running"
	StepDone    StepState = "done"
	StepFailed  StepState = "failed"
)

// StepProps are those of one step.
type StepProps struct {
	State StepState
	Title string
	Text  string
}

func (s StepState) word() string {
	return map[StepState]string{StepWaiting: "to do", StepRunning: "running", StepDone: "done", StepFailed: "failed"}[s]
}

// TimelineProps are those of one entry of a timeline.
type TimelineProps struct {
	Tone  Tone
	Icon  icons.Name
	Title string
	Time  time.Time
	Text  string
}

// ProgressProps are those of work that is under way. An unknown total (0) shows that something runs.
type ProgressProps struct {
	ID          string
	Label       string
	Done, Total int64
	Text        string
}

// MenuProps are those of a button that opens a list of actions.
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

// FilterProps are those of a form that narrows a list down; all of it lies in the address.
type FilterProps struct {
	Label  string // what it narrows down, for assistive technology
	Action string
	Clear  string // where all is shown again; empty where nothing is narrowed down
	Attrs  templ.Attributes
}

// BulkProps are those of a list whose rows can be chosen.
type BulkProps struct {
	ID      string
	Action  string
	Noun    string          // what the rows are, in the plural
	Actions templ.Component // its buttons; they tell themselves apart by name and value
	Attrs   templ.Attributes
}
