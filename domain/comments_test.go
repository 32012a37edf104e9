package domain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide a line is at most, with tabs of four columns. Text in quotes is not counted, save in comments:
// it is not broken, so that it can be searched for.
const maxColumns = 120

var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

// columns is the width of a line.
func columns(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }

// lineFault says what is wrong with a line of source code, or nothing.
func lineFault(line string) string {
	text := strings.TrimSpace(line)
	switch {
	case !strings.HasPrefix(text, "//"):
		if columns(line) > maxColumns && columns(quoted.ReplaceAllString(line, "")) > maxColumns {
			return "the line is wider than 120 columns"
		}
	case !strings.HasPrefix(text, "// "): // a directive
	case columns(line) > maxColumns:
		return "the comment is wider than 120 columns"
	case strings.Contains(text, "DESIGN "+"section"):
		return "cite docs/design.md by heading"
	}
	return ""
}

// opensText reports whether a line begins or ends a text in backquotes that goes over several lines.
func opensText(line string) bool {
	return strings.Contains(line, "`") && !strings.HasPrefix(strings.TrimSpace(line), "//") &&
		strings.Count(quoted.ReplaceAllString(line, ""), "`")%2 == 1
}

func TestLinesFitTheScreenAndCommentsCiteByHeading(t *testing.T) {
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
		number, inText := 0, false
		for line := range strings.Lines(string(data)) {
			number++
			line = strings.TrimRight(line, "\n")
			switch {
			case opensText(line):
				inText = !inText
			case inText:
			default:
				if why := lineFault(line); why != "" {
					t.Errorf("%s:%d: %s", path, number, why)
				}
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

func TestFaultsOfLinesAreFound(t *testing.T) {
	t.Parallel()
	for line, faulty := range map[string]bool{
		"// A short comment.":                                  false,
		"\t// " + strings.Repeat("a", maxColumns-7):            false,
		"\t// " + strings.Repeat("a", maxColumns-6):            true,
		"// as DESIGN " + "section 3 says":                     true,
		"x := \"" + strings.Repeat("a", maxColumns) + "\"":     false,
		"x := " + strings.Repeat("a, ", maxColumns/3):          true,
		"//go:generate " + strings.Repeat("a", maxColumns+100): false,
	} {
		if why := lineFault(line); (why != "") != faulty {
			t.Errorf("%q: %q", line, why)
		}
	}
}
