package domain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// A readersWord is a word or a phrase that readers of pages, mails, docs, errors and help should not meet.
type readersWord struct {
	pattern string // a regular expression, matched without regard to case, between word boundaries
	use     string // what to write instead
}

var readersWords = []readersWord{
	{`answer(s|ed|ing)?`, "response, respond, return"},
	{`begun|settled`, "started, finished"},
	{`mend(s|ed|ing)?`, "fix"},
	{`for good`, "permanently"},
	{`for ever|forever`, "never expires"},
	{`chosen|chose`, "selected"},
	{`all that match`, "all results"},
	{`(endpoints?|who|that) (takes?|took) (it|the event|the type)|was taken|not taken`, "matches, accepts"},
	{`who got it`, "routing"},
	{`keep (it )?as it is`, "Cancel"},
	{`proves? (itself|themselves|herself|himself)|prove (itself|who|that)|let it prove`, "is verified, verify"},
	{`refus(e|es|ed|ing|al|als)`, "reject"},
	{`stand|stands|stood`, "is, appears"},
	{`look(s|ed)? (at|into)|looking (at|into)|looked for`, "check, see, inspect, view"},
	{`(is|are|was|were|has|be|being) gone`, "deleted, expired, dropped, unavailable"},
	{`nothing to tell|none fits|none is there|what (waits|waited|gathered|goes|stands|holds)`, "name the thing"},
	{`without a limit`, "unlimited"},
	{`is no (id|json|object|utf-8|name|address|key)`, "isn't a valid ..."},
	{`(keys?|programs?|persons?|people|users?|members?|owners?|operators?|admins?|viewers?|tenants?|roles?) may`, "can, has permission to"},
	{`may not`, "can't, might not"},
	{`that beat|last beat|beats`, "live, heartbeat"},
	{`as promised|slower than promised`, "Operational, Degraded"},
	{`half within|99 of 100`, "p50, p99"},
	{`faster than it may`, "rate limit exceeded"},
	{`at the same time|at once`, "concurrent, in flight, immediately"},
	{`meanwhile|anew|thereof|whereof|wherefore|whose turn|thereby|therein|hereby`, "rephrase"},
	{`heed(s|ed)?|lest|save (in|where|for|on)|but for|afresh|afterwards|upon|bears|lies|befalls`, "a plainer word"},
	{`time-outs?`, "timeout"},
	{`colours?|organisations?|cancelled|behaviour`, "American spelling"},
}

// citation is what a sentence cites literally: code, names of fields and values, addresses.
var citation = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|<!--.*?-->|\\]\\([^)]*\\)|https?://\\S+|/\\w+/v1/\\S+|/docs/\\S+|connection refused")

// spacedPercent is a number with a space before its percent sign, which American English does not have.
var spacedPercent = regexp.MustCompile(`\d %([ .,;:)|"]|$)`)

// markup is what readers of a page don't see, with the attributes that they do.
var markup = regexp.MustCompile(`(?s)<[^>]*>`)

// prose is a text of a source and where it is.
type prose struct{ where, text string }

func TestReadersMeetUsualWords(t *testing.T) {
	t.Parallel()
	var alternatives []string
	for _, w := range readersWords {
		alternatives = append(alternatives, w.pattern)
	}
	avoided := regexp.MustCompile(`(?i)\b(` + strings.Join(alternatives, "|") + `)\b`)
	seen := 0
	for _, p := range everyText(t) {
		seen++
		text := citation.ReplaceAllString(p.text, " ")
		if at := spacedPercent.FindStringIndex(text); at != nil {
			t.Errorf("%s: %q: write 99.9%% without a space", p.where, around(text, at))
		}
		for _, at := range avoided.FindAllStringIndex(text, -1) {
			word := text[at[0]:at[1]]
			t.Errorf("%s: %q in %q: write %s", p.where, word, around(text, at), instead(word))
		}
	}
	if seen < 1000 {
		t.Errorf("only %d texts were read", seen)
	}
}

func instead(word string) string {
	for _, w := range readersWords {
		if regexp.MustCompile(`(?i)^(` + w.pattern + `)$`).MatchString(word) {
			return w.use
		}
	}
	return ""
}

// around is a word with what is beside it.
func around(text string, at []int) string {
	from, to := max(0, at[0]-40), min(len(text), at[1]+40)
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
}

// everyText is what people read: pages, mails, errors, help, docs, and the API's contract.
func everyText(t *testing.T) (all []prose) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "node_modules" || name == "bin" || name == "tools" ||
			name == "e2e" || name == "img" || name == "pagetest" || name == "optest" || name == "adr"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		switch {
		case strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".gen.go"):
			return nil
		case strings.HasSuffix(name, ".go"):
			all = append(all, literals(t, path)...)
		case strings.HasSuffix(name, ".md"):
			all = append(all, paragraphs(t, path)...)
		case strings.HasSuffix(name, "openapi.yaml"):
			all = append(all, descriptions(t, path)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// literals are the sentences among the strings of a Go file. Templates are read as the code generated from them.
func literals(t *testing.T, path string) (all []prose) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for node := range ast.Preorder(file) {
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
		label := strings.HasSuffix(path, "_templ.go") && text != "" && unicode.IsUpper(rune(text[0]))
		if strings.Contains(text, " ") || label {
			all = append(all, prose{fmt.Sprintf("%s:%d", path, files.Position(literal.Pos()).Line), text})
		}
	}
	return all
}

// paragraphs are those of a page of the docs.
func paragraphs(t *testing.T, path string) (all []prose) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := 1
	text := citation.ReplaceAllStringFunc(string(data), func(s string) string {
		return " " +
			strings.Repeat("\n", strings.Count(s, "\n"))
	})
	for block := range strings.SplitSeq(text, "\n\n") {
		all = append(all, prose{fmt.Sprintf("%s:%d", path, line), block})
		line += strings.Count(block, "\n") + 2
	}
	return all
}

// descriptions are the texts of an OpenAPI document.
func descriptions(t *testing.T, path string) (all []prose) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	var read func(n *yaml.Node)
	read = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.ScalarNode {
				switch n.Content[i-1].Value {
				case "description", "summary", "title":
					all = append(all, prose{fmt.Sprintf("%s:%d", path, c.Line), c.Value})
				}
			}
			read(c)
		}
	}
	read(&root)
	return all
}
