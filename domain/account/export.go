package account

import (
	"time"

	"posthorn/domain/fault"
)

// ExportLasts is how long an export counts as current: long enough to check that it opens and to store it, and short
// enough that little has been added since.
const ExportLasts = 24 * time.Hour

// ErrNoExport says that a tenant can't be deleted before its data is exported.
var ErrNoExport = fault.InvalidField("name", "out_of_range", "Export it first: nothing brings back what is deleted.")

// ExportIsCurrent says whether an export still counts as current: it was sent whole (nil: there is none), less than
// ExportLasts ago. An export in the future comes from a wrong clock, and does not count. Both times are of one clock.
func ExportIsCurrent(sent *time.Time, now time.Time) bool {
	return sent != nil && !sent.After(now) && now.Sub(*sent) < ExportLasts
}
