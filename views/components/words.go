package components

import (
	"maps"
	"slices"
)

// Wrong is one thing that is wrong with a form: a sentence, and the id of the control, empty where it is no field's.
type Wrong struct{ ID, Detail string }

func sortedNames(fields map[string]string) []string { return slices.Sorted(maps.Keys(fields)) }

func confirmKind(danger bool) Kind {
	if danger {
		return Danger
	}
	return Primary
}

// note is how far the work is, in words.
func (p ProgressProps) note() string {
	if p.Total <= 0 {
		return "in progress"
	}
	return Count(p.Done) + " of " + Count(p.Total)
}

// codeName is what the copy button of a block of code says it copies.
func codeName(label string) string {
	if label == "" {
		return "this"
	}
	return label
}
