package docs

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"posthorn/docs"
	views "posthorn/views/docs"
)

// guide is a page of docs/.
type guide struct {
	title  string
	source string
	about  string // its first sentences, as text
	body   templ.Component
	parts  []views.Heading // its sections, if there are enough for a table of contents
}

// markdown renders this repository's own pages. It leaves out HTML: no page needs it, so none can be injected.
func markdown(folder string) goldmark.Markdown {
	return goldmark.New(
		// Alignment as an attribute: the content security policy blocks style attributes.
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(
			extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{folder}, 100))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
	)
}

// fewParts is the largest number of sections without a table of contents.
const fewParts = 2

// parts are the sections of a rendered page, without their code marks.
func parts(source string) []views.Heading {
	ids := headings{}
	var all []views.Heading
	for _, part := range splitHeadings(source) {
		line, _, _ := strings.Cut(part, "\n")
		title := plain(strings.TrimLeft(line, "# "))
		id := string(ids.Generate([]byte(title), ast.KindHeading))
		if strings.HasPrefix(line, "## ") {
			all = append(all, views.Heading{Title: title, ID: id})
		}
	}
	if len(all) <= fewParts {
		return nil
	}
	return all
}

// prose is Markdown as a component; if it can't be rendered, it is shown as text.
func prose(source string) templ.Component { return render("", []byte(source)) }

func render(folder string, source []byte) templ.Component { return templ.Raw(rendered(folder, source)) }

// rendered is Markdown as HTML.
func rendered(folder string, source []byte) string {
	var b bytes.Buffer
	if err := markdown(folder).Convert(source, &b, parser.WithContext(parser.NewContext(parser.WithIDs(headings{})))); err != nil {
		return templ.EscapeString(string(source))
	}
	page := tables.Replace(cell.ReplaceAllStringFunc(b.String(), breakCode))
	return heading.ReplaceAllString(page, `<h$1 id="$2">$3 <a class="docs-anchor" href="#$2" aria-label="Link to this section">#</a></h$1>`)
}

// tables puts a wide table into a frame that scrolls, also with the keyboard. Text of a page is escaped, so it never
// matches the tags.
var tables = strings.NewReplacer(
	"<table>", `<div class="docs-table" role="group" aria-label="Table" tabindex="0"><table>`,
	"</table>", "</table></div>",
)

// breakCode lets the code in a table's cell break after a separator, so that a narrow column cuts no word.
func breakCode(cell string) string {
	return inCell.ReplaceAllStringFunc(cell, func(one string) string {
		text := strings.TrimSuffix(strings.TrimPrefix(one, "<code>"), "</code>")
		return "<code>" + separators.Replace(text) + "</code>"
	})
}

var (
	cell       = regexp.MustCompile(`<td[^>]*>.*?</td>`)
	inCell     = regexp.MustCompile(`<code>[^<]*</code>`)
	separators = strings.NewReplacer("/", "/<wbr>", "_", "_<wbr>", ".", ".<wbr>", ",", ",<wbr>")
)

// heading is a rendered heading below the page's title. Text of a page is escaped, so it never matches the tag.
var heading = regexp.MustCompile(`<h([23]) id="([^"]+)">(.*?)</h[23]>`)

// headings derives a heading's id from its text: `key_missing` is that very code, "The words" is the-words.
type headings map[string]int

// Generate creates an id.
func (h headings) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(value)) {
		switch {
		case r == '_' || r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	id := b.String()
	if h[id]++; h[id] > 1 {
		id = fmt.Sprintf("%s-%d", id, h[id])
	}
	return []byte(id)
}

// Put records an id that was given.
func (h headings) Put(value []byte) { h[string(value)]++ }

// links rewrites links between pages to their addresses, and removes links to files that are not served.
type links struct{ folder string }

// Transform rewrites the links of a page.
func (l links) Transform(page *ast.Document, _ text.Reader, _ parser.Context) {
	var lost []*ast.Link
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			to, served := l.serve(string(link.Destination))
			if link.Destination = []byte(to); !served {
				lost = append(lost, link)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, link := range lost {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}
		parent.RemoveChild(parent, link)
	}
}

func (l links) serve(to string) (string, bool) {
	if strings.HasPrefix(to, "#") || strings.HasPrefix(to, "/") || strings.HasPrefix(to, "https://") {
		return to, true
	}
	file, fragment, hasFragment := strings.Cut(to, "#")
	file = path.Join("docs", l.folder, file)
	if file == "handlers/api/openapi.yaml" {
		return "/api/openapi.yaml", true
	}
	name, isPage := strings.CutSuffix(file, ".md")
	if _, err := fs.Stat(docs.Pages, strings.TrimPrefix(file, "docs/")); !isPage || err != nil {
		return to, false
	}
	if hasFragment {
		fragment = "#" + fragment
	}
	return "/" + name + fragment, true
}

func loadGuides() (map[string]guide, error) {
	all := map[string]guide{}
	err := fs.WalkDir(docs.Pages, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := fs.ReadFile(docs.Pages, file)
		if err != nil {
			return err
		}
		source = evidence.ReplaceAll(source, nil)
		first, _, _ := strings.Cut(string(source), "\n")
		title, ok := strings.CutPrefix(first, "# ")
		if !ok {
			return fmt.Errorf("docs/%s does not begin with its title", file)
		}
		body := render(path.Dir(file), status.ReplaceAll(source, []byte("$1\\. ")))
		if file == "errors.md" {
			body = allErrors(source)
		}
		all[strings.TrimSuffix(file, ".md")] = guide{
			title:  title,
			source: string(source),
			about:  lead(string(source)),
			body:   body,
			parts:  parts(string(source)),
		}
		return nil
	})
	return all, err
}

// evidence is a comment that names the test of a promise on the page (docs/claims_test.go). Readers don't see it.
var evidence = regexp.MustCompile(`\n[ ]*<!-- (?:test:|bench:|no claim)[^\n]*-->`)

// status is a line that starts with an HTTP status, which Markdown would read as the number of a list's item.
var status = regexp.MustCompile(`(?m)^([1-5]\d\d)\. `)
