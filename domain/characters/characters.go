// Package characters holds the one rule for characters in names and texts. They appear on pages, in mails and in their
// subjects, where a character must neither break a line, hide, nor reorder the text around it (CWE-1007).
package characters

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line reports whether a text is one line that shows as it is written.
func Line(text string) bool { return fit(text, "") }

// Lines is Line for a text that can have line breaks and tabs.
func Lines(text string) bool { return fit(text, "\n\r\t") }

// Cleaned is a text as one line that shows as it is written: what breaks a line is a space, and what hides or reorders
// is left out. It is for texts that were stored before the rule, or that come from elsewhere.
func Cleaned(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if Line(text) {
		return text
	}
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unfit(r):
			return -1
		}
		return r
	}, text)), " ")
}

// Visible is a text for a terminal: what would move the cursor, change colors, hide, or reorder the text around it is
// written as \u001b is in JSON. Line breaks and tabs stay. JSON that is shown this way is the same JSON.
func Visible(text string) string {
	if plain(text) {
		return text
	}
	var b strings.Builder
	var before rune
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		after, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n', r == '\t', r == utf8.RuneError, isJoiner(r) && joins(before) && joins(after),
			!isJoiner(r) && !unfit(r):
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		before = r
	}
	return b.String()
}

// VisibleLine is Visible for one line of a terminal, such as a cell of a table.
func VisibleLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(text))
}

// plain reports whether a text is printable ASCII with line breaks and tabs, as most are.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

func fit(text, also string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case strings.ContainsRune(also, r):
		case isJoiner(r):
			if i == 0 || i == len(runes)-1 || !joins(runes[i-1]) || !joins(runes[i+1]) {
				return false
			}
		case unfit(r):
			return false
		}
	}
	return true
}

// Persian, Indic scripts and emoji need joiners between two of their characters. Elsewhere a joiner is invisible.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

func isJoiner(r rune) bool { return r == zeroWidthJoiner || r == zeroWidthNonJoiner }

func joins(r rune) bool { return r > unicode.MaxLatin1 && !unfit(r) && !unicode.IsSpace(r) }

// unfit are controls, line separators, and characters that are invisible or set the direction of text.
func unfit(r rune) bool {
	switch {
	case unicode.IsControl(r), r == utf8.RuneError, unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case r >= '\U000e0020' && r <= '\U000e007f': // tags: the flags of England, Scotland and Wales are written with them
		return false
	case unicode.Is(unicode.Cf, r): // bidi controls, zero-width space, word joiner, byte order mark, soft hyphen
		return true
	}
	return invisible[r]
}

// invisible are letters and marks without a glyph (Unicode's Default_Ignorable_Code_Point beside category Cf).
var invisible = map[rune]bool{
	'\u034f': true,
	'\u115f': true,
	'\u1160': true,
	'\u17b4': true,
	'\u17b5': true,
	'\u2800': true,
	'\u3164': true,
	'\uffa0': true,
}
