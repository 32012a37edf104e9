// Package emails holds the templates of mails. A mail is a Letter, made from the data in the outbox. It is rendered
// twice from the same blocks, as HTML (Page) and as plain text, so that both have the same content.
package emails

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/mail"
	"posthorn/domain/words"
)

// Letter is the content of a mail.
type Letter struct {
	Subject string
	Preview string // the text that a mail program shows beside the subject
	Heading string
	Tone    Tone
	Body    []Block
	Docs    Link   // the guide on the subject; empty: none
	Why     string // why the recipient gets the mail
	// Preferences is where the recipient selects notices, and Unsubscribe stops mails of this kind; empty if a mail
	// can't be declined.
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

// Block is one part of a letter; exactly one field is set.
type Block struct {
	Text   string
	Facts  []Fact
	Code   string // shown unchanged
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

// facts leaves out empty facts.
func facts(all ...Fact) Block {
	var b Block
	for _, f := range all {
		if f.Value != "" {
			b.Facts = append(b.Facts, f)
		}
	}
	return b
}

// second reports whether a button stands above the block.
func (l Letter) second(block int) bool {
	return slices.ContainsFunc(l.Body[:block], func(b Block) bool { return b.Button != nil })
}

// empty reports whether the block shows nothing.
func (b Block) empty() bool {
	return b.Text == "" && len(b.Facts) == 0 && b.Code == "" && len(b.List) == 0 && b.Button == nil
}

// textWidth is the width of plain text lines; RFC 5322 recommends at most 78.
const textWidth = 76

// Text renders the letter as plain text.
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

// choices are the links with which the recipient selects mails. If both links are one page, it is listed once.
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

// wrap breaks a text into lines with an indent. A text without a space (a link) is not broken.
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

// moment writes a time for people, in UTC, since a mail has no reader's time zone.
func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04") + " UTC" }

func momentOrNone(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return moment(*t)
}

// quoted puts a user-chosen name in quotation marks, so that nobody takes it for Posthorn's own words.
func quoted(name string) string { return "“" + mail.TenantText(name) + "”" }

// clip shortens an external text; a subject has one line.
func clip(s string, most int) string {
	return words.Short(characters.Cleaned(s), most)
}
