package docs

import (
	"cmp"
	"slices"
	"strings"

	views "posthorn/views/docs"
)

// entry is a section of a page in the search index. The names are short, since every browser that searches loads the
// index.
type entry struct {
	Title string `json:"t"`
	Page  string `json:"p"`
	Path  string `json:"u"`
	Text  string `json:"x"`
}

// most is the maximum number of results; the script shows the same number
const (
	mostHits   = 20
	mostText   = 850 // of a section in the index
	mostWords  = 8
	titleScore = 10
	pageScore  = 4
)

// index splits the pages at their headings.
func (c *content) index() []entry {
	var all []entry
	for _, l := range c.order {
		p, ok := c.pages[l.Path]
		if !ok {
			continue
		}
		ids := headings{}
		for i, part := range splitHeadings(p.source) {
			title, body, _ := strings.Cut(part, "\n")
			e := entry{
				Title: plain(strings.TrimLeft(title, "# ")),
				Page:  p.title,
				Path:  p.path,
				Text:  cut(plain(body), mostText),
			}
			id := string(ids.Generate([]byte(plain(strings.TrimLeft(title, "# "))), 0))
			if i > 0 && !strings.HasPrefix(p.path, groupRoot) {
				e.Path += "#" + id
			}
			all = append(all, e)
		}
	}
	return all
}

// splitHeadings splits a page before each heading that is not inside a block of code.
func splitHeadings(source string) []string {
	var parts []string
	fenced := false
	var b strings.Builder
	for line := range strings.Lines(source) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "#") && b.Len() > 0 {
			parts = append(parts, b.String())
			b.Reset()
		}
		b.WriteString(line)
	}
	return append(parts, b.String())
}

// search finds the sections with every word. Those with words in their titles come first.
func (c *content) find(query string) []views.Hit {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	words = words[:min(len(words), mostWords)]
	type scored struct {
		entry
		score int
	}
	var found []scored
	for _, e := range c.entries {
		if n := e.score(words); n > 0 {
			found = append(found, scored{e, n})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var hits []views.Hit
	for _, f := range found[:min(len(found), mostHits)] {
		hits = append(hits, views.Hit{Title: f.Title, Page: f.Page, Path: f.Path, Text: cut(f.Text, 160)})
	}
	return hits
}

// score is 0 if a word is missing. static/docs/docs.js computes the same.
func (e entry) score(words []string) int {
	title, page, text := strings.ToLower(e.Title), strings.ToLower(e.Page), strings.ToLower(e.Text)
	total := 0
	for _, w := range words {
		switch {
		case strings.Contains(title, w):
			total += titleScore
		case strings.Contains(page, w):
			total += pageScore
		case strings.Contains(text, w):
			total++
		default:
			return 0
		}
	}
	return total
}
