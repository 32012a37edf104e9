//go:build e2e && !soak

package e2e

// `make e2e` takes the oldest and the newest versions, what builds fast, and some thousands of events; `make soak`
// takes every variant, and all events that issues and pages speak of.
const (
	thorough = false
	brokered = 3_000  // events through each broker
	replayed = 20_000 // dead letters
)
