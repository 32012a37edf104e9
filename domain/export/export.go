// Package export says what the export of a tenant is good for.
package export

import (
	"time"

	"posthorn/domain/fault"
)

// Lasts is for how long an export stands for what its tenant has: long enough to look whether it opens and to put it away,
// and short enough that little has been added since.
const Lasts = 24 * time.Hour

// ErrNone refuses to end a tenant whose data nobody has taken along.
var ErrNone = fault.InvalidField("name", "out_of_range", "Export it first: nothing brings back what is deleted.")

// Stands says whether an export stands for what its tenant has now: one that was sent whole, nil: none was, and less than Lasts
// ago. One of a time that is still to come is of a clock that was wrong, and stands for nothing. Both times are of one clock.
func Stands(sent *time.Time, now time.Time) bool {
	return sent != nil && !sent.After(now) && now.Sub(*sent) < Lasts
}
