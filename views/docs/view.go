// Package docs holds the pages of the documentation and of the API's reference.
package docs

import (
	"strings"

	"github.com/a-h/templ"
)

// Frame holds the parts around a page's content.
type Frame struct {
	Title       string
	Description string // for search engines; empty: none
	Theme       string // light, dark, or empty
	Path        string // of this page: its entry in the navigation is marked
	Markdown    string // the path of the same page as Markdown; empty: there is none
	Query       string // the query of the search page
	Sections    []Section
	Previous    Link
	Next        Link
	Contents    []Heading // of a long page; empty for a short one
}

// Heading is a section of a page, in its table of contents.
type Heading struct{ Title, ID string }

// Section is a part of the navigation. Groups can be folded; the group of the shown page is open.
type Section struct {
	Title  string
	Links  []Link
	Groups []Group
}

// Link is an entry of the navigation.
type Link struct{ Label, Path string }

// Door is one entry into the documentation, by the reader's task.
type Door struct {
	Title, Text string
	Links       []Link
}

// Landing is the first page.
type Landing struct {
	Doors     []Door
	Catalogue bool // there is a public catalog
}

// Overview is the first page of the reference.
type Overview struct {
	Intro    templ.Component
	Groups   []Group
	Problems []string // the codes that every operation can return
}

// Group is the operations of one noun.
type Group struct {
	Name, Path, About string
	Operations        []Operation
}

// Title is the group's name in sentence case.
func (g Group) Title() string {
	if g.Name == "" {
		return ""
	}
	return strings.ToUpper(g.Name[:1]) + g.Name[1:]
}

func (g Group) holds(path string) bool { return path == g.Path || strings.HasPrefix(path, g.Path+"/") }

// Operation is one route.
type Operation struct {
	ID, Method, Path string
	Page             string // where it is documented
	Named            string // the path for a platform's key, if it differs
	Summary          string
	Text             string          // the description as Markdown
	About            templ.Component // nil: no further text
	Scope            string
	Platform         bool
	Parameters       []Field
	Body             []Field
	BodyOptional     bool
	Answers          []Answer
	Samples          []Sample
	Problems         []string // the codes of its errors, without those of every operation
	Try              *Try     // nil: the response is a stream or a file
}

// Try is the form that sends the operation's request to this server.
type Try struct {
	Arguments []Argument
	Body      string // an example, indented; empty: the operation has no body
}

// Argument is a parameter of a request, with an example.
type Argument struct {
	Name, Where, Example string
	Required             bool
}

// Sample is a request in one language.
type Sample struct {
	Label, Language, Text string
	Code                  templ.Component // the text, highlighted
}

// Field is a parameter, or a field of a body by its dotted path.
type Field struct {
	Name     string
	Where    string // path, query, header; empty for a field of a body
	Type     string
	Required bool
	Limits   string
	Text     string // the description as Markdown
	About    templ.Component
	Depth    int
}

// Answer is a possible response.
type Answer struct {
	Status  string
	About   string
	Fields  []Field
	Example string
	Code    templ.Component // the example, highlighted
}

// Headings are the sections of the operation's page.
func (o Operation) Headings() []Heading {
	all := []Heading{{"Request", "request"}}
	if len(o.Parameters) > 0 {
		all = append(all, Heading{"Parameters", "parameters"})
	}
	if len(o.Body) > 0 {
		all = append(all, Heading{"Body", "body"})
	}
	if o.Try != nil {
		all = append(all, Heading{"Try it", "try"})
	}
	return append(all, Heading{"Responses", "responses"}, Heading{"Errors", "errors"})
}

// Headings are the nouns of the reference.
func (v Overview) Headings() []Heading {
	var all []Heading
	for _, g := range v.Groups {
		all = append(all, Heading{g.Title(), g.anchor()})
	}
	return all
}

func (g Group) anchor() string { return g.Path[strings.LastIndexByte(g.Path, '/')+1:] }

func (o Operation) method() string { return "docs-method docs-" + strings.ToLower(o.Method) }

// Hit is a search result.
type Hit struct {
	Title, Text []Part
	Page, Path  string
}

// Part is a part of a text. The words that were searched for are marked.
type Part struct {
	Text  string
	Found bool
}

// markup is the text with its marks, as HTML.
func markup(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		text := templ.EscapeString(p.Text)
		if p.Found {
			text = "<mark>" + text + "</mark>"
		}
		b.WriteString(text)
	}
	return b.String()
}

// Plain is a text without marks.
func Plain(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Catalogue is the platform's own event types, by name.
type Catalogue struct{ Types []EventType }

// EventType is an entry of the catalog. Schema and Example are JSON, indented, or empty.
type EventType struct {
	Name, Group     string
	Deprecated      bool
	About           templ.Component // nil: no text
	Schema, Example string
	Versions        []EventVersion
}

// EventVersion is what one payload version replaces.
type EventVersion struct{ Name, Schema, Example string }
