// Package pages holds the pages, each beside its view model.
package pages

import (
	"posthorn/views/components"
	"posthorn/views/layout"
)

// Form is a page with one form: signing in, a link from a mail, a confirmation.
type Form struct {
	Shell   layout.Shell
	Title   string
	Text    string
	Command string // to be run in a terminal; empty: none
	More    string // the text after the command
	Note    string // a framed note
	Wrong   string // why the form was rejected, if no field is the cause
	Action  string // the form's address; empty: there is no form
	Hidden  map[string]string
	Fields  []components.FieldProps
	Submit  string
	Danger  bool
	Ways    []Link      // alternatives, as buttons below
	Passkey *PasskeyWay // nil: none
	Links   []Link
}

// Link leads somewhere else.
type Link struct{ Label, Href string }

func (v Form) kind() components.Kind {
	if v.Danger {
		return components.Danger
	}
	return components.Primary
}

// WithErrors shows errors beside their fields; those of no field are above the form.
func (v Form) WithErrors(wrong map[string]string) Form {
	fields := make([]components.FieldProps, len(v.Fields))
	copy(fields, v.Fields)
	rest := ""
	for name, detail := range wrong {
		found := false
		for i := range fields {
			if fields[i].Name == name {
				fields[i].Error, found = detail, true
			}
		}
		if !found {
			rest = detail
		}
	}
	v.Fields = fields
	if rest != "" {
		v.Wrong = rest
	}
	return v
}
