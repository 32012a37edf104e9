package docs

import (
	"bytes"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// language is what the highlighter knows of a language: comments, strings and words. The rest is plain. A lexer for
// each language would add some megabytes of tables to the binary for the same few colors.
type language struct {
	tokens   *regexp.Regexp // its groups are comment, string, number, word
	keywords []string
}

const (
	slashes = `//[^\n]*|/\*[\s\S]*?\*/`
	hashes  = `#[^\n]*`
	quotes  = `"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`
	ticks   = "|`[^`]*`"
	numbers = `\b\d[\d_.]*\b`
	names   = `[A-Za-z_][A-Za-z0-9_]*`
)

func lexer(comment, text string) *regexp.Regexp {
	return regexp.MustCompile(`(` + comment + `)|(` + text + `)|(` + numbers + `)|(` + names + `)`)
}

var languages = func() map[string]language {
	shell := language{lexer(`(?:^|[ \t\n])`+hashes, `"(?:\\.|[^"\\])*"|'[^']*'`), wordList("curl export echo cd make go git apt-get docker sudo while do done for in if then fi")}
	golang := language{lexer(slashes, quotes+ticks), wordList("break case chan const continue defer else err for func go if import interface map nil package range return select struct switch type var true false")}
	script := language{lexer(slashes, quotes+ticks), wordList("async await break case catch const continue else export false for from function if import in let new null of return throw true try typeof undefined while")}
	python := language{lexer(hashes, `"""[\s\S]*?"""|`+quotes), wordList("and as async await def elif else except False for from if import in is lambda None not or pass raise return True try while with yield")}
	sql := language{lexer(`--[^\n]*`, `'(?:''|[^'])*'`), wordList("SELECT INSERT UPDATE DELETE CREATE ALTER GRANT REVOKE BEGIN COMMIT INTO VALUES FROM WHERE SET AND OR NOT NULL ROLE TABLE SCHEMA DATABASE ON TO IN AS LOGIN PASSWORD OWNER")}
	yaml := language{lexer(hashes, quotes), wordList("true false null")}
	return map[string]language{
		"sh":         shell,
		"bash":       shell,
		"console":    shell,
		"go":         golang,
		"js":         script,
		"ts":         script,
		"javascript": script,
		"typescript": script,
		"json":       {lexer(`\z\A`, quotes), wordList("true false null")},
		"python":     python,
		"py":         python,
		"sql":        sql,
		"yaml":       yaml,
		"promql":     yaml,
		"nginx":      {lexer(hashes, quotes), wordList("server location upstream listen")},
		"ini":        yaml,
		"toml":       yaml,
	}
}()

func wordList(list string) []string { return strings.Fields(list) }

// classes are the CSS classes of a language's groups.
var classes = []string{"", "tok-comment", "tok-string", "tok-number", "tok-word"}

// highlight writes source as HTML with a class for each token, or as text if the language is unknown.
func highlight(name, source string) string {
	lang, known := languages[name]
	if !known {
		return html.EscapeString(source)
	}
	var b strings.Builder
	at := 0
	for _, m := range lang.tokens.FindAllStringSubmatchIndex(source, -1) {
		for group := 1; group < len(classes); group++ {
			from, to := m[2*group], m[2*group+1]
			if from < at || from == to {
				continue
			}
			text := source[from:to]
			if classes[group] == "tok-word" && !slices.Contains(lang.keywords, text) {
				continue
			}
			class := classes[group]
			if name == "json" && class == "tok-string" && strings.HasPrefix(strings.TrimLeft(source[to:], " "), ":") {
				class = "tok-name"
			}
			b.WriteString(html.EscapeString(source[at:from]) + `<span class="` + class + `">` + html.EscapeString(text) + `</span>`)
			at = to
		}
	}
	return b.String() + html.EscapeString(source[at:])
}

// code is a block of code as a component. It can be scrolled with the keyboard too.
func code(name, source string) templ.Component { return templ.Raw(codeBlock(name, source)) }

func codeBlock(name, source string) string {
	return `<pre tabindex="0"><code>` + highlight(name, source) + "</code></pre>\n"
}

// blocks renders the code blocks of pages.
type blocks struct{}

// RegisterFuncs registers the renderer of code blocks.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, renderBlock)
	r.Register(ast.KindCodeBlock, renderBlock)
}

func renderBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var b bytes.Buffer
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	name := ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		name = string(fenced.Language(source))
	}
	_, err := io.WriteString(w, codeBlock(name, b.String()))
	return ast.WalkSkipChildren, err
}
