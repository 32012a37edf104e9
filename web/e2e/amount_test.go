//go:build e2e && !soak

package e2e

// thorough is whether the tests go through every variant of what they cover. `make e2e` takes the oldest and the newest
// versions, and what builds fast; `make soak` takes all.
const thorough = false
