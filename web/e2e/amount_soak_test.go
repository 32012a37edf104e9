//go:build soak

package e2e

// thorough is true: `make soak` takes every variant (amount_test.go).
const thorough = true
