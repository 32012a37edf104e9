package pages

import "posthorn/views/components"

// Refused is a dialog's rejected form: the dialog, and the typed reason.
type Refused struct {
	Dialog string // its id
	components.ReasonInput
}

// said is the rejected input of a dialog; zero if another dialog was rejected.
func (r Refused) said(dialog string) components.ReasonInput {
	if r.Dialog == dialog {
		return r.ReasonInput
	}
	return components.ReasonInput{}
}

// summary shows the error at the head of the page: the dialog no longer exists if somebody else has done the action.
func (r Refused) summary() []components.Wrong {
	if r.Wrong == "" {
		return nil
	}
	return []components.Wrong{{Detail: r.Wrong}}
}

// WrongList are a form's errors for its summary, in the order of its fields; those of no field come first.
func WrongList(wrong map[string]string, names ...string) []components.Wrong {
	var out []components.Wrong
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
		if detail := wrong[name]; detail != "" {
			out = append(out, components.Wrong{
				ID:     components.FieldProps{Name: name}.InputID(),
				Detail: components.Capital(detail),
			})
		}
	}
	var rest []components.Wrong
	for name, detail := range wrong {
		if !listed[name] && detail != "" {
			rest = append(rest, components.Wrong{Detail: components.Capital(detail)})
		}
	}
	return append(rest, out...)
}

var wrongList = WrongList
