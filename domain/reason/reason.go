// Package reason holds the rule of reasons that people give: a text of their own, which the audit log keeps.
package reason

import (
	"fmt"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

// Max is how many characters a reason has at most.
const Max = 500

// Faults says what is wrong with a reason of at least so many characters.
func Faults(text string, least int) []fault.Field {
	refuse := func(code, detail string) []fault.Field {
		return []fault.Field{{Name: "reason", Code: code, Detail: detail}}
	}
	switch n := utf8.RuneCountInString(text); {
	case n > Max:
		return refuse("text_length", fmt.Sprintf("A reason can have at most %d characters; this one has %d.", Max, n))
	case n < least:
		return refuse("text_length", fmt.Sprintf("Enter a reason of %d to %d characters.", least, Max))
	case !characters.Lines(text):
		return refuse("text_characters", "A reason must not contain control characters or invisible characters.")
	}
	return nil
}
