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

// wrongList are the faults of a form for its summary, in the order of its fields; what belongs to none of them comes first.
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
