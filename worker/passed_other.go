//go:build !linux

package worker

import "time"

// passed is the time since this process was started.
func passed() time.Duration { return time.Since(started) }
