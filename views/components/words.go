package components

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence capitalizes the first letter and replaces underscores.
func Sentence(word string) string { return Capital(strings.ReplaceAll(word, "_", " ")) }

// Capital capitalizes the first letter.
func Capital(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[n:]
}

// Wrong is an error of a form: a sentence, and the id of the control; empty if it belongs to no field.
type Wrong struct{ ID, Detail string }

func sortedNames(fields map[string]string) []string { return slices.Sorted(maps.Keys(fields)) }

func confirmKind(danger bool) Kind {
	if danger {
		return Danger
	}
	return Primary
}

// note is the progress in words.
func (p ProgressProps) note() string {
	if p.Total <= 0 {
		return "in progress"
	}
	return Count(p.Done) + " of " + Count(p.Total)
}

// codeName is the accessible name of the code that the copy button copies.
func codeName(label string) string {
	if label == "" {
		return "this"
	}
	return label
}
