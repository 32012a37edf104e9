package words

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
		{strings.Repeat("ä", MaxReason), 0, ""},
		{strings.Repeat("ä", MaxReason+1), 0, "text_length"},
		{"a\x00b", 0, "text_characters"},
		{"a\x1b[31mb", 0, "text_characters"},
	} {
		code := ""
		if found := ReasonFaults(c.text, c.least); len(found) > 0 {
			code = found[0].Code
		}
		if code != c.code {
			t.Errorf("%.20q of at least %d: %q, want %q", c.text, c.least, code, c.code)
		}
	}
}

func TestNumbersAndTextsAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -123456: "-123,456", 1234567: "1,234,567"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	if one, many := Count(1, "day", "days"), Count(2000, "day", "days"); one != "1 day" || many != "2,000 days" {
		t.Errorf("%q, %q", one, many)
	}
	if a, an := A("developer"), A("admin"); a != "a developer" || an != "an admin" {
		t.Errorf("%q, %q", a, an)
	}
	if whole, cut := Short("äöü", 3), Short("äöüß", 3); whole != "äöü" || cut != "äö…" {
		t.Errorf("%q, %q", whole, cut)
	}
}
