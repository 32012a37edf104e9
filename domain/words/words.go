// Package words writes numbers and texts as people read them, and has the rule of the reasons that they give.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/fault"
)

// Number is a number as people read it: 100,000.
func Number[N ~int | ~int32 | ~int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Count is a number with its noun, in the singular for one.
func Count[N ~int | ~int32 | ~int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// A is a noun with its indefinite article, by its first letter.
func A(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// Short is a text of at most so many characters. The last one shows that something is left out.
func Short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// MaxReason is how many characters a reason has at most.
const MaxReason = 500

// ReasonFaults says what is wrong with a reason of at least so many characters.
func ReasonFaults(text string, least int) []fault.Field {
	refuse := func(code, detail string) []fault.Field {
		return []fault.Field{{Name: "reason", Code: code, Detail: detail}}
	}
	switch n := utf8.RuneCountInString(text); {
	case n > MaxReason:
		return refuse("text_length", fmt.Sprintf("A reason can have at most %d characters; this one has %d.", MaxReason, n))
	case n < least:
		return refuse("text_length", fmt.Sprintf("Enter a reason of %d to %d characters.", least, MaxReason))
	case !characters.Lines(text):
		return refuse("text_characters", "A reason must not contain control characters or invisible characters.")
	}
	return nil
}
