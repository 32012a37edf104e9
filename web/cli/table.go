package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/client"
	"posthorn/domain/characters"
)

// table prints rows in columns as wide as their widest cell. The last column is not padded.
func (e *Env) table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	shown := make([][]string, 0, 1+len(rows)) // the head is that of all tables of its kind
	for _, row := range append([][]string{head}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = characters.VisibleLine(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		shown = append(shown, cells)
	}
	e.row(shown[0], widths, func(cell string) painted { return e.paint(dim, cell) })
	for _, row := range shown[1:] {
		e.row(row, widths, func(cell string) painted { return e.paint(colourOf(cell), cell) })
	}
}

func (e *Env) row(cells []string, widths []int, paint func(string) painted) {
	var b strings.Builder
	for i, cell := range cells {
		b.WriteString(string(paint(cell)))
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
	}
	e.printf("%s\n", painted(strings.TrimRight(b.String(), " ")))
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
			e.printf(
				"%s%s  %s\n",
				e.paint(dim, list[i]),
				strings.Repeat(" ", width-utf8.RuneCountInString(list[i])),
				e.paint(colourOf(list[i+1]), characters.VisibleLine(list[i+1])),
			)
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
	cyan   = "36"
)

// painted is a text that can have the colors of paint, and no other control characters.
type painted string

// paint colors a text, on a terminal without NO_COLOR (https://no-color.org).
func (e *Env) paint(colour, text string) painted {
	text = characters.Visible(text)
	if colour == plain || !e.Terminal || e.variable("NO_COLOR") != "" || e.variable("TERM") == "dumb" {
		return painted(text)
	}
	return painted("\x1b[" + colour + "m" + text + "\x1b[0m")
}

// Fprintf prints for people. All output to a terminal goes through it: it removes control characters from its
// arguments, except line breaks, tabs, and the colors of paint.
func Fprintf(w io.Writer, format string, args ...any) {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = arg
		switch v := arg.(type) {
		case painted:
			shown[i] = string(v)
		case nil, bool, int, int64, float64:
		default:
			if kind := reflect.TypeOf(v).Kind(); kind < reflect.Bool || kind > reflect.Complex128 {
				shown[i] = characters.Visible(fmt.Sprint(v))
			}
		}
	}
	_, _ = fmt.Fprintf(w, format, shown...)
}

// WriteJSON prints a value on one line, for programs and for people who watch.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, characters.Visible(b.String()))
	return err
}

// file prints a file: byte for byte for a program, without control characters on a terminal.
func (e *Env) file(text []byte) error {
	if e.Terminal {
		text = []byte(characters.Visible(string(text)))
	}
	_, err := e.Stdout.Write(text)
	return err
}

// colourOf is the color of a state, as on the pages. Any other text is plain.
func colourOf(cell string) string {
	switch cell {
	case "delivered", "active":
		return green
	case "failed", "dead letter", "disabled", "failing":
		return red
	case "retrying", "on hold", "degraded", "unverified", "asked to wait", "paused by operator", "suspended", "waiting for worker", "disconnected":
		return yellow
	case "pending":
		return cyan
	}
	return plain
}

// word is a state as people read it: the token, with spaces.
func word[S ~string](state S) string { return strings.ReplaceAll(string(state), "_", " ") }

// clock is the time of day, with this machine's zone.
func (e *Env) clock() string { return e.Now().Local().Format("15:04:05 MST") }

// local is a time in this machine's zone, which it names.
func local(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 MST")
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

// oneLine is a text without line breaks, cut so that it does not fill the screen.
func oneLine(s string, limit int) string {
	s = characters.Visible(strings.Join(strings.Fields(s), " "))
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
