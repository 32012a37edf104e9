// Package migrations embeds the schema's history, one file a step.
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
