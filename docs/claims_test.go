package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages whose promises are named with what shows them: a test, or a scenario of the benchmark. A comment after the
// paragraph, the item or the table names it, or says that the paragraph promises nothing. Readers don't see it.
var claimPages = []string{"scale.md", "ops/*.md"}

var (
	// claimWords are words that promises are made of.
	claimWords = regexp.MustCompile(`(?i)\b(never|always|nothing|none|lost|loses?|at most|at least|no more than|up to|within|surviv\w+|keeps?|kept|refuse[sd]|reject(?:s|ed)|exactly|immediately|no event|only once)\b`)
	shownBy    = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]*\b`)
	measuredBy = regexp.MustCompile(`<!-- bench: ([a-z -]+?) -->`)
	noClaim    = "<!-- no claim -->"
	comment    = regexp.MustCompile(`<!--.*?-->`)
	item       = regexp.MustCompile(`^\s*(- |\d+\. )`)
)

// passage is a paragraph, an item of a list, or a table.
type passage struct {
	line int
	text string
}

// passages takes a page apart. Headings and blocks of code are none.
func passages(source string) (all []passage) {
	code, open, table := false, false, false
	for i, line := range strings.Split(source, "\n") {
		isTable := strings.HasPrefix(line, "|")
		switch bare := strings.TrimSpace(line); {
		case strings.HasPrefix(bare, "```"):
			code, open = !code, false
		case code:
		case bare == "" || strings.HasPrefix(line, "#"):
			open = false
		default:
			if starts := comment.FindStringIndex(bare); starts != nil && starts[0] == 0 && open {
				isTable = table // a comment belongs to what is before it
			}
			if !open || item.MatchString(line) || isTable != table {
				all = append(all, passage{line: i + 1})
			}
			open, table = true, isTable
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}

// Every promise of the pages for operators names a test that exists, or a scenario of the benchmark.
func TestEveryPromiseToOperatorsNamesWhatShowsIt(t *testing.T) {
	t.Parallel()
	tests, scenarios := namesOfTests(t), namesOfScenarios(t)
	if len(tests) < 1000 || len(scenarios) < 10 {
		t.Fatalf("%d tests, %d scenarios", len(tests), len(scenarios))
	}
	named := 0
	for _, pattern := range claimPages {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range passages(string(source)) {
				shows := shownBy.FindAllString(p.text, -1)
				for _, test := range shows {
					if !tests[test] {
						t.Errorf("docs/%s:%d names %s, and there is no such test", file, p.line, test)
					}
				}
				bench := measuredBy.FindStringSubmatch(p.text)
				if bench != nil {
					for _, name := range strings.Fields(bench[1]) {
						if !scenarios[name] {
							t.Errorf("docs/%s:%d names the scenario %s, and there is no such scenario", file, p.line, name)
						}
					}
				}
				named += len(shows)
				word := claimWords.FindString(comment.ReplaceAllString(p.text, ""))
				if word != "" && len(shows) == 0 && bench == nil && !strings.Contains(p.text, noClaim) {
					t.Errorf("docs/%s:%d says %q and names no test that shows it: add <!-- test: TestName --> after it, <!-- bench: scenario -->, or <!-- no claim -->",
						file, p.line, word)
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("the pages name %d tests", named)
	}
}

func TestAPromiseWithoutATestIsNoticed(t *testing.T) {
	t.Parallel()
	page := "# Title, never\n\nNothing is lost.\n\n- It is never late.\n- It is fine.\n  <!-- no claim -->\n\n| never |\n| --- |\n<!-- test: TestX -->\n```\nnever\n```\nAfter.\n"
	var got []string
	for _, p := range passages(page) {
		got = append(got, strings.Join(strings.Fields(p.text), " "))
	}
	want := []string{"Nothing is lost.", "- It is never late.", "- It is fine. <!-- no claim -->", "| never | | --- | <!-- test: TestX -->", "After."}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}

// namesOfTests are the functions that test something, in the whole repository.
func namesOfTests(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
	all := map[string]bool{}
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(file)
		for _, f := range function.FindAllStringSubmatch(string(source), -1) {
			all[f[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// namesOfScenarios are those of tools/bench.
func namesOfScenarios(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../tools/bench/*.go")
	if err != nil {
		t.Fatal(err)
	}
	line, constant := regexp.MustCompile(`(?m)^\t\t\{"([a-z-]+)", `), regexp.MustCompile(`(?m)^(?:const|\t)\s*\w+Stem\s+= "([a-z-]+)"`)
	all := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []*regexp.Regexp{line, constant} {
			for _, s := range pattern.FindAllStringSubmatch(string(source), -1) {
				all[s[1]] = true
			}
		}
	}
	return all
}
