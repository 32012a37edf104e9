package account

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// The bounds of a password, in characters. There are no rules of composition (NIST SP 800-63B, section 5.1.1.2): they
// make people choose Password1! and forget it.
const (
	minPassword = 8
	maxPassword = 128
)

// The 20,000 most common passwords of published leaks, in lower case, one a line. The file is django/contrib/auth/
// common-passwords.txt.gz of Django 5.2, unchanged (BSD-3-Clause; the list is by Royce Williams).
//
//go:embed common.txt.gz
var commonList []byte

var common = sync.OnceValue(func() map[string]bool {
	list, err := gzip.NewReader(bytes.NewReader(commonList))
	if err != nil {
		panic(err) // the file is part of the program
	}
	text, err := io.ReadAll(list)
	if err != nil {
		panic(err)
	}
	words := map[string]bool{"posthorn": true, "webhook": true, "webhooks": true}
	for line := range strings.Lines(string(text)) {
		words[strings.TrimSpace(line)] = true
	}
	return words
})

// CheckPassword rejects a password that is too short, too long, or easy to guess: one of the most common passwords, or
// what is known about the account. The error is a *fault.Error that names the field.
func CheckPassword(field, password string, about ...string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < minPassword:
		return fault.InvalidField(field, "password_short", fmt.Sprintf(
			"Use at least %d characters. Tip: use three or four random words.", minPassword))
	case n > maxPassword || !utf8.ValidString(password):
		return fault.InvalidField(field, "password_long", fmt.Sprintf("Use at most %d characters.", maxPassword))
	case guessable(password, about):
		return fault.InvalidField(field, "password_common", "This password is too common. Tip: use three or four random words.")
	}
	return nil
}

// maxAdded is how many digits and signs at the ends of a common password count for nothing: years, 123, !!.
const maxAdded = 6

// guessable also looks at a password without the digits and signs at its ends: Summer2026! is summer.
func guessable(password string, about []string) bool {
	whole := strings.ToLower(strings.TrimSpace(password))
	core := strings.TrimFunc(whole, func(r rune) bool { return !unicode.IsLetter(r) })
	if utf8.RuneCountInString(whole)-utf8.RuneCountInString(core) > maxAdded {
		core = whole
	}
	for _, text := range []string{whole, core} {
		if common()[text] || slices.Contains(knownWords(about), strings.ReplaceAll(text, " ", "")) {
			return true
		}
	}
	return false
}

// knownWords are the names and addresses of an account: each whole, and each of its words.
func knownWords(about []string) (words []string) {
	for _, text := range about {
		text = strings.ToLower(text)
		words = append(words, strings.ReplaceAll(text, " ", ""))
		words = append(words, strings.FieldsFunc(text, func(r rune) bool {
			return !unicode.IsLetter(r) &&
				!unicode.IsDigit(r)
		})...)
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
