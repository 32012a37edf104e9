package handlers

import (
	"fmt"

	"posthorn/views/components"
)

// BeyondText says what a shorter retention deletes.
func BeyondText(events int64, days int) string {
	return fmt.Sprintf("%s older than %s, with all deliveries and attempts. They are hidden immediately and then permanently deleted. This can't be undone.",
		components.Many(events, "event is", "events are"), components.Many(int64(days), "day", "days"))
}
