package house_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide a comment is at most, with tabs of four columns.
const maxColumns = 120

// tooWide reports whether a line is a comment that is wider. Directives can't be broken.
func tooWide(line string) bool {
	return strings.HasPrefix(strings.TrimSpace(line), "// ") &&
		utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > maxColumns
}

func TestCommentsFitTheScreen(t *testing.T) {
	t.Parallel()
	check := func(name, text string) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			if tooWide(strings.TrimRight(line, "\n")) {
				t.Errorf("%s:%d: the comment is wider than %d columns", name, number, maxColumns)
			}
		}
	}
	for _, s := range sources(t) {
		if !s.generated {
			check(s.path, string(s.text))
		}
	}
	templates := 0
	err := eachFile(func(name string) error {
		if !strings.HasSuffix(name, ".templ") {
			return nil
		}
		templates++
		text, err := os.ReadFile(filepath.Join(root, name))
		check(name, string(text))
		return err
	})
	if err != nil || templates < 50 {
		t.Errorf("read %d templates: %v", templates, err)
	}
}

func TestWideCommentsAreFound(t *testing.T) {
	t.Parallel()
	for line, wide := range map[string]bool{
		"// A short comment.":                                  false,
		"\t// " + strings.Repeat("a", maxColumns-7):            false,
		"\t// " + strings.Repeat("a", maxColumns-6):            true,
		"x := f(" + strings.Repeat("a, ", maxColumns/3) + "b)": false,
		"//go:generate " + strings.Repeat("a", maxColumns+100): false,
	} {
		if tooWide(line) != wide {
			t.Errorf("%q: want it found: %t", line, wide)
		}
	}
}
