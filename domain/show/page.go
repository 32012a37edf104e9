// Package show holds the nouns of Posthorn as people and programs see them: with their conditions, waits and diagnoses,
// computed once from what is stored. It formats nothing: each surface does that.
package show

import (
	"slices"
	"time"

	"posthorn/domain/id"
)

// Range says which rows of a list are read.
type Range struct {
	Limit     int
	Ascending bool
	After     []byte    // the position after which the rows start; nil at the start of the list
	Since     time.Time // created at or after; zero: any time
	Until     time.Time // created before; zero: any time
}

// AfterID is After in a list by id; the zero id at the start of the list.
func (r Range) AfterID() (after id.UUID) {
	copy(after[:], r.After)
	return after
}

// Edge is AfterID. At the start of the list it is an id beyond all: the zero id, or in descending order the highest.
func (r Range) Edge() id.UUID {
	if r.After == nil && !r.Ascending {
		return id.Last
	}
	return r.AfterID()
}

// Between is the bounds of a list by id: the rows have ids strictly between low and high. Ids are ordered by time, so
// both also bound created_at, inclusively: partitions prune by low.Time() and high.Time(). floor is the oldest time
// that can be shown. now bounds the newest, with a minute's tolerance for a process whose clock is ahead; zero: nothing
// does.
func (r Range) Between(floor, now time.Time) (low, high id.UUID) {
	low, high = id.FirstAt(floor), id.Last
	if r.Since.After(floor) {
		low = id.FirstAt(r.Since)
	}
	if !now.IsZero() {
		high = id.FirstAt(now.Add(time.Minute))
	}
	if until := id.FirstAt(r.Until); !r.Until.IsZero() && until.Compare(high) < 0 {
		high = until
	}
	if after := r.AfterID(); r.After != nil {
		if r.Ascending && after.Compare(low) > 0 {
			low = after
		} else if !r.Ascending && after.Compare(high) < 0 {
			high = after
		}
	}
	return low, high
}

// Page is a page of a list.
type Page[T any] struct {
	Rows []T
	Next []byte // the position of the last row that was examined; nil at the end of the list
}

// Cut makes a page of rows that were read with one more than the page holds.
func Cut[T any](rows []T, limit int, position func(T) []byte) Page[T] {
	if len(rows) <= limit {
		return Page[T]{Rows: rows}
	}
	return Page[T]{Rows: rows[:limit], Next: position(rows[limit-1])}
}

// CutByID is Cut for a list by id.
func CutByID[T any](rows []T, limit int, of func(T) id.UUID) Page[T] {
	return Cut(rows, limit, func(row T) []byte { return position(of(row)) })
}

// Scanned makes a page of the result of a query that examines at most scan rows. The query returns the matching rows,
// one more than the page holds, and the last row that it examined. The page ends after its last row, or at the row at
// which the query stopped.
func Scanned[T any](rows []T, limit, scan int, of func(T) (uuid id.UUID, place int64, matches bool)) (page Page[T]) {
	for _, row := range rows {
		uuid, place, matches := of(row)
		if matches && len(page.Rows) == limit {
			last, _, _ := of(page.Rows[limit-1])
			page.Next = position(last)
			return page
		}
		if matches {
			page.Rows = append(page.Rows, row)
		}
		if place == int64(scan) {
			page.Next = position(uuid)
			return page
		}
	}
	return page
}

// Each makes a page of what f makes of each row.
func Each[From, To any](p Page[From], f func(From) To) Page[To] {
	to := Page[To]{Rows: make([]To, len(p.Rows)), Next: p.Next}
	for i, row := range p.Rows {
		to.Rows[i] = f(row)
	}
	return to
}

// position is the position of a row in a list by id.
func position(of id.UUID) []byte { return slices.Clone(of[:]) }
