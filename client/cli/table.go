package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"posthorn/client"
)

// table prints rows in columns as wide as their widest cell. The last column is not padded.
func (e *Env) table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	e.row(head, widths, func(cell string) string { return e.paint(dim, cell) })
	for _, row := range rows {
		e.row(row, widths, func(cell string) string { return e.paint(colourOf(cell), cell) })
	}
}

func (e *Env) row(cells []string, widths []int, paint func(string) string) {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(paint(cell))
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
	}
	e.printf("%s\n", strings.TrimRight(b.String(), " "))
}

// pairs prints a name and a value a line, without those that are empty.
func (e *Env) pairs(list ...string) {
	width := 0
	for i := 0; i+1 < len(list); i += 2 {
		if list[i+1] != "" {
			width = max(width, utf8.RuneCountInString(list[i]))
		}
	}
	for i := 0; i+1 < len(list); i += 2 {
		if list[i+1] != "" {
			e.printf("%s%s  %s\n", e.paint(dim, list[i]), strings.Repeat(" ", width-utf8.RuneCountInString(list[i])),
				e.paint(colourOf(list[i+1]), list[i+1]))
		}
	}
}

// The colors, as terminals number them.
const (
	plain  = ""
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colors a text, on a terminal without NO_COLOR (https://no-color.org).
func (e *Env) paint(colour, text string) string {
	if colour == plain || !e.Terminal || e.variable("NO_COLOR") != "" || e.variable("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func colourOf(cell string) string {
	switch cell {
	case "delivered", "active":
		return green
	case "failed", "disabled":
		return red
	case "retrying", "held", "paused", "unverified":
		return yellow
	}
	return plain
}

// local is a time in this machine's zone.
func local(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

func optional[T any](n client.Nullable[T]) string {
	v, err := n.Get()
	if err != nil {
		return ""
	}
	if at, ok := any(v).(time.Time); ok {
		return local(at)
	}
	return fmt.Sprint(v)
}

// oneLine keeps text of other servers from moving the terminal's cursor, and from filling its screen.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// printable is text of several lines without what would move the cursor or change colors.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return -1
	}, s)
}
