// Package migrations embeds the schema's history, one file a step.
//
// Numbers are missing on purpose. A change takes its number before it is merged, so that two changes never take the
// same one, and the number of a change that needed no migration in the end stays free. Goose runs files by their order.
package migrations

import (
	"embed"
	"strconv"
	"strings"
)

// FS holds the migrations; goose reads them.
//
//go:embed *.sql
var FS embed.FS

// Newest is the version of the last migration.
func Newest() (newest int64) {
	entries, err := FS.ReadDir(".")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}
