package id

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxExternal is the length of the longest external id, in characters.
const MaxExternal = 256

// ValidExternal reports whether a text can be an id of the company's own beside Posthorn's id of the kind: 1 to 256
// characters without control characters and without white space at either end. It is not "." or "..", which clients
// drop from a path, and not the text of an id of the kind: each text names one object.
func ValidExternal(k Kind, text string) bool {
	if text == "" || text == "." || text == ".." || !utf8.ValidString(text) || utf8.RuneCountInString(text) > MaxExternal {
		return false
	}
	if strings.ContainsFunc(text, unicode.IsControl) || strings.TrimSpace(text) != text {
		return false
	}
	_, err := k.Parse(text)
	return err != nil
}
