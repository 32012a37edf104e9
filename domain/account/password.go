package account

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"posthorn/domain/fault"
)

// The bounds of a password, in characters. There are no rules of composition (NIST SP 800-63B, section 5.1.1.2): they make
// people choose Password1! and forget it.
const (
	MinPassword = 8
	MaxPassword = 128
)

//go:embed common.txt
var commonText string

var common = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(commonText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			words[unleet(line)] = true
		}
	}
	return words
})

// CheckPassword refuses a password that is too short, too long, or among the first that somebody would try: a common
// word, a walk over the keyboard, a run or repetition of characters, what is known about the account, or a simple variant
// of these. The error is a *fault.Error that names the field.
func CheckPassword(field, password string, about ...string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case n < MinPassword:
		return fault.InvalidField(field, "password_short", fmt.Sprintf("A password has at least %d characters. Three or four words that do not belong together are good and easy to remember.", MinPassword))
	case n > MaxPassword || !utf8.ValidString(password):
		return fault.InvalidField(field, "password_long", fmt.Sprintf("A password has at most %d characters.", MaxPassword))
	case guessable(password, about):
		return fault.InvalidField(field, "password_common", "This password is among the first that somebody would try. Three or four words that do not belong together are better.")
	}
	return nil
}

// addition is how many characters before and after a common word count for nothing: years, "123", "!!".
const addition = 6

func guessable(password string, about []string) bool {
	lower := strings.ToLower(strings.TrimSpace(password))
	if monotonous(lower) || walk(lower) {
		return true
	}
	known := map[string]bool{}
	for _, text := range about {
		text = strings.ToLower(strings.TrimSpace(text))
		for _, one := range append(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), text, strings.ReplaceAll(text, " ", "")) {
			if utf8.RuneCountInString(one) >= 3 {
				known[unleet(one)] = true
			}
		}
	}
	for _, core := range cores(lower) {
		plain := unleet(core)
		if common()[plain] || known[plain] || walk(core) || monotonous(core) {
			return true
		}
	}
	return false
}

// cores are a password as it is, and without what is added at its ends or said twice.
func cores(password string) []string {
	list := []string{password}
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	core := strings.TrimFunc(password, notLetter)
	if core != "" && utf8.RuneCountInString(password)-utf8.RuneCountInString(core) <= addition {
		list = append(list, core)
	}
	// A digit at the end may stand for a letter (passw0rd) or be added (password0): both are tried.
	right := strings.TrimRightFunc(password, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	list = append(list, right)
	for _, one := range list {
		if half := len(one) / 2; len(one)%2 == 0 && one[:half] == one[half:] {
			list = append(list, one[:half])
		}
	}
	return list
}

var leet = strings.NewReplacer("0", "o", "1", "i", "!", "i", "3", "e", "4", "a", "@", "a", "5", "s", "$", "s", "7", "t", "+", "t", "8", "b", "9", "g", "l", "i", " ", "")

// unleet undoes the usual replacements of letters. l and i become one, since 1 stands for both.
func unleet(s string) string { return leet.Replace(s) }

// monotonous reports whether a text is one short thing again and again, has two different bytes at most, or runs up or down
// the alphabet or the digits.
func monotonous(s string) bool {
	different := map[byte]bool{}
	for i := range len(s) {
		different[s[i]] = true
	}
	if len(s) >= MinPassword && len(different) <= 2 {
		return true
	}
	for unit := 1; unit <= 3 && unit*2 <= len(s); unit++ {
		if strings.Repeat(s[:unit], len(s)/unit+1)[:len(s)] == s {
			return true
		}
	}
	up, down := true, true
	for i := 1; i < len(s); i++ {
		up = up && (s[i] == s[i-1]+1 || s[i-1] == '9' && s[i] == '0')
		down = down && (s[i] == s[i-1]-1 || s[i-1] == '0' && s[i] == '9')
	}
	return len(s) > 2 && (up || down)
}

// The rows of keyboards, one way and the other, twice, since walks turn around.
var walks = []string{"qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn", "1234567890", "qazwsxedcrfvtgbyhnujmikolp", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0", "qweasdzxc", "147258369", "123qweasdzxc", "qwe123asd", "zaq12wsxcde34rfv"}

// walk reports whether a text goes along rows of the keyboard, one after the other, four keys or more at a time.
func walk(s string) bool {
	const least = 4
	for len(s) > 0 {
		best := 0
		for _, row := range walks {
			for _, way := range []string{row, reverse(row)} {
				n := 0
				for n < len(s) && strings.Contains(way, s[:n+1]) {
					n++
				}
				best = max(best, n)
			}
		}
		if best < least {
			return false
		}
		s = s[best:]
	}
	return true
}

func reverse(s string) string {
	out := make([]byte, len(s))
	for i := range len(s) {
		out[len(s)-1-i] = s[i]
	}
	return string(out)
}
