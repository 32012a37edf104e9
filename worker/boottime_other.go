//go:build !linux

package worker

import "time"

// bootTime is the time since this process was started.
func bootTime() time.Duration { return time.Since(started) }
