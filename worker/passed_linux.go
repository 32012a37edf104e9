package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// passed is the time since the machine was started, the time that it slept included: unlike Go's monotonic clock, which stands still
// meanwhile and would take a sleep for a step of the database's clock.
func passed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
