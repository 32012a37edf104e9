package reason

import (
	"strings"
	"testing"
)

func TestAReasonIsATextOfBoundedLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		least int
		code  string
	}{
		{"", 0, ""},
		{"", 1, "text_length"},
		{"the receiver is back", 1, ""},
		{"two lines\r\nand a\ttab", 1, ""},
		{strings.Repeat("ä", Max), 0, ""},
		{strings.Repeat("ä", Max+1), 0, "text_length"},
		{"a\x00b", 0, "text_characters"},
		{"a\x1b[31mb", 0, "text_characters"},
	} {
		code := ""
		if found := Faults(c.text, c.least); len(found) > 0 {
			code = found[0].Code
		}
		if code != c.code {
			t.Errorf("%.20q of at least %d: %q, want %q", c.text, c.least, code, c.code)
		}
	}
}
