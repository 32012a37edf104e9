//go:build soak

package e2e

const (
	thorough = true // amount_test.go
	brokered = 10_000
	replayed = 100_000
)
