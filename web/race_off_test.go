//go:build !race

package main

// raceFactor is how much longer something may take under the race detector.
const raceFactor = 1
