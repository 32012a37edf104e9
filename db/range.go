package db

import (
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// farFuture is later than every id.
var farFuture = time.Unix(1<<33, 0)

// Bounds are the ids between which the rows of a range are, strictly, where a list shows rows of any age.
func Bounds(r show.Range) (low, high id.UUID) { return r.Between(time.Time{}, farFuture) }

// Limit is how many rows a statement reads for a page: one more than it has tells that there is a next page.
func Limit(r show.Range) int32 { return int32(r.Limit + 1) }

// Only is the one row of a list that was asked for it; fault.ErrNotFound without it.
func Only[T any](page show.Page[T], err error) (one T, _ error) {
	if err == nil && len(page.Rows) == 0 {
		err = fault.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	return page.Rows[0], nil
}
