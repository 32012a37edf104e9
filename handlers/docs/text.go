package docs

import (
	"fmt"
	"regexp"
	"strings"

	views "posthorn/views/docs"
)

// markdownEnd is the end of the address of a page as Markdown.
const markdownEnd = ".md"

// page is the text of a page for the search, llms.txt and its Markdown.
type page struct{ path, title, about, source string }

var (
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	marks    = strings.NewReplacer("`", "", "**", "", "\\", "")
	spaces   = regexp.MustCompile(`\s+`)
)

// plain is Markdown as text in one line.
func plain(source string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(marks.Replace(linkText.ReplaceAllString(source, "$1")), " "))
}

// lead is a page's first paragraph of prose, as text.
func lead(source string) string {
	_, rest, _ := strings.Cut(source, "\n")
	for paragraph := range strings.SplitSeq(rest, "\n\n") {
		if p := strings.TrimSpace(paragraph); p != "" && !strings.ContainsAny(p[:1], "#|`-<>") {
			return cut(plain(p), 200)
		}
	}
	return ""
}

// operationMarkdown is an operation of the reference as Markdown.
func operationMarkdown(o views.Operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n`%s %s`\n\n", o.Summary, o.Method, o.Path)
	if o.Named != "" {
		fmt.Fprintf(&b, "With a platform key: `%s`\n\n", o.Named)
	}
	switch {
	case o.Platform:
		fmt.Fprintf(&b, "Platform keys only. Scope: `%s`\n\n", o.Scope)
	case o.Scope != "":
		fmt.Fprintf(&b, "Scope: `%s`\n\n", o.Scope)
	}
	if o.Text != "" {
		b.WriteString(strings.TrimSpace(o.Text) + "\n\n")
	}
	for _, s := range o.Samples {
		fmt.Fprintf(&b, "## %s\n\n```%s\n%s\n```\n\n", s.Label, s.Language, s.Text)
	}
	fieldsMarkdown(&b, "Parameters", o.Parameters)
	fieldsMarkdown(&b, "Body", o.Body)
	for _, a := range o.Answers {
		fmt.Fprintf(&b, "## Response %s: %s\n\n", a.Status, a.About)
		if a.Example != "" {
			fmt.Fprintf(&b, "```json\n%s\n```\n\n", a.Example)
		}
	}
	if len(o.Problems) > 0 {
		fmt.Fprintf(&b, "## Errors\n\n`%s`\n", strings.Join(o.Problems, "`, `"))
	}
	return strings.TrimSpace(b.String()) + "\n"
}

func fieldsMarkdown(b *strings.Builder, title string, list []views.Field) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, f := range list {
		parts := []string{f.Type}
		if f.Where != "" {
			parts = append(parts, f.Where)
		}
		if f.Required {
			parts = append(parts, "required")
		}
		if f.Limits != "" {
			parts = append(parts, f.Limits)
		}
		fmt.Fprintf(b, "- `%s` (%s)", f.Name, strings.Join(parts, ", "))
		if f.Text != "" {
			b.WriteString(": " + plain(f.Text))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

func groupMarkdown(g views.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", g.Title(), g.About)
	for _, o := range g.Operations {
		fmt.Fprintf(&b, "- [%s](%s%s): `%s %s`\n", o.Summary, o.Page, markdownEnd, o.Method, o.Path)
	}
	return b.String()
}

// short is llms.txt: every page of the navigation with its subject.
func (c *content) short(base string) string {
	var b strings.Builder
	b.WriteString("# Posthorn\n\n> Posthorn delivers a product's events to its customers' endpoints: signed, retried, and recorded.\n\n")
	fmt.Fprintf(&b, "The OpenAPI document is %s/api/openapi.yaml. All pages in one file: %s/llms-full.txt.\n", base, base)
	for _, s := range c.frame.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.Title)
		list := s.Links
		for _, g := range s.Groups {
			list = append(list, views.Link{Label: g.Title(), Path: g.Path})
		}
		for _, l := range list {
			p := c.pages[l.Path]
			fmt.Fprintf(&b, "- [%s](%s%s%s)", l.Label, base, l.Path, markdownEnd)
			if p.about != "" {
				b.WriteString(": " + p.about)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// full is llms-full.txt: the text of all pages.
func (c *content) full() string {
	var b strings.Builder
	for _, l := range c.order {
		if p, ok := c.pages[l.Path]; ok {
			b.WriteString(strings.TrimSpace(p.source) + "\n\n")
		}
	}
	return b.String()
}
