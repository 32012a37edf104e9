package characters

import "testing"

func TestTextsShowAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for text, fit := range map[string]bool{
		"": true, "Acme": true, "名前": true, "Ünïcode <b>": true, "می\u200cخواهم": true, "👩\u200d💻 Team": true, "क्\u200dष": true,
		"a\nb": false, "a\tb": false, "a\x00b": false, "a\u0085b": false, "a\u2028b": false, "a\u2029b": false, "\xff": false, "\ufffd": false,
		"A\u202ecba": false, "A\u2066b": false, "A\u061cb": false, "A\u200eb": false, "A\u200fb": false,
		"A\u200bB": false, "A\ufeffB": false, "A\u2060B": false, "A\u00adB": false, "A\u200dB": false, "A\u200cB": false, "名\u200d": false, "\u200d名": false,
		"A\u3164B": false, "A\u115fB": false, "A\u180eB": false, "A\u2800B": false,
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
		"Acme": "Acme", " a \r\n b ": "a b", "A\u202ecba": "Acba", "A\u200bB": "AB", "a\x00b": "a b", "\xff": "?", "a\u2028b": "a b",
		"👩\u200d💻 Team": "👩\u200d💻 Team", "می\u200cخواهم": "می\u200cخواهم", "": "",
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
