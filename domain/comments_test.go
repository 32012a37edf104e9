package domain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide a line of a comment is at most, with tabs of four columns.
const maxColumns = 120

// columns is the width of a line.
func columns(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }

// commentFault says what is wrong with a line of source code if it is a comment, or nothing.
func commentFault(line string) string {
	text := strings.TrimSpace(line)
	switch {
	case !strings.HasPrefix(text, "// "):
		return ""
	case columns(line) > maxColumns:
		return "the comment is wider than 120 columns"
	case strings.Contains(text, "DESIGN "+"section"):
		return "cite docs/design.md by heading"
	}
	return ""
}

func TestCommentsFitTheScreenAndCiteByHeading(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || name == "bin" || name == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || strings.HasSuffix(name, ".gen.go") || strings.HasSuffix(name, "_templ.go"):
			return nil
		case !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".templ"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(data), "// Code generated") {
			return nil
		}
		seen++
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			if why := commentFault(strings.TrimRight(line, "\n")); why != "" {
				t.Errorf("%s:%d: %s", path, number, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("read %d files: the rule was not tried", seen)
	}
}

func TestCommentFaultsAreFound(t *testing.T) {
	t.Parallel()
	for line, faulty := range map[string]bool{
		"// A short comment.":                                  false,
		"\t// " + strings.Repeat("a", maxColumns-7):            false,
		"\t// " + strings.Repeat("a", maxColumns-6):            true,
		"// as DESIGN " + "section 3 says":                     true,
		"x := \"" + strings.Repeat("a", maxColumns) + "\"":     false,
		"//go:generate " + strings.Repeat("a", maxColumns+100): false,
	} {
		if why := commentFault(line); (why != "") != faulty {
			t.Errorf("%q: %q", line, why)
		}
	}
}
