package compare

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAComparisonShowsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	got := Lines(strings.Split("HTTP 500\na: 1\nb: 2\n\nerror", "\n"), strings.Split("HTTP 422\na: 1\nc: 3\n\nerror", "\n"))
	want := []Line{{Removed, "HTTP 500"}, {Added, "HTTP 422"}, {Same, "a: 1"}, {Removed, "b: 2"}, {Added, "c: 3"}, {Same, ""}, {Same, "error"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever the texts are, the lines of a comparison are the old text without what was added, and the new one without
// what was removed.
func TestAComparisonHoldsBothTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 30)
		old, changed := text.Draw(r, "old"), text.Draw(r, "changed")
		if rapid.Bool().Draw(r, "long") {
			old = slices.Repeat(append(old, "x"), maxLines)
		}
		var before, after []string
		for _, l := range Lines(old, changed) {
			if l.Kind != Added {
				before = append(before, l.Text)
			}
			if l.Kind != Removed {
				after = append(after, l.Text)
			}
		}
		if !slices.Equal(before, old) || !slices.Equal(after, changed) {
			r.Fatalf("%q to %q: %q and %q", old, changed, before, after)
		}
	})
}
