package components

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestJSONIsColoredByWhatItsPartsAre(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range jsonParts(`{"a\"b": "c: d", "n": [-1.5e3, true, null]}`) {
		if p.class != "" {
			got = append(got, strings.TrimPrefix(p.class, "json-")+" "+p.text)
		}
	}
	want := []string{`name "a\"b"`, `string "c: d"`, `name "n"`, `number -1.5e3`, `word true`, `word null`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestColoringLosesNothingOfAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune(`{}[]":,\ 1-e.tx`+"\nü"))).Draw(r, "text")
		var b strings.Builder
		for _, p := range jsonParts(text) {
			b.WriteString(p.text)
		}
		if b.String() != text {
			r.Fatalf("%q became %q", text, b.String())
		}
	})
	if parts := jsonParts(strings.Repeat("1,", colored)); len(parts) != 1 {
		t.Errorf("a long text has %d parts", len(parts))
	}
}
