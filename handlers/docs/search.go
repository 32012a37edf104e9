package docs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	views "posthorn/views/docs"
)

// entry is a section of a page in the search index.
type entry struct {
	title, page, path, text string
	tier                    int
	// how often each token is in the title, the page's title, and the text
	inTitle, inPage, inText map[string]int
}

// Guides are found before pages about one other product or about the machine's inside, and those before the reference
// and the errors.
const (
	guideTier = iota
	specialTier
	referenceTier
	errorTier
)

var tiers = map[string]int{
	"design":      specialTier,
	"performance": specialTier,
	"scale":       specialTier,
	"migrate":     specialTier,
	"svix":        specialTier,
	"errors":      errorTier,
}

const (
	mostHits    = 20
	mostQuick   = 8 // of them below the search field
	mostWords   = 8
	mostCount   = 9  // of a word in a section, for its score
	titleScore  = 20 // what a word in a title adds
	pageScore   = 5
	excerptSize = 160
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
				title: plain(strings.TrimLeft(title, "# ")),
				page:  p.title,
				path:  p.path,
				text:  plain(fenced.ReplaceAllString(body, "")),
				tier:  tiers[strings.TrimPrefix(p.path, "/docs/")],
			}
			if strings.HasPrefix(p.path, referencePage) {
				e.tier = referenceTier
			}
			id := string(ids.Generate([]byte(e.title), 0))
			if i > 0 && !strings.HasPrefix(p.path, groupRoot) {
				e.path += "#" + id
			}
			e.inTitle, e.inPage, e.inText = tokensOf(e.title), tokensOf(e.page), tokensOf(body)
			all = append(all, e)
		}
	}
	return all
}

// fenced is a block of code.
var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

var token = regexp.MustCompile(`[\p{L}\p{N}_]+`)

func tokensOf(text string) map[string]int {
	counts := map[string]int{}
	for _, t := range token.FindAllString(strings.ToLower(text), -1) {
		counts[t]++
	}
	return counts
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

// noise are words of questions that say nothing about their subject.
var noise = strings.Fields("a an and are be can do does for from how i in is it my not of on or that the this to was what when where why with")

// synonyms are the words of the documentation for what people also type.
var synonyms = map[string][]string{
	"allowlist":   {"allow", "firewall", "egress"},
	"brand":       {"portal"},
	"dedupe":      {"duplicate"},
	"embed":       {"frame", "portal"},
	"idempotency": {"duplicate", "guarantee"},
	"idempotent":  {"duplicate", "guarantee"},
	"ip":          {"address"},
	"label":       {"brand"},
	"node":        {"javascript"},
	"order":       {"guarantee"},
	"ordering":    {"guarantee"},
	"portal":      {"dashboard"},
	"throttle":    {"rate"},
	"white":       {"brand"},
	"whitelist":   {"allow", "firewall", "egress"},
}

// endings are left out of words, so that "rotate" finds "rotation". A stem has four letters at least.
var endings = []string{"ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "e", "s", "y"}

func stem(word string) string {
	for _, end := range endings {
		if rest, ok := strings.CutSuffix(word, end); ok && len(rest) >= 4 {
			return rest
		}
	}
	return word
}

// term is a word of a query.
type term struct {
	word   string
	starts []string // of the tokens that stand for it
}

func termsOf(query string) []term {
	words := token.FindAllString(strings.ToLower(query), -1)
	if said := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(noise, w) }); len(said) > 0 {
		words = said
	}
	terms := make([]term, 0, mostWords)
	for _, w := range words[:min(len(words), mostWords)] {
		terms = append(terms, term{w, append([]string{stem(w)}, synonyms[w]...)})
	}
	return terms
}

func (t term) is(token string) bool {
	return slices.ContainsFunc(t.starts, func(start string) bool { return strings.HasPrefix(token, start) })
}

// count is how often a term is among tokens. The word as it was typed counts three times.
func (t term) count(tokens map[string]int) int {
	n := 2 * tokens[t.word]
	for token, times := range tokens {
		if t.is(token) {
			n += times
		}
	}
	return n
}

// find returns the sections with every word of a query, guides first, and then those with words in their titles. Where
// no section has every word, the word that the fewest sections have is left out.
func (c *content) find(query string) []views.Hit {
	for terms := termsOf(query); len(terms) > 0; {
		if hits := c.having(terms); len(hits) > 0 {
			return hits
		}
		rarest := slices.MinFunc(terms, func(a, b term) int { return cmp.Compare(c.holding(a), c.holding(b)) })
		terms = slices.DeleteFunc(terms, func(t term) bool { return t.word == rarest.word })
	}
	return nil
}

// having returns the sections that have every term.
func (c *content) having(terms []term) []views.Hit {
	type scored struct {
		*entry
		score int
	}
	var found []scored
	for i := range c.entries {
		e := &c.entries[i]
		n := e.score(terms)
		switch {
		case len(terms) == 1 && e.title == terms[0].word && e.tier == errorTier: // a code
			return []views.Hit{e.hit(terms)}
		case n > 0:
			found = append(found, scored{e, n})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.score, a.score)) })
	var hits []views.Hit
	for _, f := range found[:min(len(found), mostHits)] {
		hits = append(hits, f.hit(terms))
	}
	return hits
}

func (e *entry) hit(terms []term) views.Hit {
	return views.Hit{Title: marked(e.title, terms), Page: e.page, Path: e.path, Text: marked(excerpt(e.text, terms), terms)}
}

// holding is how many sections have a term.
func (c *content) holding(t term) (n int) {
	for i := range c.entries {
		if c.entries[i].score([]term{t}) > 0 {
			n++
		}
	}
	return n
}

// score is 0 if a term is missing.
func (e *entry) score(terms []term) (total int) {
	for _, t := range terms {
		n := min(t.count(e.inText), mostCount)
		switch {
		case t.count(e.inTitle) > 0:
			n += titleScore
		case t.count(e.inPage) > 0:
			n += pageScore
		case n == 0:
			return 0
		}
		total += n
	}
	return total
}

// excerpt is the part of a text around the first word of a query.
func excerpt(text string, terms []term) string {
	for _, at := range token.FindAllStringIndex(text, -1) {
		if !slices.ContainsFunc(terms, func(t term) bool { return t.is(strings.ToLower(text[at[0]:at[1]])) }) {
			continue
		}
		start := max(at[0]-excerptSize/3, 0)
		if space := strings.IndexByte(text[start:at[0]], ' '); start > 0 && space >= 0 {
			return "… " + cut(text[start+space+1:], excerptSize)
		}
		break
	}
	return cut(text, excerptSize)
}

// marked splits a text at the words of a query.
func marked(text string, terms []term) (parts []views.Part) {
	done := 0
	for _, at := range token.FindAllStringIndex(text, -1) {
		if !slices.ContainsFunc(terms, func(t term) bool { return t.is(strings.ToLower(text[at[0]:at[1]])) }) {
			continue
		}
		if at[0] > done {
			parts = append(parts, views.Part{Text: text[done:at[0]]})
		}
		parts = append(parts, views.Part{Text: text[at[0]:at[1]], Found: true})
		done = at[1]
	}
	if done < len(text) {
		parts = append(parts, views.Part{Text: text[done:]})
	}
	return parts
}
