package endpoint

import (
	"slices"
	"strconv"
	"strings"
)

// Group is a part of the settings of an endpoint on pages. Its name is its title.
type Group string

// The groups. A setting without one stands where the page needs it.
const (
	Limits   Group = "Limits"
	Batches  Group = "Batches"
	Retries  Group = "Retries"
	Signing  Group = "Signing"
	Access   Group = "Authentication"
	Advanced Group = "Advanced"
)

// Groups are the groups in the order of the page.
func Groups() []Group { return []Group{Limits, Batches, Retries, Signing, Access, Advanced} }

// Of reports whether endpoints of a kind have the group: nothing is sent to a feed, so it has no limits and no retries,
// and only receivers of HTTP ask who sends.
func (g Group) Of(k Kind) bool {
	switch g {
	case Access:
		return k == HTTP
	case Batches:
		return k.Batches()
	}
	return !k.Pulls() || g != Limits && g != Retries
}

// Fields are the rows of the group, in the order of the table.
func (g Group) Fields() []Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return f.Group != g })
}

// Line is a value, as a form has it, in the line of its group; empty: it is not there.
func (f Field) Line(text string) string {
	text = strings.TrimSpace(text)
	switch f.Type {
	case Switch:
		if text == "on" {
			return f.Brief
		}
		return f.Without
	case Choice:
		for _, o := range f.Options {
			if o.Value == text && text != "" {
				text, _, _ = strings.Cut(o.Label, ":")
			}
		}
		if !strings.HasPrefix(f.Brief, "%s") {
			text = strings.ToLower(text)
		}
	case Pairs:
		if text != "" {
			text = strconv.Itoa(strings.Count(text, "\n") + 1)
		}
	}
	if text == "" {
		return f.Without
	}
	return strings.Replace(f.Brief, "%s", text, 1)
}
