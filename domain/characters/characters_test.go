package characters

import "testing"

func TestTextsShowAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, fit := range map[string]bool{
		"":              true,
		"Acme":          true,
		"名前":            true,
		"Ünïcode <b>":   true,
		"می\u200cخواهم": true,
		"👩\u200d💻 Team": true,
		"क्\u200dष":     true,
		"a\nb":          false,
		"a\tb":          false,
		"a\x00b":        false,
		"a\u0085b":      false,
		"a\u2028b":      false,
		"a\u2029b":      false,
		"\xff":          false,
		"\ufffd":        false,
		"A\u202ecba":    false,
		"A\u2066b":      false,
		"A\u061cb":      false,
		"A\u200eb":      false,
		"A\u200fb":      false,
		"A\u200bB":      false,
		"A\ufeffB":      false,
		"A\u2060B":      false,
		"A\u00adB":      false,
		"A\u200dB":      false,
		"A\u200cB":      false,
		"名\u200d":       false,
		"\u200d名":       false,
		"A\u3164B":      false,
		"A\u115fB":      false,
		"A\u180eB":      false,
		"A\u2800B":      false,
	} {
		if Line(text) != fit {
			t.Errorf("%+q: one line %t, want %t", text, !fit, fit)
		}
	}
	for text, fit := range map[string]bool{"a\r\n\tb": true, "a\u2028b": false, "a\u202eb": false, "a\x0bb": false} {
		if Lines(text) != fit {
			t.Errorf("%+q: lines %t, want %t", text, !fit, fit)
		}
	}
}

func TestACleanedTextShowsAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Acme":          "Acme",
		" a \r\n b ":    "a b",
		"A\u202ecba":    "Acba",
		"A\u200bB":      "AB",
		"a\x00b":        "a b",
		"\xff":          "?",
		"a\u2028b":      "a b",
		"👩\u200d💻 Team": "👩\u200d💻 Team",
		"می\u200cخواهم": "می\u200cخواهم",
		"":              "",
	} {
		got := Cleaned(text)
		if got != want {
			t.Errorf("%+q: %+q, want %+q", text, got, want)
		}
		if !Line(got) {
			t.Errorf("%+q is not one line that shows as it is written", got)
		}
	}
}

func TestATerminalGetsWhatItShows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		"Acme\n\tb":            "Acme\n\tb",
		"名前 é":                 "名前 é",
		"👩\u200d💻":             "👩\u200d💻",
		"می\u200cخواهم":        "می\u200cخواهم",
		"a\ufffdb":             "a\ufffdb",
		"\x1b[2J":              `\u001b[2J`,
		"a\rb\x07\x7f":         `a\u000db\u0007\u007f`,
		"\u009b31m":            `\u009b31m`,
		"\x9bm\xff":            `\x9bm\xff`,
		"A\u202ecba":           `A\u202ecba`,
		"A\u200bB\u2066\ufeff": `A\u200bB\u2066\ufeff`,
		"\u200da":              `\u200da`,
		"a\U000e0001b":         `a\udb40\udc01b`,
		"a\x00":                `a\u0000`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%+q: %+q, want %+q", text, got, want)
		}
	}
	if got := VisibleLine("a\nb\tc\x1b"); got != `a\nb\tc\u001b` {
		t.Errorf("one line: %q", got)
	}
}
