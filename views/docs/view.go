// Package docs are the pages of the documentation and of the API's reference.
package docs

import (
	"strings"

	"github.com/a-h/templ"
)

// Frame is what stands around a page's content.
type Frame struct {
	Title  string
	Theme  string // light, dark, or empty
	Path   string // of this page: its entry in the navigation is marked
	Guides []Link
	Tags   []Link
}

// Link is an entry of the navigation.
type Link struct{ Label, Path string }

// Text is a page of prose.
type Text struct {
	Body templ.Component // our own Markdown, rendered
	On   []Link          // headings of the page
}

// Front is the first page.
type Front struct {
	Intro     templ.Component
	Groups    []Group
	Problems  []string // the codes that any operation may be refused with
	Catalogue bool     // there is a public catalogue
}

// Group is the operations of one noun.
type Group struct {
	Name, Path, About string
	Operations        []Operation
}

// Operation is one route.
type Operation struct {
	ID, Method, Path string
	Named            string // the path for a platform's key, where it is another
	Summary          string
	About            templ.Component // nil: nothing more to say
	Scope            string
	Platform         bool
	Parameters       []Field
	Body             []Field
	BodyOptional     bool
	Answers          []Answer
	Curl, Go         string
	Problems         []string // the codes of its refusals, beside those of every operation
}

// Field is a parameter, or a field of a body by its dotted path.
type Field struct {
	Name     string
	Where    string // path, query, header; empty for a field of a body
	Type     string
	Required bool
	Limits   string
	About    templ.Component
	Depth    int
}

// Answer is what may come back.
type Answer struct {
	Status  string
	About   string
	Fields  []Field
	Example string
}

func (o Operation) anchor() string { return o.ID }

func (o Operation) method() string { return "docs-method docs-" + strings.ToLower(o.Method) }

// Catalogue is the platform's own event types, by name.
type Catalogue struct{ Types []EventType }

// EventType is an entry of the catalogue. Schema and Example are JSON, indented, or empty.
type EventType struct {
	Name, Group     string
	Deprecated      bool
	About           templ.Component // nil: nothing is said
	Schema, Example string
	Versions        []EventVersion
}

// EventVersion is what one payload version says instead.
type EventVersion struct{ Name, Schema, Example string }
