package pages

import (
	"time"

	"posthorn/views/components"
)

// invalidFilter is what a list says in place of its rows.
const invalidFilter = "Nothing is listed. Correct the filter, or clear it."

// PageNote says how many rows a page shows.
func PageNote(n int, short bool) string {
	switch {
	case short:
		return "Few matches so far. Keep searching older ones, or narrow the time range."
	case n == 0:
		return ""
	}
	return components.Many(int64(n), "row", "rows") + " on this page"
}

// localTime writes a time of the address for an input of the type datetime-local, in UTC.
func localTime(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05")
}
