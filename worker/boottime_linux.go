package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is the time since the machine was started, including sleep. Go's monotonic clock stops during sleep, so a
// sleep would look like a step of the database's clock.
func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
