// Package emails holds the templates of mails. A mail is a Letter, made from the data in the outbox, and is rendered
// twice from the same blocks: as HTML (Page) and as plain text, so that both always say the same.
package emails

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/characters"
)

// Letter is what a mail says.
type Letter struct {
	Subject string
	Preview string // what a client shows beside the subject
	Heading string
	Tone    Tone
	Body    []Block
	Docs    Link   // the guide that belongs to it; empty: none
	Why     string // why the recipient gets it
	// Preferences is where the recipient chooses what to get, Unsubscribe what stops mails of this kind; empty where
	// a mail can't be declined.
	Preferences, Unsubscribe string
}

// Tone colors the line above a letter.
type Tone string

// The tones.
const (
	Neutral Tone = ""
	Good    Tone = "good"
	Careful Tone = "careful"
	Bad     Tone = "bad"
)

// Block is one part of a letter; one of its fields is set.
type Block struct {
	Text   string
	Facts  []Fact
	Code   string // shown as it is
	List   []string
	Button *Link
}

// Fact is a line of a table.
type Fact struct{ Name, Value string }

// Link is where a button leads.
type Link struct{ Text, URL string }

func text(format string, args ...any) Block {
	if len(args) == 0 {
		return Block{Text: format}
	}
	return Block{Text: fmt.Sprintf(format, args...)}
}

func button(label, url string) Block { return Block{Button: &Link{label, url}} }

// facts leaves out what there is nothing to say about.
func facts(all ...Fact) Block {
	var b Block
	for _, f := range all {
		if f.Value != "" {
			b.Facts = append(b.Facts, f)
		}
	}
	return b
}

// empty reports whether there is nothing to show.
func (b Block) empty() bool {
	return b.Text == "" && len(b.Facts) == 0 && b.Code == "" && len(b.List) == 0 && b.Button == nil
}

// textWidth is where lines of plain text are broken; RFC 5322 recommends at most 78.
const textWidth = 76

// Text is the letter as plain text.
func (l Letter) Text() string {
	var out strings.Builder
	part := func(s string) { out.WriteString(s + "\n\n") }
	part(l.Heading + "\n" + strings.Repeat("=", min(utf8.RuneCountInString(l.Heading), textWidth)))
	for _, b := range l.Body {
		switch {
		case b.Text != "":
			part(wrap(b.Text, ""))
		case len(b.Facts) > 0:
			part(factsText(b.Facts))
		case b.Code != "":
			part("    " + strings.ReplaceAll(b.Code, "\n", "\n    "))
		case len(b.List) > 0:
			lines := make([]string, len(b.List))
			for i, item := range b.List {
				lines[i] = "- " + strings.TrimPrefix(wrap(item, "  "), "  ")
			}
			part(strings.Join(lines, "\n"))
		case b.Button != nil:
			part(b.Button.Text + ":\n" + b.Button.URL)
		}
	}
	out.WriteString("-- \n" + wrap(l.Why, ""))
	for _, link := range l.choices() {
		out.WriteString("\n" + link.Text + ": " + link.URL)
	}
	return out.String() + "\n"
}

// choices are the links by which the recipient decides what comes. Where one page serves for all, it is named once.
func (l Letter) choices() []Link {
	switch {
	case l.Preferences != "" && l.Preferences == l.Unsubscribe:
		return slices.DeleteFunc([]Link{l.Docs, {"Unsubscribe from these emails, or change your preferences", l.Preferences}}, func(k Link) bool { return k.URL == "" })
	}
	return slices.DeleteFunc([]Link{l.Docs, {"Email preferences", l.Preferences}, {"Unsubscribe from these emails", l.Unsubscribe}},
		func(k Link) bool { return k.URL == "" })
}

func factsText(all []Fact) string {
	width := 0
	for _, f := range all {
		width = max(width, utf8.RuneCountInString(f.Name))
	}
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = fmt.Sprintf("%-*s  %s", width+1, f.Name+":", f.Value)
	}
	return strings.Join(lines, "\n")
}

// wrap breaks a text into lines that begin with an indent. What has no space (a link) stays whole.
func wrap(s, indent string) string {
	var lines []string
	line := indent
	for word := range strings.FieldsSeq(s) {
		if len(line) > len(indent) && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth {
			lines, line = append(lines, line), indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

// moment writes a time for people; mails know no time zone but UTC.
func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04") + " UTC" }

func momentOrNone(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return moment(*t)
}

// thousands writes a number with its thousands apart: 12,345.
func thousands(n int64) string {
	s := fmt.Sprintf("%d", n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// mostName bounds the names that their owners chose, in mails to others.
const mostName = 40

// quoted is a name that somebody chose, marked as such: it is never read as Posthorn's own words.
func quoted(name string) string { return "“" + clip(name, mostName) + "”" }

// clip keeps what comes from elsewhere short; a subject has one line.
func clip(s string, most int) string {
	s = characters.Cleaned(s)
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
