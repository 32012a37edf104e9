package house_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Spelling that American style guides agree on. What reads well is for review.
var misspelled = []struct {
	pattern *regexp.Regexp
	use     string
}{
	{regexp.MustCompile(`(?i)\b(colours?|organisations?|cancelled|behaviours?|favourites?|licence)\b`), "American spelling"},
	{regexp.MustCompile(`(?i)\btime-outs?\b`), "timeout"},
	{regexp.MustCompile(`\d %([ .,;:)|"]|$)`), "99.9% without a space"},
}

// citation is what a sentence cites literally: code, names of fields and values, addresses.
var citation = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|<!--.*?-->|\\]\\([^)]*\\)|https?://\\S+")

// markup is what readers of a page don't see, with the attributes that they do.
var markup = regexp.MustCompile(`(?s)<[^>]*>`)

// unread are folders whose texts no user reads.
var unread = regexp.MustCompile(`^tools/|/(e2e|img|adr)/`)

func TestReadersMeetAmericanSpelling(t *testing.T) {
	t.Parallel()
	seen := 0
	check := func(where, text string) {
		seen++
		text = citation.ReplaceAllString(text, " ")
		for _, m := range misspelled {
			for _, found := range m.pattern.FindAllString(text, -1) {
				t.Errorf("%s: %q: write %s", where, found, m.use)
			}
		}
	}
	for _, s := range sources(t) {
		if !s.test() && !strings.HasSuffix(s.path, ".gen.go") && !unread.MatchString(s.path) {
			literals(t, s, check)
		}
	}
	err := eachFile(func(name string) error {
		if !strings.HasSuffix(name, ".md") && !strings.HasSuffix(name, "openapi.yaml") || unread.MatchString(name) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		check(name, string(text))
		return err
	})
	if err != nil || seen < 1000 {
		t.Errorf("read %d texts: %v", seen, err)
	}
}

// literals are the sentences among the strings of a Go file. Templates are read as the code generated from them.
func literals(t *testing.T, s source, check func(where, text string)) {
	t.Helper()
	for node := range ast.Preorder(s.file) {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		// A single word is a name of the program, unless a template shows it.
		text = strings.TrimSpace(markup.ReplaceAllString(text, " "))
		label := strings.HasSuffix(s.path, "_templ.go") && text != "" && unicode.IsUpper(rune(text[0]))
		if strings.Contains(text, " ") || label {
			check(fmt.Sprintf("%s:%d", s.path, s.positions.Position(literal.Pos()).Line), text)
		}
	}
}
