package pages

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"posthorn/views/components"
)

// sentence begins a text with a capital letter and takes underscores out of it.
func sentence(word string) string {
	return capital(strings.ReplaceAll(word, "_", " "))
}

// capital is a text that begins with a capital letter.
func capital(word string) string {
	r, n := utf8.DecodeRuneInString(word)
	if n == 0 {
		return word
	}
	return string(unicode.ToUpper(r)) + word[n:]
}

// Refused is a dialog's form that was refused: which dialog it was, and the reason that was typed.
type Refused struct {
	Dialog string // its id
	components.ReasonInput
}

// said is what a dialog shows again; nothing where it was not the one.
func (r Refused) said(dialog string) components.ReasonInput {
	if r.Dialog == dialog {
		return r.ReasonInput
	}
	return components.ReasonInput{}
}

// summary says at the head of the page what is wrong: the dialog is not there any more where somebody else has done it.
func (r Refused) summary() []components.Wrong {
	if r.Wrong == "" {
		return nil
	}
	return []components.Wrong{{Detail: r.Wrong}}
}

// wrongList are the faults of a form for its summary, in the order of its fields; what belongs to none of them comes
// first.
func wrongList(wrong map[string]string, names ...string) []components.Wrong {
	var out []components.Wrong
	listed := map[string]bool{}
	for _, name := range names {
		listed[name] = true
		if detail := wrong[name]; detail != "" {
			out = append(out, components.Wrong{ID: components.FieldProps{Name: name}.InputID(), Detail: detail})
		}
	}
	var rest []components.Wrong
	for name, detail := range wrong {
		if !listed[name] && detail != "" {
			rest = append(rest, components.Wrong{Detail: detail})
		}
	}
	return append(rest, out...)
}
