// Package analytics makes series of numbers out of the roll-ups of attempts, and writes them as CSV.
package analytics

import (
	"cmp"
	"slices"
	"time"

	"posthorn/domain/health"
	"posthorn/domain/id"
)

// Retry marks the kind of attempts that were not their delivery's first. A kind is class * 16 + slot of the histogram,
// and this mark.
const Retry = 128

// Classes are the words for the roll-ups' classes, in the order of their numbers.
var classNames = [...]string{"ok", "redirect", "client_error", "server_error", "network", "timeout", "blocked"}

// Cell counts the attempts of one place in a series.
type Cell struct {
	Attempts health.Attempts
	Latency  health.Histogram
	Retries  int64
	us       int64
}

// Count is attempts of one kind.
type Count struct {
	Kind  int16 // class * 16 + slot of the histogram, and Retry
	N, Us int64 // how many, and the sum of their durations, in microseconds
	// the shortest and the longest of them, in microseconds; Max 0: not known
	Min, Max int32
}

// Add enters attempts. Kinds that no version knows are left out.
func (c *Cell) Add(a Count) {
	if a.Kind&Retry != 0 {
		c.Retries += a.N
		a.Kind &^= Retry
	}
	class, slot := int(a.Kind/16), int(a.Kind%16)
	if a.Kind < 0 || class >= len(c.Attempts) {
		return
	}
	c.Attempts[class] += a.N
	c.Latency[slot].Add(health.Slot{
		N:   a.N,
		Min: time.Duration(a.Min) * time.Microsecond,
		Max: time.Duration(a.Max) * time.Microsecond,
	})
	c.us += a.Us
}

// Merge adds another cell's attempts.
func (c *Cell) Merge(o Cell) {
	for i, n := range o.Attempts {
		c.Attempts[i] += n
	}
	for i, s := range o.Latency {
		c.Latency[i].Add(s)
	}
	c.Retries += o.Retries
	c.us += o.us
}

// Total is how many attempts there were.
func (c *Cell) Total() int64 { return c.Attempts.Rate().Total }

// Failed is how many attempts did not succeed.
func (c *Cell) Failed() int64 {
	return c.Attempts.Rate().Failed()
}

// Mean is the average duration of an attempt; 0 without attempts.
func (c *Cell) Mean() time.Duration {
	if n := c.Total(); n > 0 {
		return time.Duration(c.us/n) * time.Microsecond
	}
	return 0
}

// Quantile is the time within which so large a share of the attempts ended, read from the histogram; 0 without
// attempts.
func (c *Cell) Quantile(q float64) time.Duration {
	d, _ := c.Latency.Quantile(q)
	return d
}

// Key is a place in a series: a bucket of time, and whatever else it is grouped by.
type Key struct {
	Bucket   time.Time
	Endpoint id.UUID
	Type     string
	Class    string // one of Classes
}

// Row is one row of a series.
type Row struct {
	Key
	Cell
}

// Series gathers rows. The zero value is ready.
type Series struct {
	ByClass bool // a row for each class
	cells   map[Key]*Cell
}

// Add enters attempts at a place.
func (s *Series) Add(k Key, a Count) {
	if s.ByClass {
		class := int(a.Kind&^Retry) / 16
		if class < 0 || class >= len(classNames) {
			return
		}
		k.Class = classNames[class]
	}
	s.at(k).Add(a)
}

// Merge enters all attempts of a cell at a place.
func (s *Series) Merge(k Key, c Cell) { s.at(k).Merge(c) }

// At is the cell of a place; without attempts where there were none.
func (s *Series) At(k Key) Cell {
	if c := s.cells[k]; c != nil {
		return *c
	}
	return Cell{}
}

func (s *Series) at(k Key) *Cell {
	if s.cells == nil {
		s.cells = map[Key]*Cell{}
	}
	c := s.cells[k]
	if c == nil {
		c = &Cell{}
		s.cells[k] = c
	}
	return c
}

// Rows are the rows by time, and within a bucket by endpoint, type and class.
func (s *Series) Rows() []Row {
	rows := make([]Row, 0, len(s.cells))
	for k, c := range s.cells {
		rows = append(rows, Row{k, *c})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Bucket.Compare(b.Bucket), a.Endpoint.Compare(b.Endpoint),
			cmp.Compare(a.Type, b.Type),
			cmp.Compare(slices.Index(classNames[:], a.Class), slices.Index(classNames[:], b.Class)))
	})
	return rows
}

// Worst are the n rows with the highest share of failed attempts, those without any left out. Of equal shares the one
// with more failures comes first.
func (s *Series) Worst(n int) []Row {
	rows := s.Top(len(s.cells))
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.failedShare(), a.failedShare()) })
	return rows[:min(n, len(rows))]
}

func (r Row) failedShare() float64 { return float64(r.Failed()) / float64(max(r.Total(), 1)) }

// Top are the n rows with the most failed attempts, those without any left out.
func (s *Series) Top(n int) []Row {
	rows := slices.DeleteFunc(s.Rows(), func(r Row) bool { return r.Failed() == 0 })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Failed(), a.Failed()) })
	return rows[:min(n, len(rows))]
}
