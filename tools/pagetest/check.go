// Package pagetest checks the rules for every page, for tests that render one. It needs no browser.
package pagetest

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Faults lists the faults of a page: none or several h1, repeated ids; controls, links, and buttons without a name;
// references without a target, forms within forms, and everything that the content security policy blocks.
func Faults(page string) []string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{"not HTML: " + err.Error()}
	}
	c := check{ids: map[string]int{}, labels: map[string]bool{}}
	c.collect(root)
	c.document()
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			c.element(n)
		}
	}
	// The parser drops a form within a form, so this reads the text instead.
	if nested(page) {
		c.fault("a form stands within a form")
	}
	return c.faults
}

// FragmentFaults lists the faults of a part of a page. A part needs no h1.
func FragmentFaults(part string) []string {
	return Faults(`<!DOCTYPE html><html lang="en"><head><title>x</title><meta name="viewport" content="width=device-width"></head><body><main><h1>x</h1>` + part + `</main></body></html>`)
}

// Actions lists the targets of the forms on a page that change something and can be sent: those with a button.
func Actions(page string) (paths []string) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{"not HTML: " + err.Error()}
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "form" && first(n, "button") != nil {
			if method, _ := attr(n, "method"); strings.EqualFold(method, "post") {
				path, _ := attr(n, "action")
				paths = append(paths, path)
			}
		}
	}
	return paths
}

type check struct {
	ids    map[string]int
	labels map[string]bool // ids that a label is for
	counts struct{ h1, main, title, viewport int }
	lang   bool
	faults []string
}

func (c *check) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *check) collect(root *html.Node) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if id, ok := attr(n, "id"); ok {
			c.ids[id]++
		}
		switch n.Data {
		case "label":
			if of, ok := attr(n, "for"); ok && text(n) != "" {
				c.labels[of] = true
			}
		case "h1":
			c.counts.h1++
		case "main":
			c.counts.main++
		case "title":
			if n.Parent.Data == "head" && text(n) != "" {
				c.counts.title++
			}
		case "meta":
			if name, _ := attr(n, "name"); name == "viewport" {
				c.counts.viewport++
			}
		case "html":
			_, c.lang = attr(n, "lang")
		}
	}
}

func (c *check) document() {
	for what, n := range map[string]int{"h1": c.counts.h1, "main": c.counts.main, "title": c.counts.title, "viewport": c.counts.viewport} {
		if n != 1 {
			c.fault("%d %s, want one", n, what)
		}
	}
	if !c.lang {
		c.fault("html has no lang")
	}
	for id, n := range c.ids {
		if n > 1 || id == "" || strings.ContainsAny(id, " \t\n") {
			c.fault("the id %q stands %d times, or is none", id, n)
		}
	}
	slices.Sort(c.faults)
}

func (c *check) element(n *html.Node) {
	c.policy(n)
	c.references(n)
	switch n.Data {
	case "input", "select", "textarea":
		c.control(n)
	case "button", "summary", "a":
		if name(n) == "" {
			c.fault("a %s has no name", n.Data)
		}
	case "img":
		if _, ok := attr(n, "alt"); !ok {
			c.fault("an img has no alt")
		}
	case "svg":
		hidden, _ := attr(n, "aria-hidden")
		if role, _ := attr(n, "role"); hidden != "true" && (role != "img" || name(n) == "") {
			c.fault("an svg is neither hidden nor named")
		}
	case "table":
		if text(first(n, "caption")) == "" {
			c.fault("a table has no caption")
		}
	case "fieldset":
		if text(first(n, "legend")) == "" {
			c.fault("a fieldset has no name")
		}
	case "dialog", "nav":
		if !named(n) {
			c.fault("a %s has no name", n.Data)
		}
	}
}

// references finds attributes that name an element which the page does not have.
func (c *check) references(n *html.Node) {
	for _, a := range []string{
		"aria-labelledby", "aria-describedby", "aria-controls", "for", "commandfor", "popovertarget", "form", "list", "data-copy-from",
	} {
		to, _ := attr(n, a)
		for id := range strings.FieldsSeq(to) {
			if c.ids[id] == 0 {
				c.fault("%s: %s leads to no element: %s", n.Data, a, id)
			}
		}
	}
}

// policy finds what a policy without unsafe-inline blocks.
func (c *check) policy(n *html.Node) {
	if _, ok := attr(n, "style"); ok || n.Data == "style" {
		c.fault("%s has an inline style", n.Data)
	}
	if src, ok := attr(n, "src"); n.Data == "script" && (!ok || !strings.HasPrefix(src, "/static/")) {
		c.fault("a script is inline or from elsewhere: %s", src)
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on") {
			c.fault("%s has the handler %s", n.Data, a.Key)
		}
		if (a.Key == "href" || a.Key == "action" || a.Key == "src" || a.Key == "formaction") &&
			strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
			c.fault("%s leads to a script", n.Data)
		}
		if a.Val == "about:invalid#TemplFailedSanitizationURL" {
			c.fault("%s has a %s that was refused", n.Data, a.Key)
		}
	}
}

func (c *check) control(n *html.Node) {
	kind, _ := attr(n, "type")
	if n.Data == "input" && slices.Contains([]string{"hidden", "submit", "button", "reset"}, kind) {
		return
	}
	id, _ := attr(n, "id")
	if c.labels[id] || named(n) || within(n, "label") {
		return
	}
	field, _ := attr(n, "name")
	c.fault("the %s %q has no label", n.Data, field)
}

func named(n *html.Node) bool {
	label, _ := attr(n, "aria-label")
	by, _ := attr(n, "aria-labelledby")
	return strings.TrimSpace(label) != "" || by != ""
}

// name is the accessible name of an element.
func name(n *html.Node) string {
	if label, _ := attr(n, "aria-label"); label != "" {
		return label
	}
	if by, _ := attr(n, "aria-labelledby"); by != "" {
		return by
	}
	return text(n)
}

// text is an element's text, including the names of its images and without hidden text.
func text(n *html.Node) string {
	if n == nil {
		return ""
	}
	if n.Type == html.TextNode {
		return strings.TrimSpace(n.Data)
	}
	if hidden, _ := attr(n, "aria-hidden"); hidden == "true" {
		return ""
	}
	said := ""
	if label, _ := attr(n, "aria-label"); label != "" {
		said = label
	}
	if alt, _ := attr(n, "alt"); alt != "" {
		said += alt
	}
	for child := range n.ChildNodes() {
		said += text(child)
	}
	return said
}

func within(n *html.Node, tag string) bool {
	for up := range n.Ancestors() {
		if up.Data == tag {
			return true
		}
	}
	return false
}

func first(n *html.Node, tag string) *html.Node {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == tag {
			return d
		}
	}
	return nil
}

func attr(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// nested reports whether a form starts before the last one ended.
func nested(page string) bool {
	depth := 0
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return false
		case html.StartTagToken, html.EndTagToken:
			tag, _ := z.TagName()
			if string(tag) != "form" {
				continue
			}
			if kind == html.EndTagToken {
				depth--
			} else if depth++; depth > 1 {
				return true
			}
		}
	}
}
