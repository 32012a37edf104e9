package cli

import (
	"iter"
	"strconv"
	"strings"
	"time"
)

// window are the flags of a list.
type window struct {
	Limit int    `default:"50" help:"Maximum rows; 0 for all." short:"n"`
	Since string `placeholder:"TIME" help:"Created at or after: a duration back from now, such as 24h or 7d, or a time, such as 2026-01-31T12:00:00Z."`
	Until string `placeholder:"TIME" help:"Created before: a duration or a time, as in --since."`
}

func (w window) bounds(e *Env) (since, until *time.Time, err error) {
	if since, err = moment("--since", w.Since, e.Now()); err != nil {
		return nil, nil, err
	}
	until, err = moment("--until", w.Until, e.Now())
	return since, until, err
}

// storedDay is the flag of a list that can be read from storage.
type storedDay struct {
	StoredDay string `placeholder:"DAY" help:"List this UTC day from storage, such as 2031-03-30, instead of what is in the database. Slower."`
}

func (s storedDay) day() *string { return nonEmpty(s.StoredDay) }

// pageSize is how many rows one request reads.
func (w window) pageSize() *int {
	if w.Limit > 0 {
		return new(min(w.Limit, 250))
	}
	return new(250)
}

// moment reads a span back from now or a time; nil for an empty text.
func moment(flag, text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return &at, nil
	}
	back, err := span(flag, text)
	if err != nil {
		return nil, fail(ExitUsage, "%s is a time span such as 24h or 7d, or a time such as 2026-01-31T12:00:00Z.", flag)
	}
	at := now.Add(-back).UTC()
	return &at, nil
}

// ahead parses a span from now on or a future time; nil for an empty text. It rejects a past time: the server would
// send such an event immediately, and that can't be undone.
func ahead(flag, text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := moment(flag, text, now)
	if err != nil {
		return nil, err
	}
	if forward, err := span(flag, text); err == nil {
		at = new(now.Add(forward).UTC())
	}
	if at.Before(now) {
		return nil, fail(ExitUsage, "%s is in the past: %s. Give a time to come, or a span from now on such as 1h.", flag, text)
	}
	return at, nil
}

// span parses a time span: Go's units, and days, such as 7d.
func span(flag, text string) (time.Duration, error) {
	unit := text
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.Atoi(number)
		if err != nil || days > 36500 {
			return 0, fail(ExitUsage, "%s is a time span such as 24h or 7d.", flag)
		}
		unit = strconv.Itoa(days*24) + "h"
	}
	d, err := time.ParseDuration(unit)
	if err != nil || d < 0 {
		return 0, fail(ExitUsage, "%s is a time span such as 24h or 7d.", flag)
	}
	return d, nil
}

// collect reads the first rows of a list; all of them if limit is 0.
func collect[T any](walk iter.Seq2[T, error], limit int) ([]T, error) {
	rows := []T{}
	for row, err := range walk {
		if err != nil {
			return rows, err
		}
		if rows = append(rows, row); len(rows) == limit {
			break
		}
	}
	return rows, nil
}

// listing says how a list is printed.
type listing[T any] struct {
	limit int    // 0: all rows are shown
	empty string // says how to get the first row
	head  []string
	row   func(T) []string
}

// collect prints the first rows of a list that is read page by page.
func (l listing[T]) collect(s shared, e *Env, walk iter.Seq2[T, error]) error {
	rows, err := collect(walk, l.limit)
	return l.print(s, e, rows, err)
}

// print prints rows that were read without an error.
func (l listing[T]) print(s shared, e *Env, rows []T, err error) error {
	if err != nil {
		return err
	}
	return s.show(e, rows, func() {
		if len(rows) == 0 {
			e.notef("%s\n", l.empty)
			return
		}
		l.table(e, rows)
		if len(rows) == l.limit {
			e.notef("Showing %d. Use --limit to show more.\n", l.limit)
		}
	})
}

func (l listing[T]) table(e *Env, rows []T) {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = l.row(r)
	}
	e.table(l.head, cells)
}

// plural is a number with its noun: the second one, or the first with an s, unless the number is 1.
func plural(n int, one string, many ...string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + append(many, one+"s")[0]
}
